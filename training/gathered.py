"""Rows of the gathered sets: NLI pairs, answers with passages, sentences with triples."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.data import measures, read_jsonl
from guardrail.core.types import Triple
from judges.batching import split_sentences
from judges.folder import HEADS
from training.data import Split, clean
from training.relations import readable
from training.rows import NOT_ENTAILMENT, Row, nli_row

__all__ = ["load_gathered"]

NLI_SETS = (
    "fever_train",
    "fever_nei_paired",
    "mnli_dev_mismatched",
    "mnli_pieces",
    "snli_mnli_contradiction",
    "breaking_nli",
    "med",
    "function_words",
    "negated_pairs",
    "fever_symmetric_dev",
    "folio_train",
    "tracie",
    "tabfact",
)

PASSAGE_SETS = ("wiki_split", "squad2", "mcqa_oanc", "condaqa", "summedits", "bump")
"""FM2, ContractNLI, the parts of SummaC, WiCE, Factcheck-GPT and AttributionBench are not read:
they measure. So do some groups of other sets, see ``benchmarks.data``."""

MARKED_SHARE = 0.5
"""Share of passages that are read as numbered statements; the others as one premise."""

_SENTENCES = 60
"""Most statements of one passage."""

_CATEGORIES = HEADS["attribution"]


def load_gathered(data: Path, *, seed: int) -> Split:
    """Rows to train on and rows held out, by group.

    Args:
        data: Folder with ``nli``, ``attribution`` and ``triples``.
        seed: Seed of all choices.
    """
    split = Split([], [])
    for name in NLI_SETS:
        for raw in read_jsonl(data / "nli" / f"{name}.jsonl.gz"):
            premise, hypothesis = clean(raw["premise"]), clean(raw["hypothesis"])
            _put(split, name, raw, nli_row(premise, hypothesis, raw["label"], name))
    chooser = random.Random(f"{seed}/passages")
    for name in PASSAGE_SETS:
        for raw in read_jsonl(data / "attribution" / f"{name}.jsonl.gz"):
            _put(split, name, raw, _passage_row(raw, name, chooser))
    for row, source in _unsupported_tokens(data):
        _put(split, row.source, source, row)
    for name in ("fewrel_wiki80", "knowledgenet", "rel2text", "semeval2010_8"):
        for row, source in _sentence_to_triple(data, name, seed):
            _put(split, name, source, row)
    for row, source in _document_relations(data, seed):
        _put(split, row.source, source, row)
    return split


def _put(split: Split, name: str, raw: Mapping[str, Any], row: Row) -> None:
    (split.validation if measures(name, str(raw["group"])) else split.train).append(row)


def _passage_row(raw: Mapping[str, Any], source: str, chooser: random.Random) -> Row:
    """An answer with its passages, which are numbered statements or one premise."""
    label = raw["label"]
    category: tuple[int, ...]
    if label == "not_attributable":
        nli, category = NOT_ENTAILMENT, (1, 2, 3)
    elif label == "attributable":
        nli, category = 0, (0,)
    else:
        category = (_CATEGORIES.index(label),)
        nli = (0, 1, 2, 1)[category[0]]
    texts = [clean(text) for text in raw["evidence"]]
    statements = tuple(part for text in texts for part in split_sentences(text))[:_SENTENCES]
    marked = chooser.random() < MARKED_SHARE
    return Row(
        premise="" if marked else " ".join(texts),
        hypothesis=clean(raw["answer"]),
        source=source,
        nli=nli,
        attribution=category,
        claim=0,
        statements=statements if marked else (),
        context=clean(raw["question"]),
        span=() if nli == 0 else None,
    )


def _unsupported_tokens(data: Path) -> Iterator[tuple[Row, Mapping[str, Any]]]:
    """WiCE: claims with the words that their source does not support, marked by people."""
    for raw in read_jsonl(data / "attribution" / "wice_unsupported_tokens.jsonl.gz"):
        missing = [place for place, wrong in enumerate(raw["token_not_supported"]) if wrong]
        tokens = raw["tokens"]
        text = " ".join(tokens)
        span: tuple[int, int] | None = None
        if missing and missing[-1] - missing[0] + 1 == len(missing):
            start = sum(len(token) + 1 for token in tokens[: missing[0]])
            end = sum(len(token) + 1 for token in tokens[: missing[-1] + 1]) - 1
            span = (start, end)
        statements = [part for item in raw["evidence"] for part in split_sentences(clean(item))]
        yield (
            Row("", text, "wice_tokens", 1, (1,), claim=0, statements=tuple(statements), span=span),
            raw,
        )


def _sentence_to_triple(
    data: Path, name: str, seed: int
) -> Iterator[tuple[Row, Mapping[str, Any]]]:
    """A sentence and its triple, another relation of the same names, and turned roles."""
    chooser = random.Random(f"{seed}/{name}")
    raws = list(read_jsonl(data / "triples" / f"{name}.jsonl.gz"))
    relations = sorted({item["rel"] for raw in raws for item in raw["triples"]})
    for raw in raws:
        sentence = clean(raw["sent"])
        stated = {(item["sub"], item["rel"], item["obj"]) for item in raw["triples"]}
        for item in raw["triples"][:2]:
            label = raw.get("label", "entailment")
            yield _pair(sentence, item["sub"], item["rel"], item["obj"], label, name), raw
            if label != "entailment":
                continue
            other = chooser.choice(relations)
            if (item["sub"], other, item["obj"]) not in stated and chooser.random() < 0.6:
                yield _pair(sentence, item["sub"], other, item["obj"], "neutral", name), raw
            if chooser.random() < 0.25 and (item["obj"], item["rel"], item["sub"]) not in stated:
                turned = _pair(
                    sentence, item["obj"], item["rel"], item["sub"], "not_entailment", name
                )
                yield turned, raw


def _document_relations(data: Path, seed: int) -> Iterator[tuple[Row, Mapping[str, Any]]]:
    """Re-DocRED: stated relations, and relations borrowed for pairs between which none holds."""
    name = "redocred_sentences"
    chooser = random.Random(f"{seed}/{name}")
    raws = list(read_jsonl(data / "triples" / f"{name}.jsonl.gz"))
    by_types: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for raw in raws:
        for item in raw["triples"]:
            by_types[tuple(item["types"])].append(item["rel"])
    for raw in raws:
        sentence = clean(raw["sent"])
        for item in raw["triples"]:
            yield _pair(sentence, item["sub"], item["rel"], item["obj"], "entailment", name), raw
        some = raw["no_relation"]
        for sub, obj, *types in chooser.sample(some, min(len(some), len(raw["triples"]) + 1)):
            known = by_types.get(tuple(types))
            if known:
                borrowed = chooser.choice(known)
                yield _pair(sentence, sub, borrowed, obj, "not_entailment", name), raw


def _pair(sentence: str, sub: str, rel: str, obj: str, label: str, source: str) -> Row:
    triple = Triple(subject=clean(sub), property=readable(rel), value=clean(obj))
    return nli_row(sentence, triple.text, label, source)
