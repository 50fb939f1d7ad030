"""The score log: one record per response, in one SQLite file; JSON lines and CSV are exports.

A record is with the operating system before ``write`` returns, so a killed process loses nothing,
and several processes may write to one file.
"""

from __future__ import annotations

import csv
import random
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from guardrail.core.errors import InputError, RecordError
from guardrail.core.types import Category, GuardedAnswer
from guardrail.core.workers import Closing
from guardrail.log.entries import (
    Feedback,
    Record,
    RecordFilter,
    Redact,
    from_json,
    record_of,
    tagged,
    to_json,
)

__all__ = [
    "Feedback", "Record", "RecordFilter", "SQLiteLog", "ScoreLog", "export", "open_log", "tagged",
]  # fmt: skip

MADE_ID = re.compile(r"[0-9a-f]{32}(\.\d+)?")
"""Ids that a guardrail makes: the record of such an answer may still be on its way."""
VERSION = 4
SCHEMA = (
    """CREATE TABLE responses (
        id TEXT PRIMARY KEY, created TEXT NOT NULL, action TEXT NOT NULL, overall REAL,
        payload TEXT NOT NULL, answer_id TEXT, tenant TEXT)""",
    "CREATE INDEX responses_created ON responses (created)",
    "CREATE INDEX responses_answer ON responses (answer_id, created)",
    """CREATE TABLE feedback (
        record_id TEXT NOT NULL, sentence INTEGER, thumb INTEGER NOT NULL,
        correction TEXT, created TEXT NOT NULL, tenant TEXT)""",
    "CREATE INDEX feedback_record ON feedback (record_id)",
    f"PRAGMA user_version = {VERSION}",
)


class ScoreLog(Protocol):
    """Where responses are recorded."""

    def write(self, answer: GuardedAnswer, *, tags: Mapping[str, str] | None = None) -> None:
        """Record one response; raises RecordError."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class SQLiteLog(Closing):
    """A score log in one SQLite file (WAL), safe for many writing processes and threads.

    Args:
        path: The file; created with its tables if missing.
        redact: Applied to every record before it is written.
        sample: Share of responses to record, in [0, 1]; those with errors are always recorded.
        retention: Age at which records are deleted; None keeps them.
        read_only: Open an existing log for reading.

    Raises:
        RecordError: The file cannot be opened, or another version of this package made it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        redact: Redact | None = None,
        sample: float = 1.0,
        retention: timedelta | None = None,
        read_only: bool = False,
    ) -> None:
        self.path = path = Path(path)
        if path.suffix in {".jsonl", ".ndjson"}:
            raise RecordError(
                f"{path}: a score log is a SQLite file; guardrail log show LOG --export FILE "
                "writes JSON lines"
            )
        if read_only and not path.is_file():
            raise RecordError(
                f"there is no score log {path}; set log = {str(path)!r} to record one"
            )
        self._redact = redact
        self._sample = sample
        self._retention = retention
        self._read_only = read_only
        self._writes = 0
        self._lock = threading.Lock()
        with self._errors("open"):
            self._db = self._reader() if read_only else self._writer()
        self._file = self._file_id()
        if not read_only:
            self.purge()

    def write(self, answer: GuardedAnswer, *, tags: Mapping[str, str] | None = None) -> None:
        """Record one response; it is with the operating system when this returns."""
        if self._sample < 1.0 and not answer.errors and random.random() >= self._sample:
            return
        record = record_of(answer, tags)
        if (kept := self._redact(record) if self._redact else record) is not None:
            self.write_record(kept)

    def write_record(self, record: Record) -> None:
        """Write a finished record; one whose id exists is left unchanged."""
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
        with self._writing("write") as db:
            db.executemany(
                "INSERT OR IGNORE INTO responses (id, created, action, overall, payload, answer_id,"
                " tenant) VALUES (?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            # Feedback that came before its record waits under the id of the answer.
            db.executemany(
                "UPDATE feedback SET record_id = ? WHERE record_id = ?"
                " AND (tenant IS NULL OR tenant = ?)",
                [(row[0], *row[-2:]) for row in rows if row[0] != row[-2]],
            )
            before = self._writes
            self._writes += len(rows)
        if before // 1000 != self._writes // 1000:  # old records go once in a thousand writes
            self.purge()

    def write_feedback(self, feedback: Feedback) -> bool:
        """Store a reader's opinion of a record; returns True if the record exists.

        ``record_id`` may be the record's own id or that of the answer; of several answers with one
        id the newest is meant. The first eight characters or more are enough if only one answer's
        id begins with them. Feedback on an answer that is still being recorded is stored and
        attached later.

        Raises:
            RecordError: There is no such record, or the feedback cannot be written.
        """
        with self._writing("write feedback to") as db:
            found = self._find(db, feedback.record_id, feedback.tenant)
            if found is None and (
                MADE_ID.fullmatch(feedback.record_id) is None
                or self._find(db, feedback.record_id, None) is not None  # another tenant's
            ):
                raise RecordError(f"there is no record {feedback.record_id} in {self.path}")
            db.execute(
                "INSERT INTO feedback (record_id, sentence, thumb, correction, created, tenant)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    found or feedback.record_id,
                    feedback.sentence,
                    feedback.thumb,
                    feedback.correction,
                    feedback.created.isoformat(),
                    feedback.tenant,
                ),
            )
        return found is not None

    @staticmethod
    def _find(db: sqlite3.Connection, name: str, tenant: str | None) -> str | None:
        """The record that an id, or the beginning of one, names."""
        found = db.execute(
            "SELECT id FROM responses WHERE (id = ?1 OR answer_id = ?1)"
            " AND (?2 IS NULL OR tenant = ?2) ORDER BY id = ?1 DESC, created DESC LIMIT 1",
            (name, tenant),
        ).fetchall()
        if not found and len(name) >= 8 and MADE_ID.fullmatch(name) is None:
            found = db.execute(
                "SELECT id FROM responses WHERE ?1 IN (substr(id, 1, ?3), substr(answer_id, 1, ?3))"
                " AND (?2 IS NULL OR tenant = ?2) LIMIT 2",
                (name, tenant, len(name)),
            ).fetchall()
        return found[0][0] if len(found) == 1 else None

    def records(self, where: RecordFilter | None = None) -> Iterator[Record]:
        """Stream the records that meet the conditions, oldest first.

        A separate connection reads the log as of the first record, whatever is written meanwhile.
        """
        tests, values = (where or RecordFilter()).sql()
        query = f"SELECT payload FROM responses WHERE {tests} ORDER BY created, rowid"
        with self.reading() as db:
            for (payload,) in db.execute(query, values):
                yield from_json(payload)

    def latest(self, number: int, where: RecordFilter | None = None) -> list[Record]:
        """The newest n records that meet the conditions, oldest first."""
        tests, values = (where or RecordFilter()).sql()
        query = f"SELECT payload FROM responses WHERE {tests} ORDER BY created DESC, rowid DESC"
        with self.reading() as db:
            rows = db.execute(f"{query} LIMIT ?", [*values, number]).fetchall()
        return [from_json(payload) for (payload,) in reversed(rows)]

    def feedback(self) -> Iterator[Feedback]:
        """Stream all feedback, oldest first."""
        names = ("record_id", "sentence", "thumb", "correction", "created", "tenant")
        with self.reading() as db:
            for row in db.execute(f"SELECT {', '.join(names)} FROM feedback ORDER BY rowid"):
                yield Feedback.model_validate(dict(zip(names, row, strict=True)))

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A separate connection for reading, for SQL of one's own."""
        with self._errors("read"), closing(self._reader()) as db:
            yield db

    def back_up(self, target: Path) -> int:
        """Write a whole copy of the log to one file, even while others write to the log.

        An existing file is replaced. Returns the number of records in the copy.

        Raises:
            InputError: The target is the log itself.
            RecordError: The log cannot be read or the file not written.
        """
        if target.resolve() == self.path.resolve():
            raise InputError(f"{target} is the log itself; name another file")
        part = target.with_name(f"{target.name}.part")
        with self._errors(f"write to {target} a copy of"):
            part.unlink(missing_ok=True)
            with self.reading() as source, closing(sqlite3.connect(part)) as copy:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a WAL file
                found = int(copy.execute("SELECT count(*) FROM responses").fetchone()[0])
            part.replace(target)
        return found

    def purge(self) -> int:
        """Delete records older than the retention; returns how many."""
        if self._retention is None:
            return 0
        limit = ((datetime.now(UTC) - self._retention).isoformat(),)
        with self._writing("purge") as db:
            db.execute(
                "DELETE FROM feedback WHERE record_id IN"
                " (SELECT id FROM responses WHERE created < ?1)"
                " OR (created < ?1 AND record_id NOT IN (SELECT id FROM responses))",
                limit,
            )
            return db.execute("DELETE FROM responses WHERE created < ?", limit).rowcount

    def close(self) -> None:
        """Release the file, which then holds the whole log unless others write to it."""
        with self._lock:
            if not self._read_only:
                with suppress(sqlite3.Error):
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.close()

    @contextmanager
    def _writing(self, what: str) -> Iterator[sqlite3.Connection]:
        """A transaction on the file at the path of the log, whichever that is by now."""
        with self._lock, self._errors(what):
            if self._file_id() != self._file:  # SQLite would go on with one that was moved
                self._db.close()
                self._db = self._writer()
                self._file = self._file_id()
            with self._db as db:
                db.execute("BEGIN IMMEDIATE")
                yield db

    def _writer(self) -> sqlite3.Connection:
        db = _connect(self.path)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            # In WAL mode, NORMAL survives the death of the process; only a power cut may lose the
            # last commits.
            db.execute("PRAGMA synchronous = NORMAL")
            if _version(db) != VERSION:
                with db:
                    db.execute("BEGIN IMMEDIATE")
                    found = _version(db)  # again, under the lock
                    if found not in (0, VERSION):
                        raise RecordError(
                            f"{self.path} has schema version {found}, this package {VERSION}; use "
                            "the version of kg-guardrail that made it, or another file"
                        )
                    for statement in SCHEMA if found == 0 else ():
                        db.execute(statement)
        except BaseException:
            db.close()
            raise
        return db

    def _reader(self) -> sqlite3.Connection:
        uri = f"{self.path.resolve().as_uri()}?mode=ro"
        db = _connect(uri, uri=True)
        try:
            db.execute("SELECT 1 FROM responses LIMIT 1")
        except sqlite3.OperationalError:
            # On a read-only medium, SQLite reads a WAL file at rest only as immutable.
            db.close()
            if self.path.with_name(f"{self.path.name}-wal").exists():
                raise
            db = _connect(f"{uri}&immutable=1", uri=True)
        return db

    def _file_id(self) -> tuple[int, int] | None:
        """Identity of the file at the log's path; None if there is none."""
        with suppress(OSError):
            found = self.path.stat()
            return found.st_dev, found.st_ino
        return None

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn SQLite's errors into one that names the file and the operation."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            # SQLite's messages about a file of another kind
            other = ("no such table: responses", "file is not a database")
            if any(message in str(error) for message in other):
                raise RecordError(f"{self.path} is not a score log") from error
            raise RecordError(f"cannot {what} the score log {self.path}: {error}") from error


def open_log(
    location: str | Path,
    *,
    redact: Redact | None = None,
    sample: float = 1.0,
    retention: timedelta | None = None,
    read_only: bool = False,
) -> SQLiteLog:
    """Open a score log; see ``SQLiteLog``."""
    return SQLiteLog(
        location, redact=redact, sample=sample, retention=retention, read_only=read_only
    )


def export(log: SQLiteLog, target: Path, where: RecordFilter | None = None) -> int:
    """Write the records that meet the conditions to a file; returns how many.

    Args:
        log: The score log; read twice for CSV, whose columns must be known first.
        target: ``.jsonl``, or ``.csv`` with a column for each score (``score.NAME``), stage
            (``ms.NAME``) and tag (``tag.NAME``).
        where: Which records.

    Raises:
        InputError: The file name has another ending.
        RecordError: The log cannot be read or the file not written.
    """
    try:
        if target.suffix == ".jsonl":
            with target.open("w", encoding="utf-8") as file:
                return sum(bool(file.write(f"{to_json(item)}\n")) for item in log.records(where))
        if target.suffix == ".csv":
            columns = dict[str, None]()
            for record in log.records(where):
                columns |= dict.fromkeys(_csv_row(record))
            with target.open("w", encoding="utf-8", newline="", errors="replace") as file:
                table = csv.DictWriter(file, columns, restval="")
                table.writeheader()
                return sum(bool(table.writerow(_csv_row(item))) for item in log.records(where))
    except OSError as error:
        raise RecordError(f"cannot write {target}: {error}") from error
    raise InputError(f"cannot export to {target.name!r}; end it in .csv or .jsonl")


def _csv_row(record: Record) -> dict[str, object]:
    answer = record.answer
    kinds = Counter(sentence.category for sentence in answer.sentences)
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
        "score.overall": answer.scorecard.overall.value,
        **{f"score.{name}": score.value for name, score in answer.scorecard.scores.items()},
        **{f"ms.{stage}": spent for stage, spent in answer.timings_ms.items()},
        **{f"tag.{name}": value for name, value in record.tags.items()},
    }
    # A quotation mark before a text keeps spreadsheets from running it as a formula.
    formula = ("=", "+", "-", "@", "\t", "\r")
    return {
        name: f"'{value}" if isinstance(value, str) and value.startswith(formula) else value
        for name, value in row.items()
    }


def _connect(address: str | Path, *, uri: bool = False) -> sqlite3.Connection:
    """A connection that waits 30 s for another process's transaction."""
    return sqlite3.connect(address, timeout=30.0, check_same_thread=False, uri=uri)


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
