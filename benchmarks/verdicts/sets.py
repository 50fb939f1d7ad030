"""The sets of the verdicts table: readers from public files to cases.

What a set cannot tell it leaves out: sets of texts with their triples tell support and its lack,
where one of the triples is removed, and no contradictions.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import read_jsonl
from benchmarks.verdicts import exchanges, people
from benchmarks.verdicts.cases import Case
from guardrail.core.text.names import label_in
from guardrail.core.text.words import tokenise
from guardrail.core.types import Evidence, Passage, Triple, Verdict

__all__ = ["SETS", "read_set", "statement_case"]

RELATIONS = Path(__file__).parent.parent / "relations.json"

NEAR_TRUE = frozenset({"yes", "no", "true", "false"})
"""Values that occur in no text."""


def read_set(name: str, data: Path, limit: int | None, *, seed: int = 1) -> list[Case]:
    """The cases of one set, shuffled.

    Args:
        name: One of ``SETS``.
        data: The folder of public data.
        limit: Most cases; None for all.
        seed: Chooses the order, and what is removed.

    Raises:
        InputError: A file is missing.
    """
    cases = list(SETS[name](name, data, random.Random(f"{seed}/{name}")))
    random.Random(f"{seed}/order").shuffle(cases)
    return cases[:limit]


def statement_case(name: str, row: Mapping[str, Any]) -> Case:
    """The case of a row of the statements written for this project."""
    evidence: tuple[Evidence, ...] = tuple(
        Passage(text=item["passage"])
        if "passage" in item
        else Triple(subject=item["triple"][0], property=item["triple"][1], value=item["triple"][2])
        for item in row["evidence"]
    )
    return Case(
        name,
        evidence,
        row["sentence"],
        Verdict(row["label"]),
        row["question"],
        row["context"],
        row["span"],
        tuple(row["cites"]) if row["label"] in ("supported", "unsupported") else None,
    )


def _statements(kind: str) -> Callable[[str, Path, random.Random], Iterator[Case]]:
    def read(name: str, data: Path, rng: random.Random) -> Iterator[Case]:
        part = "train" if name.startswith("train ") else "valid"
        for row in read_jsonl(data / "statements" / f"{part}.jsonl.gz"):
            if kind not in row["evidence"][0]:
                continue
            yield statement_case(name, row)

    return read


def _texts_of(
    name: str, texts: Sequence[tuple[str, tuple[Triple, ...]]], rng: random.Random
) -> Iterator[Case]:
    """Each text with all its triples, and with one removed that it states."""
    for text, triples in texts:
        stated = tuple(n for n, triple in enumerate(triples) if _stated(triple, text))
        yield Case(name, triples, text, Verdict.SUPPORTED, stated=stated)
        gone = [n for n in stated if not _elsewhere(triples, n)]
        if len(triples) > 1 and gone:
            place = rng.choice(gone)
            left = triples[:place] + triples[place + 1 :]
            yield Case(name, left, text, Verdict.UNSUPPORTED, span=triples[place].value)


def _stated(triple: Triple, text: str) -> bool:
    if triple.value.lower() in NEAR_TRUE:
        return False
    return bool(label_in(text, tokenise(text), triple.value))


def _elsewhere(triples: Sequence[Triple], place: int) -> bool:
    """True if other triples contain the value as well, so that nothing is lost without it."""
    value = triples[place].value
    return any(
        label_in(text, tokenise(text), value)
        for n, triple in enumerate(triples)
        if n != place
        for text in (triple.value, triple.subject)
    )


def _plain(text: str) -> str:
    """A label of DART as plain words."""
    return " ".join(text.replace("_", " ").strip('"').split())


def _dart(name: str, data: Path, rng: random.Random) -> Iterator[Case]:
    yield from _texts_of(name, _dart_texts(name, data), rng)


def _dart_texts(name: str, data: Path) -> list[tuple[str, tuple[Triple, ...]]]:
    texts = []
    for row in read_jsonl(data / "triples" / "dart_dev.jsonl.gz"):
        triples = tuple(
            Triple(subject=_plain(item), property=label, value=_plain(value))
            for item, label, value in row["triples"]
            if _plain(value) and "[" not in item
        )
        text = " ".join(row["texts"][0].split())
        webnlg = row.get("source") == "webnlg"
        if triples and text and webnlg == (name == "webnlg"):
            texts.append((text, triples))
    return texts


def _extracted(file: str) -> Callable[[str, Path, random.Random], Iterator[Case]]:
    def read(name: str, data: Path, rng: random.Random) -> Iterator[Case]:
        texts = []
        for row in read_jsonl(data / "triples" / file):
            triples = tuple(
                Triple(subject=str(item["sub"]), property=str(item["rel"]), value=str(item["obj"]))
                for item in row["triples"]
                if item["sub"] and item["rel"] and item["obj"]
            )
            if triples:
                texts.append((" ".join(row["sent"].split()), triples))
        yield from _texts_of(name, texts, rng)

    return read


def _rel2text(name: str, data: Path, rng: random.Random) -> Iterator[Case]:
    for row in read_jsonl(data / "triples" / "rel2text.jsonl.gz"):
        triples = tuple(
            Triple(subject=str(item["sub"]), property=str(item["rel"]), value=str(item["obj"]))
            for item in row["triples"]
        )
        label = Verdict.SUPPORTED if row["label"] == "entailment" else Verdict.UNSUPPORTED
        yield Case(name, triples, row["sent"], label)


def _relations(name: str, data: Path, rng: random.Random) -> Iterator[Case]:
    for group in json.loads(RELATIONS.read_text(encoding="utf-8")):
        facts = tuple(Triple(subject=s, property=p, value=v) for s, p, v in group["facts"])
        for text, true in group["statements"]:
            yield Case(name, facts, text, Verdict.SUPPORTED if true else Verdict.UNSUPPORTED)


def _people(name: str, data: Path, rng: random.Random) -> Iterator[Case]:
    texts = people.biographies(rng)
    yield from _texts_of(name, texts, rng)


def _properties(name: str, data: Path, rng: random.Random) -> Iterator[Case]:
    facts = [triples for item in ("dart", "webnlg") for _, triples in _dart_texts(item, data)]
    yield from exchanges.label_exchanges(name, facts, rng)
    yield from exchanges.prose_exchanges(name, [item for _, item in people.biographies(rng)], rng)


SETS: dict[str, Callable[[str, Path, random.Random], Iterator[Case]]] = {
    "triples": _statements("triple"),
    "passages": _statements("passage"),
    "train triples": _statements("triple"),
    "train passages": _statements("passage"),
    "dart": _dart,
    "webnlg": _dart,
    "people": _people,
    "relations": _relations,
    "properties": _properties,
    "rel2text": _rel2text,
    "refchecker": _extracted("refchecker_extracted.jsonl.gz"),
}
"""Readers by name of set. What is developed on: the two of ``train``; all others only measure."""
