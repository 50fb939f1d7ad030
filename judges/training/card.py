"""The model card: what the judge was trained on, how good it is, where it fails."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_card"]

_CARD = """\
# Judge {version}

One cross-encoder with three heads, for CPUs: does a premise entail a hypothesis (`nli`), how does
evidence bear on an answer (`attribution`, the four categories of CAQA), and what reasoning joins
the evidence (`complexity`). 22 million parameters in 8-bit integers, one ONNX file.

| file | holds |
|---|---|
| `model.onnx` | inputs `input_ids`, `attention_mask`, `token_type_ids` (int64 [n, l]); outputs \
raw logits `nli` [n, 3], `attribution` [n, 4], `complexity` [n, 4] |
| `tokenizer.json` | the word pieces of all-MiniLM-L6-v2, uncased |
| `judge.json` | labels in the order of the logits, temperature by head, measurements |

Inputs: premise and hypothesis for `nli`; evidence, and question followed by answer, for the other
two. Graph facts are read as `Subject, relation: value, relation: value.`

## Made from

Encoder: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0). All rows allow commercial use.

| rows | licence | used as |
|---|---|---|
| VitaminC, real and synthetic | CC BY-SA 3.0 | train; 12 % of pages held out |
| FEVER-NLI | CC BY-SA | train |
| SNLI and MNLI, development files | CC BY-SA 4.0, OANC | half of the premises each: \
train, held out |
| CAD-SNLI, ConjNLI | Apache-2.0, MIT | train |
| InfoTabS | Apache-2.0 | its training tables; its development tables held out |
| TekGen (Text2KGBench) | CC BY-SA | sentence to triple; subjects of its validation file held out |
| DART | MIT | triples to sentence; 20 % of subjects held out |
| facts of Wikidata, ParaRel | CC0, MIT | sentences and CAQA rows written by template; \
entities and relations held out |

Wrong and missing facts are made: values swapped within a relation, dates and numbers moved a
little, roles mixed up (father and son, born and died), facts dropped, other entities of the same
name. The recipe is `python -m judges.training`, 6,400 steps of 6,144 word pieces, the last
third with falling rate; the weights are a running average.
{history}{verdicts}
## Measured

On rows that share no page, table, premise or entity with training. Accuracy of the attribution
head is micro-F1. ECE is the expected calibration error (15 bins) after temperature scaling, on
rows that the temperature was not fitted on.

{table}

The attribution head on CAQA rows: F1 by category, then micro-F1 by complexity.
`caqa_test` has unseen entities, `caqa_test_relations` unseen relations too.

{breakdown}

## Known weaknesses

- Small: it knows little of the world. What premise and hypothesis do not say in similar words
  (a synonym, a sum, a comparison of three numbers) is often missed; InfoTabS and MNLI show it.
- It misses reversed roles when the words are the same (*A was the father of B* for *B was the
  father of A*), and hardly tells two full dates apart that differ in the day alone.
- English only. Names are split into word pieces; two rare names that differ by a letter can pass
  for one another.
- Texts beyond 256 word pieces must be cut into windows; it was trained on pairs up to 160.
- CAQA rows and graph sentences are written by template. Scores on them say little about prose
  from the web, where partial support is the hardest category.
- Of a relation with several values (awards, genres) it says neutral, not contradiction, when the
  evidence names another value.
"""


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
        verdicts=f"\n## Verdicts on held-out statements\n\n{verdicts}\n" if verdicts else "",
        table=table,
        breakdown=breakdown,
        history=f"\n{history}\n" if history else "",
    )
    path.write_text(text, encoding="utf-8")
