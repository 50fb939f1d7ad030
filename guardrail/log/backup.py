"""A copy of a score log, made while others write to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from guardrail.core.errors import InputError, RecordError
from guardrail.log.records import SQLiteLog, open_log

__all__ = ["back_up"]


def back_up(log: Path, target: Path) -> int:
    """Write a whole copy of a score log to one file, whoever writes to the log meanwhile.

    Args:
        log: The log, in SQLite. Copying its file alone would leave out what still stands beside it.
        target: The file; one that is there is replaced.

    Returns:
        Number of records in the copy.

    Raises:
        InputError: The log is JSON lines, or the two are the same file.
        RecordError: The log cannot be read, or the file not written.
    """
    if target.resolve() == log.resolve():
        raise InputError(f"{target} is the log itself; name another file")
    begun = target.with_name(f"{target.name}.part")
    with closing(open_log(log, read_only=True)) as opened:
        if not isinstance(opened, SQLiteLog):
            raise InputError(f"{log} is JSON lines; copy it as any other file")
        try:
            begun.unlink(missing_ok=True)
            with (
                closing(sqlite3.connect(f"{log.resolve().as_uri()}?mode=ro", uri=True)) as source,
                closing(sqlite3.connect(begun)) as copy,
            ):
                source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # one file, with nothing beside it
                found = int(copy.execute("SELECT count(*) FROM responses").fetchone()[0])
            begun.replace(target)
        except (sqlite3.Error, OSError) as error:
            raise RecordError(f"cannot back up {log} to {target}: {error}") from error
    return found
