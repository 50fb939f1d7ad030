"""Files as evidence: documents as passages, tables as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from guardrail.core.errors import InputError
from guardrail.core.rows import TABLE_FILES
from guardrail.core.types import Evidence, Passage, Triple
from guardrail.sources.tables import MOST_CELLS, Table

__all__ = ["evidence_of_bytes", "evidence_of_files"]


def evidence_of_files(
    files: Iterable[Path], links: Mapping[str, str] | None = None
) -> tuple[Evidence, ...] | None:
    """Read the passages of documents and the cells of tables; None if there are no files.

    Args:
        files: The files.
        links: Table name (its file name without suffix) for each column that holds row ids of that
            table. Such a cell is read as the name of the row.

    Raises:
        InputError: A file cannot be read or is empty, or a link names no column or table of the
            files.
        MissingExtraError: The extra ``documents`` is not installed.
    """
    paths = list(files)
    tables = {path: Table.from_file(path) for path in paths if _is_table(path)}
    cells = {path: _cells(table, str(path)) for path, table in tables.items()}
    for column, target in (links or {}).items():
        if target not in {path.stem for path in tables}:
            raise InputError(
                f"the link {column!r} leads to {target!r}, which is no table of the files"
            )
        if all(column not in table.columns for table in tables.values()):
            raise InputError(f"the link {column!r} is no column of the tables")
        rows = [cell for path in tables if path.stem == target for cell in cells[path]]
        for path, table in tables.items():
            if column in table.columns and path.stem != target:
                cells[path] = _linked(cells[path], column, rows)
    found = (cells[path] if path in cells else Passage.from_file(path) for path in paths)
    return tuple(chain.from_iterable(found)) if paths else None


def _linked(cells: Sequence[Triple], column: str, rows: Sequence[Triple]) -> tuple[Triple, ...]:
    """The cells, with row ids in a column replaced by the names of the rows."""
    wanted = {cell.value for cell in cells if cell.property == column}
    names: dict[str, dict[str, str]] = {}
    for row in rows:
        names.setdefault(row.property, {}).setdefault(row.value, row.subject)
    # The id column of the other table is the one that has most of the values.
    best = max(names.values(), key=lambda ids: len(wanted & ids.keys()), default={})
    return tuple(
        cell.model_copy(update={"value": best.get(cell.value, cell.value)})
        if cell.property == column
        else cell
        for cell in cells
    )


def evidence_of_bytes(data: bytes, name: str) -> tuple[Evidence, ...]:
    """Read the bytes of a file.

    Args:
        data: The bytes of the file.
        name: Its name; the suffix determines the format.

    Raises:
        InputError: It cannot be read, is empty, or is a table of more than ``MOST_CELLS`` cells.
        MissingExtraError: The extra ``documents`` is not installed.
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
