"""Reads a domain: its tables as triples, its handbook as passages, its labelled answers."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from guardrail.core.types import Evidence, Passage, Triple, Verdict
from guardrail.core.types.answers import CheckRequest

__all__ = ["DOMAINS", "Domain", "Labelled", "LabelledSentence"]

DOMAINS = Path(__file__).parent / "domains"

HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)


class LabelledSentence(NamedTuple):
    """A labelled sentence, with its place in its answer."""

    start: int
    end: int
    label: Verdict


class Labelled(NamedTuple):
    """An answer whose sentences are labelled."""

    request: CheckRequest
    sentences: tuple[LabelledSentence, ...]

    def confirming(self) -> Labelled:
        """The same answer, to a question that repeats it and asks for confirmation."""
        question = f"I was told this: {self.request.answer} Is that right?"
        return self._replace(request=self.request.model_copy(update={"question": question}))


class Domain:
    """A company of the benchmark.

    Args:
        name: Name of its folder.
        folder: Where the domains are.
    """

    def __init__(self, name: str, folder: Path = DOMAINS) -> None:
        self.name = name
        self._folder = folder / name

    @cached_property
    def tables(self) -> dict[str, tuple[Triple, ...]]:
        """The triples of each table by its file's name.

        ``tables.json`` names the column that people use to name a row; a code of another
        table stands for what that row is called.
        """
        columns = json.loads((self._folder / "tables.json").read_text(encoding="utf-8"))
        rows = {name: self._rows(name) for name in columns}
        called = {
            next(iter(row.values())): row[columns[name]]
            for name, table in rows.items()
            for row in table
        }
        return {
            name: tuple(
                Triple(row[columns[name]], column, cell if first else called.get(cell, cell))
                for row in table
                for first, (column, cell) in _cells(row)
                if column != columns[name] and cell
            )
            for name, table in rows.items()
        }

    def _rows(self, name: str) -> list[dict[str, str]]:
        with (self._folder / "tables" / name).open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    @cached_property
    def handbook(self) -> dict[str, Passage]:
        """The sections of the handbook by their headings."""
        text = (self._folder / "handbook.md").read_text(encoding="utf-8")
        heads = list(HEADING.finditer(text))
        ends = [*(head.start() for head in heads[1:]), len(text)]
        return {
            head[1].strip(): Passage(
                text=text[head.end() : end].strip(), title=head[1].strip(), id=f"handbook {place}"
            )
            for place, (head, end) in enumerate(zip(heads, ends, strict=True))
        }

    def evidence(self, name: str) -> tuple[Evidence, ...]:
        """The evidence in a file, or in one section of the handbook."""
        file, _, section = name.partition("#")
        if section:
            return (self.handbook[section.strip()],)
        return self.tables[file] if file in self.tables else tuple(self.handbook.values())

    @cached_property
    def answers(self) -> list[Labelled]:
        """The labelled answers."""
        with (self._folder / "answers.jsonl").open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        found = []
        for row in rows:
            text, sentences = "", []
            for item in row["sentences"]:
                text += " " if text and not item["text"].startswith("\n") else ""
                start = len(text) + len(item["text"]) - len(item["text"].lstrip())
                text += item["text"]
                sentences.append(LabelledSentence(start, len(text), Verdict(item["label"])))
            evidence = tuple(item for name in row["evidence"] for item in self.evidence(name))
            request = CheckRequest(
                id=row["id"], question=row["question"], answer=text, evidence=evidence
            )
            found.append(Labelled(request, tuple(sentences)))
        return found


def _cells(row: dict[str, str]) -> Iterator[tuple[bool, tuple[str, str]]]:
    for place, (column, cell) in enumerate(row.items()):
        yield place == 0, (column, (cell or "").strip())
