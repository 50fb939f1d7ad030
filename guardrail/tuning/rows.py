"""Reads a file of labelled answers: CSV with a question, an answer, its evidence and a label."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from guardrail.core.errors import InputError
from guardrail.core.fields import in_short
from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Evidence, Passage, Verdict
from guardrail.sources.items import evidence_items

__all__ = ["LABELS", "LabelledRow", "read_labelled"]

LONGEST_CELL = 10_000_000
"""Characters of one cell; evidence may be a whole document."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "answer": ("answer", "sentence"),
    "evidence": ("evidence", "passages"),
    "label": ("label",),
}
"""Columns that are needed, with all their names."""

LABELS: Mapping[str, Verdict] = {
    **dict.fromkeys(("supported", "1", *lexicon("function_words")["yes"]), Verdict.SUPPORTED),
    **dict.fromkeys(("unsupported", "0", *lexicon("function_words")["no"]), Verdict.UNSUPPORTED),
    "contradicted": Verdict.CONTRADICTED,
}
"""How a label may be written: a verdict, or yes and no as tables write them."""


class LabelledRow(NamedTuple):
    """An answer that people judged.

    Attributes:
        question: The question; may be empty.
        answer: The answer, or one sentence of it.
        evidence: What it was judged by.
        label: ``supported``, ``unsupported`` or ``contradicted``.
        group: The evidence as written; rows with the same are not independent.
    """

    question: str
    answer: str
    evidence: tuple[Evidence, ...]
    label: Verdict
    group: str


def read_labelled(path: Path) -> list[LabelledRow]:
    """Read a CSV file whose first line names its columns.

    Args:
        path: The file; commas, semicolons or tabs between cells. Columns: ``question`` (may be
            left out), ``answer`` or ``sentence``, ``evidence`` or ``passages``, ``label``. A cell
            of evidence is a text, or a JSON list of texts, ``{"text", "id", "title", "url"}`` and
            ``[subject, property, value]``.

    Raises:
        InputError: The file cannot be read, has no rows or not these columns, or a row is wrong.
    """
    csv.field_size_limit(LONGEST_CELL)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, delimiter=_delimiter(file.readline()))
            file.seek(0)
            head = [name.strip().lower() for name in next(lines, [])]
            places = _places(path, head)
            rows = [
                _row(f"{path}, line {lines.line_num}", cells, places)
                for cells in lines
                if any(cell.strip() for cell in cells)
            ]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8") from error
    except csv.Error as error:
        raise InputError(f"{path} is no CSV: {error}") from error
    if not rows:
        raise InputError(f"{path} has no rows below its first line")
    return rows


def _delimiter(head: str) -> str:
    """What stands between the names of the columns most often."""
    return max(",;\t", key=head.count)


def _places(path: Path, head: Sequence[str]) -> dict[str, int]:
    """The place of each column.

    Raises:
        InputError: One is missing.
    """
    if not any(head):
        raise InputError(f"{path} is empty; its first line must name the columns")
    places = {"question": head.index("question")} if "question" in head else {}
    for column, names in COLUMNS.items():
        found = [name for name in names if name in head]
        if not found:
            raise InputError(
                f"{path} has no column {' or '.join(map(repr, names))}; its first line names "
                f"{', '.join(repr(name) for name in head if name)}"
            )
        places[column] = head.index(found[0])
    return places


def _row(where: str, cells: Sequence[str], places: Mapping[str, int]) -> LabelledRow:
    fields = {
        column: cells[place].strip() if place < len(cells) else ""
        for column, place in places.items()
    }
    for column in ("answer", "label"):
        if not fields[column]:
            raise InputError(f"{where}: no {column}")
    label = LABELS.get(fields["label"].lower())
    if label is None:
        raise InputError(
            f"{where}: there is no label {in_short(fields['label'])}; known: {', '.join(LABELS)}"
        )
    evidence = _evidence(where, fields["evidence"])
    group = " ".join(fields["evidence"].split())
    return LabelledRow(fields.get("question", ""), fields["answer"], evidence, label, group)


def _evidence(where: str, cell: str) -> tuple[Evidence, ...]:
    if not cell.startswith("["):
        return (Passage(text=cell),) if cell else ()
    try:
        items = json.loads(cell)
    except (ValueError, RecursionError):
        return (Passage(text=cell),)  # a text that begins with a bracket
    return evidence_items(items, f"{where}: evidence")
