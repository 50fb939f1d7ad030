"""Statements: sentences of chatbot answers with the evidence that they are judged against.

They come from ``DATA/statements`` and from this folder's own ``statements/*.jsonl``, which hold
one evidence set a line: ``set``, ``domain``, ``voice``, ``evidence`` and its ``rows``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.data import held_out
from guardrail.core.types import Triple, Verdict
from judges.batching import split_sentences

__all__ = [
    "Statement",
    "is_held_out",
    "own_statements",
    "read_own_rows",
    "read_statement_rows",
    "shared_statements",
    "statements_in",
]

OWN = Path(__file__).parent / "statements"

Evidence = list[dict[str, Any]]


class Statement(NamedTuple):
    """One sentence with its evidence and what is right of it.

    Attributes:
        group: Name of the evidence set; sets are never split between training and validation.
        kind: The phenomenon, such as ``number_changed``.
        triples: Whether all of the evidence is triples.
        statements: The evidence as numbered statements.
        windows: Number of the subject of triples, or of the passage, that each of them is of;
            empty where the evidence is not the whole of a set.
        question: What the user asked.
        context: The sentences of the answer before this one, or nothing.
        sentence: The sentence to judge.
        verdict: The right verdict.
        span: Offsets in the sentence of the words that carry the problem; None without one.
        cited: Places of the statements that carry the sentence, or conflict with it.
    """

    group: str
    kind: str
    triples: bool
    statements: tuple[str, ...]
    question: str
    context: str
    sentence: str
    verdict: Verdict
    span: tuple[int, int] | None
    cited: frozenset[int]
    windows: tuple[int, ...] = ()

    @property
    def before(self) -> str:
        """The question and the sentences before this one."""
        return " ".join(f"{self.question} {self.context}".split())


def shared_statements(data: Path, part: str) -> Iterator[Statement]:
    """The statements of the data folder.

    Args:
        data: Folder with the subfolder ``statements``.
        part: ``train``, ``valid`` or ``valid_hard``.
    """
    for row in read_statement_rows(data, part):
        yield _statement(row["set"], row["evidence"], row)


def read_statement_rows(data: Path, part: str) -> Iterator[dict[str, Any]]:
    """The same as they lie in their file, by its fields."""
    with gzip.open(data / "statements" / f"{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def own_statements() -> Iterator[Statement]:
    """The statements that the project wrote itself."""
    for row in read_own_rows():
        yield _statement(row["set"], row["evidence"], row)


def read_own_rows() -> Iterator[dict[str, Any]]:
    """The same with the fields of the data folder's rows."""
    for path in sorted(OWN.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                one = json.loads(line)
                for row in one["rows"]:
                    yield row | {"set": one["set"], "evidence": one["evidence"]}


def statements_in(folder: Path) -> Iterator[Statement]:
    """The statements of a folder's files, one evidence set a line."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                one = json.loads(line)
                for row in one["rows"]:
                    yield _statement(one["set"], one["evidence"], row)


def is_held_out(group: str) -> bool:
    """Whether a set of the project's own statements measures, and so never trains."""
    return held_out(group, OWN_SHARE, salt="own statements")


OWN_SHARE = 0.1
"""Share of the project's own sets that are held out."""


def _statement(group: str, evidence: Evidence, row: Mapping[str, Any]) -> Statement:
    sentence = " ".join(row["sentence"].split())
    span = " ".join(row["span"].split())
    start = sentence.find(span) if span else -1
    statements, windows, cited = _numbered(evidence, row["cites"])
    return Statement(
        group=group,
        kind=row["kind"],
        triples=all("triple" in item for item in evidence),
        statements=tuple(statements),
        question=row["question"],
        context=row["context"],
        sentence=sentence,
        verdict=Verdict(row["label"]),
        span=None if start < 0 else (start, start + len(span)),
        cited=frozenset(cited),
        windows=tuple(windows),
    )


def _triple(parts: list[str]) -> str:
    subject, name, value = (" ".join(part.split()) for part in parts)
    return Triple(subject=subject, property=name, value=value).statement


def _numbered(evidence: Evidence, cites: list[int | str]) -> tuple[list[str], list[int], set[int]]:
    """Triples and the sentences of passages, their windows, and the places of those cited.

    A triple is cited by its place in the evidence, sentences by a stretch of their passage.
    """
    statements: list[str] = []
    windows: list[int] = []
    subjects: dict[str, int] = {}
    cited: set[int] = set()
    stretches = [cite for cite in cites if isinstance(cite, str)]
    for place, item in enumerate(evidence):
        if "triple" in item:
            if place in cites:
                cited.add(len(statements))
            statements.append(_triple(item["triple"]))
            windows.append(subjects.setdefault(item["triple"][0], len(subjects)))
            continue
        for text, touched in _sentences(item["passage"], stretches):
            if touched:
                cited.add(len(statements))
            statements.append(text)
            windows.append(place)
    return statements, windows, cited


def _sentences(passage: str, stretches: list[str]) -> Iterator[tuple[str, bool]]:
    """The sentences of a passage, and whether a cited stretch touches them."""
    found = [
        (start, start + len(stretch))
        for stretch in stretches
        if (start := passage.find(stretch)) >= 0
    ]
    end = 0
    for text in split_sentences(passage):
        start = passage.index(text, end)
        end = start + len(text)
        yield " ".join(text.split()), any(a < end and start < b for a, b in found)
