"""The model card: what the judge was trained on, how good it is, where it fails."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_card"]

_CARD = """\
# Judge {version}

One cross-encoder for CPUs, 22 million parameters in 8-bit integers, one ONNX file. In one pass over
numbered statements of evidence, a sentence and its context it says whether the evidence supports the
sentence, which statements carry it or conflict with it, and which words are not carried. The same
weights answer NLI of a pair and the categories and complexities of CAQA.

| file | holds |
|---|---|
| `model.onnx` | inputs `input_ids`, `attention_mask`, `token_type_ids` (int64 [n, l]); raw logits \
`nli` [n, 3], `attribution` [n, 4], `complexity` [n, 4], `claim` [n, 2], `words` [n, l, 3], \
`statements` [n, l, 3] |
| `tokenizer.json` | the word pieces of all-MiniLM-L6-v2, uncased |
| `judge.json` | labels in the order of the logits, temperatures, calibration of verdicts by kind of \
evidence, measurements |

Inputs. Verdicts: `[CLS] mark statement mark statement … [SEP] sentence [SEP] context [SEP]`, up to
384 word pieces; the mark is `[unused0]`. `nli`: premise and hypothesis. `attribution` and
`complexity`: evidence, and question followed by answer. Graph facts are read as
`Subject, relation: value.` Weights lie within ±63, so that every processor computes the same bits.

## Made from

Encoder: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0). All rows allow commercial use.

| rows | licence | used as |
|---|---|---|
| statements of chatbot answers, written for this project | Apache-2.0 | train; some evidence sets \
held out |
| VitaminC, real and synthetic; FEVER, FEVER-Symmetric | CC BY-SA 3.0, MIT | train; 12 % of \
VitaminC's pages held out |
| SNLI and MNLI, development files and pieces | CC BY-SA 4.0, OANC | half of the premises of the \
development files held out |
| CAD-SNLI, ConjNLI, TaxiNLI, Breaking NLI, MED, FOLIO, TRACIE, negated pairs, function words | \
Apache-2.0, MIT, CC BY-SA 4.0, as MultiNLI | train |
| InfoTabS; TabFact | Apache-2.0; CC BY 4.0 | training tables; development tables and a tenth of \
TabFact's held out |
| TekGen (Text2KGBench), FewRel, Wiki80, KnowledgeNet, Rel2Text, Re-DocRED, SemEval-2010-8 | \
CC BY-SA, MIT, Apache-2.0, CC BY 3.0 | sentence to triple, and other relations of the same names; \
subjects, relations or documents held out |
| DART without WebNLG; E2E, cleaned | MIT; CC BY-SA 4.0 | triples to sentence; 20 % of DART's \
subjects held out |
| WikiSplit, SQuAD 2.0, OANC questions, CondaQA, SummEdits, BUMP, WiCE's token labels | CC BY-SA 4.0, \
CC BY 4.0, Apache-2.0, MIT, ODC-BY | answers beside passages; 30 % of SummEdits held out |
| facts of Wikidata, ParaRel | CC0, MIT | sentences and CAQA rows written by template; \
entities and relations held out |

Wrong and missing facts are made as well: a statement removed, a value swapped within its property,
another relation of the same names, roles turned, triples of neighbours beside the right ones. The
recipe is `python -m judges.training` with the plan `judges/training/plans/cpu.toml`; the weights are
a running average.
{history}{verdicts}
## Measured

On rows that share no page, table, premise or entity with training. Accuracy of the attribution
head is micro-F1. ECE is the expected calibration error (15 bins) after temperature scaling, on
rows that the temperature was not fitted on. AUC is that of entailment against the other labels.

{table}

The attribution head on CAQA rows: F1 by category, then micro-F1 by complexity.
`caqa_test` has unseen entities, `caqa_test_relations` unseen relations too.

{breakdown}

## Known weaknesses

- Small: it knows little of the world. What evidence and sentence do not say in similar words (a
  synonym, a sum, a comparison of three numbers) is often missed; the table of phenomena shows which.
- It misses reversed roles when the words are the same, and hardly tells two numbers or full dates
  apart that differ in a digit; the engine compares those itself.
- English only. Names are split into word pieces; two rare names that differ by a letter can pass
  for one another.
- Evidence beyond 384 word pieces must be selected; pairs for `nli` are cut into windows.
- CAQA rows and graph sentences are written by template: scores on them say little about prose.
"""


_VERDICTS = """\
Threshold 0.5, in 8 bits. Each half of the evidence sets is calibrated on the other half. Balanced
accuracy is of supported against not, over statements that claim something; then by phenomenon."""


def write_card(
    path: Path, version: str, verdicts: str, table: str, breakdown: str, *, history: str = ""
) -> None:
    """Write the model card.

    Args:
        path: The file.
        version: Version of the weights.
        verdicts: Measurements of verdicts on statements, in Markdown; empty without any.
        table: Measurements in Markdown.
        breakdown: The attribution head by category and complexity, in Markdown.
        history: How the judge came about where it is not by the recipe alone; a paragraph.
    """
    text = _CARD.format(
        version=version,
        verdicts=f"\n## Verdicts on held-out statements\n\n{_VERDICTS}\n\n{verdicts}\n"
        if verdicts
        else "",
        table=table,
        breakdown=breakdown,
        history=f"\n{history}\n" if history else "",
    )
    path.write_text(text, encoding="utf-8")
