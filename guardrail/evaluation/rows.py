"""Answers with the verdicts that people expect: JSON lines of ``eval``, tables of ``tune``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, NamedTuple

from pydantic import ValidationError, field_validator

from guardrail.core.errors import InputError, file_errors
from guardrail.core.fields import in_short
from guardrail.core.rows import TABLE_FILES, cell_text, read_rows
from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Evidence, Verdict
from guardrail.lines import CheckRow, EvidenceRow, first_problem


class EvalRow(CheckRow):
    """An answer of a chatbot, its evidence, and the expected verdict.

    Attributes:
        expected: ``supported``, ``unsupported``, ``contradicted`` or ``no_claim``; None if every
            claim must be supported.
    """

    other_names: ClassVar[Mapping[str, str]] = {
        **EvidenceRow.other_names,
        **dict.fromkeys(("label", "verdict", "gold"), "expected"),
        **dict.fromkeys(("input", "user_input", "query"), "question"),
        **dict.fromkeys(("output", "actual_output", "response"), "answer"),
    }
    expected: Verdict | None = None

    @field_validator("expected", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if not isinstance(value, str | bool | int):
            return value
        # A verdict, or yes and no as tables write them
        words = lexicon("function_words")
        labels = {
            **dict.fromkeys(("supported", "1", *words["yes"]), Verdict.SUPPORTED),
            **dict.fromkeys(("unsupported", "0", *words["no"]), Verdict.UNSUPPORTED),
            "contradicted": Verdict.CONTRADICTED,
            "no_claim": Verdict.NO_CLAIM,
        }
        found = labels.get(str(value).strip().lower())
        if found is None:
            raise ValueError(f"there is no {in_short(value)}; known: {', '.join(labels)}")
        return found


class LabelledRow(NamedTuple):
    """An answer, or one sentence of it, that people judged.

    Attributes:
        label: ``supported``, ``unsupported`` or ``contradicted``.
        group: The evidence as written, else the answer; rows of a group are not independent.
    """

    question: str
    answer: str
    evidence: tuple[Evidence, ...]
    label: Verdict
    group: str


def read_labelled(path: Path, files: Sequence[Evidence] | None = None) -> list[LabelledRow]:
    """Read a table of labelled answers: CSV, TSV or JSON lines.

    Args:
        path: The file. Columns: ``question`` (optional), ``answer`` or ``sentence``, ``evidence``
            or ``passages``, ``label`` or ``expected``. A cell of evidence is a text, or a JSON
            list of items for ``evidence_items``.
        files: The evidence of all rows if the table has no column of evidence; None for none.

    Raises:
        InputError: The file cannot be read, has no rows or lacks a column, or a row is wrong.
    """
    kind = TABLE_FILES.get(path.suffix.lower(), "csv")
    with file_errors("read", path), path.open("rb") as file:
        table = list(read_rows(file, kind, str(path)))
    rows = [
        _labelled(f"{path}, line {line}", cells, files)
        for line, cells in table
        if any(map(cell_text, cells.values()))
    ]
    if not rows:
        raise InputError(f"{path} has no rows below its first line")
    return rows


def _labelled(
    where: str, cells: Mapping[str, object], files: Sequence[Evidence] | None
) -> LabelledRow:
    named = {name.strip().lower(): cell for name, cell in cells.items() if name}
    fields: dict[str, object] = {}
    columns = {
        "question": ("question",),
        "answer": ("answer", "sentence"),
        "evidence": ("evidence", "passages"),
        "expected": ("label", "expected"),
    }
    for field, names in columns.items():
        if found := [named[name] for name in names if name in named]:
            fields[field] = found[0].strip() if isinstance(found[0], str) else found[0]
            if field in ("answer", "expected") and fields[field] in (None, ""):
                raise InputError(f"{where}: no {names[0]}")
        elif field != "question" and (field != "evidence" or files is None):
            hint = "; or name files of evidence in the settings" if field == "evidence" else ""
            raise InputError(
                f"{where}: there is no column {' or '.join(map(repr, names))}; there are "
                f"{', '.join(map(repr, named))}{hint}"
            )
    written = fields.get("evidence")
    if isinstance(written, str) and written.startswith("["):
        with suppress(ValueError, RecursionError):  # may be a text that begins with a bracket
            fields["evidence"] = json.loads(written)
    try:
        row = EvalRow.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"{where}: {first_problem(error)}") from None
    if row.expected is None or row.expected is Verdict.NO_CLAIM:
        raise InputError(f"{where}: the label must be supported, unsupported or contradicted")
    evidence = tuple(files or ()) if row.items is None else row.items
    group = " ".join(str(row.answer if written is None else written).split())
    return LabelledRow(row.question, row.answer, evidence, row.expected, group)
