"""Files as evidence: documents as passages, tables as rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from guardrail.core.errors import InputError
from guardrail.core.rows import TABLE_FILES
from guardrail.core.types import Evidence, Passage, Triple
from guardrail.sources.tables import MOST_CELLS, Table

__all__ = ["evidence_of_bytes", "evidence_of_files"]


def evidence_of_files(files: Iterable[Path]) -> tuple[Evidence, ...] | None:
    """Read the passages of each document, and the cells of each table; None of no files.

    Raises:
        InputError: A file cannot be read, or holds no text and no rows.
        MissingExtraError: It takes the extra ``documents``.
    """
    found: list[Evidence] = []
    for path in (paths := list(files)):
        if _is_table(path):
            found += _cells(Table.from_file(path), str(path))
        else:
            found += Passage.from_file(path)
    return tuple(found) if paths else None


def evidence_of_bytes(data: bytes, name: str) -> tuple[Evidence, ...]:
    """Read a file that is at hand as bytes.

    Args:
        data: The bytes of the file.
        name: Its name; the ending says how it is read.

    Raises:
        InputError: It cannot be read, holds no text and no rows, or is a table of more than
            ``MOST_CELLS``.
        MissingExtraError: It takes the extra ``documents``.
    """
    if _is_table(Path(name)):
        return _cells(Table.from_bytes(data, name, most_cells=MOST_CELLS), name)
    return Passage.from_bytes(data, name)


def _cells(table: Table, source: str) -> tuple[Triple, ...]:
    if not len(table):
        raise InputError(f"{source} holds no rows")
    return table.triples


def _is_table(path: Path) -> bool:
    return path.suffix.lower() in TABLE_FILES
