"""The score log's tables, by version, and how an older file is brought up to date."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from guardrail.core.errors import RecordError

__all__ = ["VERSION", "file_at", "migrate", "open_to_write"]

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE responses (
            id TEXT PRIMARY KEY, created TEXT NOT NULL, action TEXT NOT NULL,
            overall REAL, payload TEXT NOT NULL)""",
        "CREATE INDEX responses_created ON responses (created)",
    ),
    (
        """CREATE TABLE feedback (
            record_id TEXT NOT NULL, sentence INTEGER, thumb INTEGER NOT NULL,
            correction TEXT, created TEXT NOT NULL)""",
        "CREATE INDEX feedback_record ON feedback (record_id)",
    ),
    (
        # Null in records of before: their answers' ids were no way to them.
        "ALTER TABLE responses ADD COLUMN answer_id TEXT",
        "CREATE INDEX responses_answer ON responses (answer_id, created)",
    ),
    (
        # Null in records and feedback that belong to nobody.
        "ALTER TABLE responses ADD COLUMN tenant TEXT",
        "ALTER TABLE feedback ADD COLUMN tenant TEXT",
    ),
)
"""Statement lists; applying the first n makes version n."""

VERSION = len(MIGRATIONS)


def open_to_write(path: Path, patience_s: float) -> sqlite3.Connection:
    """Open a log, with its tables in their current version.

    Args:
        path: The file; made where there is none.
        patience_s: Seconds to wait for another process's transaction.

    Raises:
        RecordError: A newer version of this package made the file.
    """
    db = sqlite3.connect(path, timeout=patience_s, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        # In WAL mode NORMAL survives the death of the process; only a power cut may lose the last
        # commits.
        db.execute("PRAGMA synchronous = NORMAL")
        migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db


def file_at(path: Path) -> tuple[int, int] | None:
    """What tells the file at a path from another one; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Bring a file to the current version, inside one transaction.

    Raises:
        RecordError: A newer version of this package made the file.
    """
    if _version(db) == VERSION:
        return
    with db:
        db.execute("BEGIN IMMEDIATE")
        # Read again under the lock: another process may have migrated meanwhile.
        found = _version(db)
        if found > VERSION:
            raise RecordError(
                f"{path} has schema version {found}, this package knows {VERSION}; upgrade it"
            )
        for statements in MIGRATIONS[found:]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
