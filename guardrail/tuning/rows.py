"""Reads a file of labelled answers: CSV with a question, an answer, its evidence and a label."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from guardrail.core.errors import InputError
from guardrail.core.fields import in_short
from guardrail.core.rows import cell_text, read_rows
from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Evidence, Passage, Verdict
from guardrail.sources.items import evidence_items

__all__ = ["LABELS", "LabelledRow", "read_labelled"]

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "answer": ("answer", "sentence"),
    "evidence": ("evidence", "passages"),
    "label": ("label",),
}
"""Columns with all their names."""

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
        evidence: What it is judged by.
        label: ``supported``, ``unsupported`` or ``contradicted``.
        group: The evidence as written, else the answer; rows of one group are not independent.
    """

    question: str
    answer: str
    evidence: tuple[Evidence, ...]
    label: Verdict
    group: str


def read_labelled(path: Path, files: Sequence[Evidence] | None = None) -> list[LabelledRow]:
    """Read a CSV file whose first line names its columns.

    Args:
        path: The file. Columns: ``question`` and ``evidence`` or ``passages`` (both may be left
            out), ``answer`` or ``sentence``, ``label``. A cell of evidence is a text, or a JSON
            list of texts, ``{"text", "id", "title", "url"}`` and ``[subject, property, value]``.
        files: The evidence of all rows where the file has no column of it; None for none.

    Raises:
        InputError: The file cannot be read, has no rows or not these columns, or a row is wrong.
    """
    places: dict[str, str] = {}
    rows = []
    try:
        with path.open("rb") as file:
            for line, cells in read_rows(file, "csv", str(path)):
                places = places or _places(path, list(cells), files)
                if any(map(cell_text, cells.values())):
                    rows.append(_row(f"{path}, line {line}", cells, places, files or ()))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if not rows:
        raise InputError(f"{path} has no rows below its first line")
    return rows


def _places(path: Path, head: Sequence[str], files: Sequence[Evidence] | None) -> dict[str, str]:
    """The name that each column has in the file.

    Raises:
        InputError: One is missing.
    """
    named = {name.strip().lower(): name for name in reversed(head)}
    places = {"question": named["question"]} if "question" in named else {}
    for column, names in COLUMNS.items():
        found = [named[name] for name in names if name in named]
        if found:
            places[column] = found[0]
        elif column != "evidence" or files is None:
            own = "; files of evidence in the settings will do" if column == "evidence" else ""
            raise InputError(
                f"{path} has no column {' or '.join(map(repr, names))}; its first line names "
                f"{', '.join(repr(name) for name in head if name)}{own}"
            )
    return places


def _row(
    where: str,
    cells: Mapping[str, object],
    places: Mapping[str, str],
    files: Sequence[Evidence],
) -> LabelledRow:
    fields = {column: str(cells[name] or "").strip() for column, name in places.items()}
    for column in ("answer", "label"):
        if not fields[column]:
            raise InputError(f"{where}: no {column}")
    label = LABELS.get(fields["label"].lower())
    if label is None:
        raise InputError(
            f"{where}: there is no label {in_short(fields['label'])}; known: {', '.join(LABELS)}"
        )
    written = fields.get("evidence")
    evidence = tuple(files) if written is None else _evidence(where, written)
    group = " ".join((fields["answer"] if written is None else written).split())
    return LabelledRow(fields.get("question", ""), fields["answer"], evidence, label, group)


def _evidence(where: str, cell: str) -> tuple[Evidence, ...]:
    if not cell.startswith("["):
        return (Passage(text=cell),) if cell else ()
    try:
        items = json.loads(cell)
    except (ValueError, RecursionError):
        return (Passage(text=cell),)  # a text that begins with a bracket
    return evidence_items(items, f"{where}: evidence")
