"""Export of the score log: JSON lines, or a CSV file with one row per response."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from guardrail.core.errors import InputError, RecordError
from guardrail.core.types import Category
from guardrail.log.entries import Record, RecordFilter, to_json
from guardrail.log.records import SQLiteLog

__all__ = ["export"]

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a text that a spreadsheet would run as a formula."""


def export(log: SQLiteLog, target: Path, where: RecordFilter | None = None) -> int:
    """Write the records that meet the conditions to a file.

    Args:
        log: The score log; read twice for CSV, whose columns must be known first.
        target: ``.jsonl``, or ``.csv`` with a column for each score (``score.NAME``), stage
            (``ms.NAME``) and tag (``tag.NAME``).
        where: Which records.

    Returns:
        Number of records written.

    Raises:
        InputError: The file name has another ending.
        RecordError: The log cannot be read or the file not written.
    """
    try:
        if target.suffix == ".jsonl":
            with target.open("w", encoding="utf-8") as file:
                return sum(bool(file.write(f"{to_json(item)}\n")) for item in log.records(where))
        elif target.suffix == ".csv":
            columns = dict[str, None]()
            for record in log.records(where):
                columns |= dict.fromkeys(_row(record))
            with target.open("w", encoding="utf-8", newline="", errors="replace") as file:
                table = csv.DictWriter(file, columns, restval="")
                table.writeheader()
                rows = map(_row, log.records(where))
                return sum(bool(table.writerow(row)) for row in rows)
        raise InputError(f"cannot export to {target.name!r}; end it in .csv or .jsonl")
    except OSError as error:
        raise RecordError(f"cannot write {target}: {error}") from error


def _row(record: Record) -> dict[str, object]:
    answer = record.answer
    kinds = Counter(sentence.category for sentence in answer.sentences)
    scores = {"overall": answer.scorecard.overall, **answer.scorecard.scores}
    row: dict[str, object] = {
        "id": record.id,
        "created": record.created.isoformat(),
        "answer_id": answer.id,
        "question": answer.question,
        "text": answer.text,
        "original": answer.original,
        "action": answer.action.value,
        "reasons": "; ".join(answer.reasons),
        "entities": "; ".join(entity.entity.id for entity in answer.entities),
        "errors": "; ".join(f"{error.part}: {error.message}" for error in answer.errors),
        "versions": "; ".join(f"{part}: {name}" for part, name in answer.versions.items()),
        "attempts": answer.attempts,
        "sentences": len(answer.sentences),
        "na": sum(sentence.na for sentence in answer.sentences),
        **{category.value: kinds[category] for category in Category},
        **{f"score.{name}": score.value for name, score in scores.items()},
        **{f"ms.{stage}": spent for stage, spent in answer.timings_ms.items()},
        **{f"tag.{name}": value for name, value in record.tags.items()},
    }
    return {name: _safe(value) for name, value in row.items()}


def _safe(value: object) -> object:
    """Put a quotation mark before a text that a spreadsheet would run."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
