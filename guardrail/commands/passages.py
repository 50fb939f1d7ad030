"""Files as evidence: documents as passages, tables as rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from guardrail.core.types import Evidence, Passage

__all__ = ["read_passages"]


def read_passages(files: Iterable[Path]) -> tuple[Evidence, ...] | None:
    """The passages of each document, and the cells of each table; None of no files.

    Raises:
        InputError: A file cannot be read, or holds nothing.
        MissingExtraError: It takes the extra ``documents``.
    """
    from guardrail.sources.tables import TABLE_FILES, Table

    found: list[Evidence] = []
    for path in (paths := list(files)):
        table = path.suffix.lower() in TABLE_FILES
        found += Table.from_file(path) if table else Passage.from_file(path)
    return tuple(found) if paths else None
