"""The score log: one record per response, in SQLite or JSON lines.

A record is with the operating system before ``write`` returns, so that killing the process
afterwards loses nothing, and several processes may write to one file.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, Unpack

from guardrail.core.errors import RecordError
from guardrail.core.types import GuardedAnswer
from guardrail.log.base import Kept, RecordLog
from guardrail.log.entries import (
    Feedback,
    Record,
    RecordFilter,
    from_json,
    tagged,
    to_json,
)
from guardrail.log.line_log import JSONLinesLog
from guardrail.log.schema import file_at, open_to_write

__all__ = [
    "Feedback",
    "JSONLinesLog",
    "Readable",
    "Record",
    "RecordFilter",
    "SQLiteLog",
    "ScoreLog",
    "open_log",
    "tagged",
]

BUSY_TIMEOUT_S = 30.0
"""How long a writer waits for another process's transaction before it gives up."""
SHORTEST_ID = 8
"""Characters by which a person may name an answer."""
MADE_ID = re.compile(r"[0-9a-f]{32}(\.\d+)?")
"""Ids that a guardrail makes: a record of such an answer may be on its way."""
NO_LOG = ("no such table: responses", "file is not a database")
"""What SQLite says of a file that is something else."""
PURGE_EVERY = 1000
"""Old records are looked for after this many writes."""


class ScoreLog(Protocol):
    """Where responses are recorded."""

    def write(self, answer: GuardedAnswer, *, tags: Mapping[str, str] | None = None) -> None:
        """Record one response.

        Raises:
            RecordError: It could not be written.
        """
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class Readable(Protocol):
    """A score log that can be read: what reports, exports and tuning need."""

    def records(self, where: RecordFilter | None = None) -> Iterator[Record]:
        """Stream the records that meet the conditions, oldest first."""
        ...

    def feedback(self) -> Iterator[Feedback]:
        """Stream all feedback, oldest first."""
        ...


class SQLiteLog(RecordLog):
    """A score log in one SQLite file (WAL), safe for many writing processes and threads.

    Args:
        path: The file; made with its tables when it does not exist.
        read_only: Open an existing log for reading.
        kept: As of ``RecordLog``; records older than ``retention`` are deleted now and then.

    Raises:
        RecordError: The file cannot be opened, or a newer version of this package made it.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False, **kept: Unpack[Kept]) -> None:
        super().__init__(path, **kept)
        self._read_only = read_only
        self._writes = 0
        with self._reported("open"):
            if read_only:
                self._db = self._reader()
            else:
                self._db = open_to_write(self.path, BUSY_TIMEOUT_S)
        self._file = file_at(self.path)
        if not read_only:
            self.purge()

    def write_record(self, record: Record) -> None:
        """Write a finished record; one whose id is there already is left as it is."""
        self.write_records([record])

    def write_records(self, records: Iterable[Record]) -> None:
        """Write n finished records in one transaction: all of them or none."""
        rows = [
            (
                record.id,
                record.created.astimezone(UTC).isoformat(),
                record.answer.action.value,
                record.answer.scorecard.overall.value,
                to_json(record),
                record.answer.id,
                record.tags.get("tenant"),
            )
            for record in records
        ]
        with self._lock, self._reported("write"), self._current():
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "INSERT OR IGNORE INTO responses (id, created, action, overall, payload, answer_id,"
                " tenant) VALUES (?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            # Feedback that came before its record waits under the id of the answer.
            self._db.executemany(
                "UPDATE feedback SET record_id = ? WHERE record_id = ?"
                " AND (tenant IS NULL OR tenant = ?)",
                [(row[0], *row[-2:]) for row in rows if row[0] != row[-2]],
            )
            before = self._writes
            self._writes += len(rows)
        if self._retention is not None and before // PURGE_EVERY != self._writes // PURGE_EVERY:
            self.purge()

    def write_feedback(self, feedback: Feedback) -> bool:
        """Store a reader's verdict beside its record.

        ``record_id`` may be the record's own id or that of the answer; of several answers with one
        id the newest is meant. The first eight characters or more are enough where they begin the
        id of one answer alone. Feedback on an answer that another writer is about to record is
        kept, and goes to the record once that is there.

        Returns:
            Whether the record is there.

        Raises:
            RecordError: There is no such record, or it cannot be written.
        """
        with self._lock, self._reported("write feedback to"), self._current():
            self._db.execute("BEGIN IMMEDIATE")
            known = self._db.execute(
                "SELECT id FROM responses WHERE (id = ?1 OR answer_id = ?1)"
                " AND (?2 IS NULL OR tenant = ?2)"
                " ORDER BY id = ?1 DESC, created DESC LIMIT 1",
                (feedback.record_id, feedback.tenant),
            ).fetchone()
            whole = MADE_ID.fullmatch(feedback.record_id) is not None
            if known is None and not whole and len(feedback.record_id) >= SHORTEST_ID:
                begun = self._db.execute(
                    "SELECT id FROM responses WHERE (substr(id, 1, ?1) = ?2"
                    " OR substr(answer_id, 1, ?1) = ?2) AND (?3 IS NULL OR tenant = ?3) LIMIT 2",
                    (len(feedback.record_id), feedback.record_id, feedback.tenant),
                ).fetchall()
                known = begun[0] if len(begun) == 1 else None
            taken = known is None and self._there(feedback.record_id)
            if taken or (known is None and not whole):
                raise RecordError(f"there is no record {feedback.record_id} in {self.path}")
            self._db.execute(
                "INSERT INTO feedback (record_id, sentence, thumb, correction, created, tenant)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    feedback.record_id if known is None else known[0],
                    feedback.sentence,
                    feedback.thumb,
                    feedback.correction,
                    feedback.created.isoformat(),
                    feedback.tenant,
                ),
            )
        return known is not None

    def _there(self, name: str) -> bool:
        """Whether a record has an id, whoever it belongs to."""
        query = "SELECT 1 FROM responses WHERE id = ?1 OR answer_id = ?1"
        return self._db.execute(query, (name,)).fetchone() is not None

    def records(self, where: RecordFilter | None = None) -> Iterator[Record]:
        """Stream the records that meet the conditions, oldest first.

        A connection of its own reads the log as it was at the first record, whatever is written
        meanwhile.
        """
        where = where or RecordFilter()
        with self._reported("read"), closing(self._reader()) as db:
            for (payload,) in db.execute(*_query("payload", where, "ORDER BY created, rowid")):
                record = from_json(payload)
                if where.accepts(record):
                    yield record

    def latest(self, number: int, where: RecordFilter | None = None) -> list[Record]:
        """The newest n records that meet the conditions, oldest first."""
        where = where or RecordFilter()
        found: list[Record] = []
        order = "ORDER BY created DESC, rowid DESC"
        with self._reported("read"), closing(self._reader()) as db:
            for (payload,) in db.execute(*_query("payload", where, order)):
                record = from_json(payload)
                if where.accepts(record):
                    found.append(record)
                if len(found) >= number:
                    break
        return found[::-1]

    def record(self, record_id: str) -> Record | None:
        """The record with an id, or None."""
        with self._lock, self._reported("read"):
            row = self._db.execute(
                "SELECT payload FROM responses WHERE id = ?", (record_id,)
            ).fetchone()
        return None if row is None else from_json(row[0])

    def feedback(self) -> Iterator[Feedback]:
        """Stream all feedback, oldest first."""
        with self._reported("read"), closing(self._reader()) as db:
            for row in db.execute(
                "SELECT record_id, sentence, thumb, correction, created, tenant FROM feedback"
                " ORDER BY rowid"
            ):
                yield Feedback(
                    record_id=row[0],
                    sentence=row[1],
                    thumb=row[2],
                    correction=row[3],
                    created=datetime.fromisoformat(row[4]),
                    tenant=row[5],
                )

    def count(self) -> int:
        """Number of records."""
        with self._lock, self._reported("read"):
            return int(self._db.execute("SELECT count(*) FROM responses").fetchone()[0])

    def purge(self) -> int:
        """Delete records older than the retention allows; returns how many."""
        if self._retention is None:
            return 0
        limit = (datetime.now(UTC) - self._retention).isoformat()
        with self._lock, self._reported("purge"), self._db:
            self._db.execute(
                "DELETE FROM feedback WHERE record_id IN"
                " (SELECT id FROM responses WHERE created < ?1)"
                " OR (created < ?1 AND record_id NOT IN (SELECT id FROM responses))",
                (limit,),
            )
            return self._db.execute("DELETE FROM responses WHERE created < ?", (limit,)).rowcount

    def close(self) -> None:
        """Release the file, which holds all of the log by itself then, unless others write."""
        with self._lock:
            if not self._read_only:
                with suppress(sqlite3.Error):
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.close()

    def _current(self) -> sqlite3.Connection:
        """The connection to the file at the log's path. Holds the lock.

        SQLite would go on writing to a file that was moved or deleted, where nobody looks.
        """
        if file_at(self.path) != self._file:
            self._db.close()
            self._db = open_to_write(self.path, BUSY_TIMEOUT_S)
            self._file = file_at(self.path)
        return self._db

    def _reader(self) -> sqlite3.Connection:
        uri = f"{self.path.resolve().as_uri()}?mode=ro"
        db = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
        try:
            db.execute("SELECT 1 FROM responses LIMIT 1")
        except sqlite3.OperationalError:
            # On a medium that cannot be written, SQLite reads a WAL file that is at rest only
            # when told that nothing changes it.
            db.close()
            if self.path.with_name(f"{self.path.name}-wal").exists():
                raise
            db = sqlite3.connect(f"{uri}&immutable=1", uri=True, check_same_thread=False)
        return db

    @contextmanager
    def _reported(self, what: str) -> Iterator[None]:
        """Turn SQLite's errors into one that names the file and what was tried."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if any(message in str(error) for message in NO_LOG):
                raise RecordError(f"{self.path} is no score log") from error
            raise RecordError(f"cannot {what} the score log {self.path}: {error}") from error


def open_log(
    location: str | Path,
    *,
    read_only: bool = False,
    sample: float = 1.0,
    retention: timedelta | None = None,
    whole: bool = False,
) -> SQLiteLog | JSONLinesLog:
    """Open a score log by its file name: ``.jsonl`` is JSON lines, all else SQLite.

    Args:
        location: The file; made where there is none, unless ``read_only``.
        read_only: Open an existing log for reading.
        sample: Share of responses to record, in [0, 1]; those with errors are always kept.
        retention: How long records are kept; None for ever.
        whole: Keep all evidence and all candidates of linking.

    Raises:
        RecordError: It cannot be opened.
    """
    path = Path(location)
    if read_only and not path.is_file():
        raise RecordError(f"there is no score log {path}; set log = {str(path)!r} to record one")
    if path.suffix in {".jsonl", ".ndjson"}:
        return JSONLinesLog(path, sample=sample, retention=retention, whole=whole)
    return SQLiteLog(path, sample=sample, retention=retention, whole=whole, read_only=read_only)


def _query(what: str, where: RecordFilter, order: str) -> tuple[str, tuple[object, ...]]:
    """The conditions that SQLite can test; those on the payload narrow down, no more."""
    tests = ["1"]
    bounds: list[object] = []
    for test, bound in (
        ("created >= ?", where.since and where.since.astimezone(UTC).isoformat()),
        ("created < ?", where.until and where.until.astimezone(UTC).isoformat()),
        ("action = ?", where.action),
        ("overall <= ?", where.max_overall),
        ("instr(payload, ?)", '"would":"' if where.would_block else None),
        ("instr(payload, ?)", where.category and f'"{where.category.value}"'),
    ):
        if bound is not None:
            tests.append(test)
            bounds.append(bound)
    for text, end in ((where.entity, None), (where.id, -1)):
        if text is not None:
            tests.append("(instr(payload, ?) OR instr(payload, ?))")
            bounds += [json.dumps(text)[:end], json.dumps(text, ensure_ascii=False)[:end]]
    return f"SELECT {what} FROM responses WHERE {' AND '.join(tests)} {order}", tuple(bounds)
