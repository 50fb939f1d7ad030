"""The score log as a table: one row a response, for notebooks, warehouses and spreadsheets."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from guardrail.core.errors import InputError, MissingExtraError, RecordError
from guardrail.core.types import Category
from guardrail.log.entries import Record, RecordFilter, to_json
from guardrail.log.records import Readable

__all__ = ["export"]

ROWS_PER_GROUP = 5_000
"""Rows of Parquet held in memory at once."""
TEXTS = ("id", "created", "answer_id", "question", "text", "original", "action", "reasons",
         "entities", "errors", "versions")  # fmt: skip
COUNTS = ("attempts", "sentences", *(category.value for category in Category), "na")
SPREADSHEET_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export(log: Readable, target: Path, where: RecordFilter | None = None) -> int:
    """Write the records that meet the conditions to a file, by its ending.

    Args:
        log: The score log; read twice for CSV and Parquet, whose columns must be known first.
        target: ``.csv``, ``.parquet`` or ``.jsonl``; CSV and Parquet have a column for each
            score (``score.NAME``), stage (``ms.NAME``) and tag (``tag.NAME``).
        where: Which records.

    Returns:
        Number of records written.

    Raises:
        InputError: The ending is none of these.
        MissingExtraError: Parquet without pyarrow.
        RecordError: The log cannot be read or the file not written.
    """
    writers = {".csv": _csv, ".parquet": _parquet, ".jsonl": _lines, ".ndjson": _lines}
    writer = writers.get(target.suffix)
    if writer is None:
        raise InputError(f"cannot export to {target.name!r}; end it in .csv, .parquet or .jsonl")
    try:
        return writer(log, target, where)
    except OSError as error:
        raise RecordError(f"cannot write {target}: {error}") from error


def _lines(log: Readable, target: Path, where: RecordFilter | None) -> int:
    written = 0
    with target.open("w", encoding="utf-8") as file:
        for record in log.records(where):
            file.write(f"{to_json(record)}\n")
            written += 1
    return written


def _csv(log: Readable, target: Path, where: RecordFilter | None) -> int:
    numbers, tags = _columns(log.records(where))
    written = 0
    with target.open("w", encoding="utf-8", newline="", errors="replace") as file:
        table = csv.DictWriter(file, [*TEXTS, *COUNTS, *numbers, *tags], restval="")
        table.writeheader()
        for record in log.records(where):
            table.writerow({key: _safe(value) for key, value in _row(record).items()})
            written += 1
    return written


def _parquet(log: Readable, target: Path, where: RecordFilter | None) -> int:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    numbers, tags = _columns(log.records(where))
    schema = pyarrow.schema(
        [(name, pyarrow.string()) for name in TEXTS]
        + [(name, pyarrow.int64()) for name in COUNTS]
        + [(name, pyarrow.float64()) for name in numbers]
        + [(name, pyarrow.string()) for name in tags]
    )
    schema = schema.set(1, pyarrow.field("created", pyarrow.timestamp("us", tz="UTC")))
    written = 0
    rows = (_row(record) | {"created": record.created} for record in log.records(where))
    with parquet.ParquetWriter(target, schema) as table:
        while group := list(islice(rows, ROWS_PER_GROUP)):
            table.write_table(pyarrow.Table.from_pylist(group, schema=schema))
            written += len(group)
    return written


def _columns(records: Iterable[Record]) -> tuple[list[str], list[str]]:
    numbers: dict[str, None] = {}
    tags: dict[str, None] = {}
    for record in records:
        card = record.answer.scorecard
        numbers |= dict.fromkeys(["score.overall", *(f"score.{name}" for name in card.scores)])
        numbers |= dict.fromkeys(f"ms.{stage}" for stage in record.answer.timings_ms)
        tags |= dict.fromkeys(f"tag.{name}" for name in record.tags)
    return sorted(numbers), sorted(tags)


def _row(record: Record) -> dict[str, object]:
    answer = record.answer
    kinds = Counter(sentence.category for sentence in answer.sentences)
    card = answer.scorecard
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
    }
    row |= {category.value: kinds[category] for category in Category}
    row |= {f"score.{name}": score.value for name, score in card.scores.items()}
    row["score.overall"] = card.overall.value
    row |= {f"ms.{stage}": spent for stage, spent in answer.timings_ms.items()}
    return row | {f"tag.{name}": value for name, value in record.tags.items()}


def _safe(value: object) -> object:
    """A text that a spreadsheet would run as a formula gets a quotation mark before it."""
    if isinstance(value, str) and value.startswith(SPREADSHEET_FORMULA):
        return f"'{value}"
    return value
