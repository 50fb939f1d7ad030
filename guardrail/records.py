"""The score log: one record per response, in SQLite or JSON lines.

A record is on its way to the operating system before ``write`` returns, so that killing the
process afterwards loses nothing, and several processes may write to one file.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, Self
from uuid import uuid4

from pydantic import Field

from guardrail.errors import RecordError
from guardrail.schema import migrate
from guardrail.types import Category, GuardedAnswer, Value

__all__ = [
    "Feedback",
    "JSONLinesLog",
    "Record",
    "RecordFilter",
    "SQLiteLog",
    "ScoreLog",
    "open_log",
]

BUSY_TIMEOUT_S = 30.0
"""How long a writer waits for another process's transaction before it gives up."""
ROTATE_BYTES = 256 * 1024 * 1024
"""A JSON lines file is rotated when it has grown to this size."""
WRITES_BETWEEN_PURGES = 1000


class Record(Value):
    """What the log keeps of one response.

    Attributes:
        id: Unique; a record written twice under one id is kept once.
        created: UTC.
        answer: All that the guardrail returned.
        tags: The caller's own labels, such as a tenant, a user or an experiment.
    """

    id: str = Field(default_factory=lambda: uuid4().hex)
    created: datetime = Field(default_factory=lambda: datetime.now(UTC))
    answer: GuardedAnswer
    tags: Mapping[str, str] = Field(default_factory=dict)


class Feedback(Value):
    """What a reader said of a response or of one of its sentences.

    Attributes:
        record_id: The record it belongs to.
        sentence: Index of the sentence; None for the whole response.
        thumb: 1 for up, -1 for down, 0 for a correction without verdict.
        correction: What the text should have said.
        created: UTC.
    """

    record_id: str
    sentence: int | None = Field(default=None, ge=0)
    thumb: int = Field(default=0, ge=-1, le=1)
    correction: str | None = None
    created: datetime = Field(default_factory=lambda: datetime.now(UTC))


class RecordFilter(Value):
    """Which records to read; every condition that is given must hold.

    Attributes:
        since: Created at or after this moment.
        until: Created before this moment.
        action: The policy's action.
        category: At least one sentence has it.
        entity: An entity id or label that was linked.
        max_overall: The overall score is at most this.
        tag: ``name=value`` among the caller's tags.
    """

    since: datetime | None = None
    until: datetime | None = None
    action: str | None = None
    category: Category | None = None
    entity: str | None = None
    max_overall: float | None = None
    tag: str | None = None

    def accepts(self, record: Record) -> bool:
        """Whether a record meets every condition."""
        answer = record.answer
        overall = answer.scorecard.overall.value
        name, _, value = (self.tag or "").partition("=")
        return (
            (self.since is None or record.created >= self.since)
            and (self.until is None or record.created < self.until)
            and (self.action is None or answer.action == self.action)
            and (
                self.category is None
                or any(sentence.category is self.category for sentence in answer.sentences)
            )
            and (
                self.entity is None
                or any(self.entity in (e.entity.id, e.entity.label) for e in answer.entities)
            )
            and (self.max_overall is None or (overall is not None and overall <= self.max_overall))
            and (self.tag is None or record.tags.get(name) == value)
        )


Redact = Callable[[Record], Record | None]
"""Changes a record before it is written, or drops it by returning None."""


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


class SQLiteLog:
    """A score log in one SQLite file (WAL), safe for many writing processes and threads.

    Args:
        path: The file; made with its tables when it does not exist.
        redact: Applied to every record before it is written.
        sample: Share of responses to record, in [0, 1]; those with errors are always kept.
        retention: Records older than this are deleted now and then.
        read_only: Open an existing log for reading.

    Raises:
        RecordError: The file cannot be opened, or a newer version of this package made it.
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
        self.path = Path(path)
        self._redact = redact
        self._sample = sample
        self._retention = retention
        self._lock = threading.Lock()
        self._writes = 0
        with self._reported("open"):
            if read_only:
                uri = f"{self.path.resolve().as_uri()}?mode=ro"
                self._db = sqlite3.connect(
                    uri, uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False
                )
            else:
                self._db = sqlite3.connect(
                    self.path, timeout=BUSY_TIMEOUT_S, check_same_thread=False
                )
                self._db.execute("PRAGMA journal_mode = WAL")
                # In WAL mode NORMAL survives the death of the process; only a power cut may
                # lose the last commits.
                self._db.execute("PRAGMA synchronous = NORMAL")
                migrate(self._db, self.path)
        if not read_only:
            self.purge()

    def write(self, answer: GuardedAnswer, *, tags: Mapping[str, str] | None = None) -> None:
        """Record one response; it is committed when this returns."""
        record = _prepare(answer, tags, self._redact, self._sample)
        if record is not None:
            self.write_record(record)

    def write_record(self, record: Record) -> None:
        """Write a finished record; one whose id is there already is left as it is."""
        overall = record.answer.scorecard.overall.value
        with self._lock, self._reported("write"), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(
                "INSERT OR IGNORE INTO responses (id, created, action, overall, payload)"
                " VALUES (?, ?, ?, ?, ?)",
                (
                    record.id,
                    record.created.isoformat(),
                    record.answer.action.value,
                    overall,
                    _to_json(record),
                ),
            )
            self._writes += 1
        if self._retention and self._writes % WRITES_BETWEEN_PURGES == 0:
            self.purge()

    def write_feedback(self, feedback: Feedback) -> None:
        """Store a reader's verdict beside its record.

        Raises:
            RecordError: There is no such record, or it cannot be written.
        """
        with self._lock, self._reported("write feedback to"), self._db:
            known = self._db.execute(
                "SELECT 1 FROM responses WHERE id = ?", (feedback.record_id,)
            ).fetchone()
            if known is None:
                raise RecordError(f"there is no record {feedback.record_id} in {self.path}")
            self._db.execute(
                "INSERT INTO feedback (record_id, sentence, thumb, correction, created)"
                " VALUES (?, ?, ?, ?, ?)",
                (
                    feedback.record_id,
                    feedback.sentence,
                    feedback.thumb,
                    feedback.correction,
                    feedback.created.isoformat(),
                ),
            )

    def records(self, where: RecordFilter | None = None) -> Iterator[Record]:
        """Stream the records that meet the conditions, oldest first."""
        where = where or RecordFilter()
        sql = (
            "SELECT payload FROM responses"
            " WHERE (?1 IS NULL OR created >= ?1) AND (?2 IS NULL OR created < ?2)"
            " AND (?3 IS NULL OR action = ?3) AND (?4 IS NULL OR overall <= ?4)"
            " ORDER BY created, rowid"
        )
        bounds = (
            where.since.astimezone(UTC).isoformat() if where.since else None,
            where.until.astimezone(UTC).isoformat() if where.until else None,
            where.action,
            where.max_overall,
        )
        with self._reported("read"):
            for (payload,) in self._db.execute(sql, bounds):
                record = _from_json(payload)
                if where.accepts(record):
                    yield record

    def record(self, record_id: str) -> Record | None:
        """The record with an id, or None."""
        with self._reported("read"):
            row = self._db.execute(
                "SELECT payload FROM responses WHERE id = ?", (record_id,)
            ).fetchone()
        return None if row is None else _from_json(row[0])

    def feedback(self) -> Iterator[Feedback]:
        """Stream all feedback, oldest first."""
        with self._reported("read"):
            for row in self._db.execute(
                "SELECT record_id, sentence, thumb, correction, created FROM feedback"
                " ORDER BY rowid"
            ):
                yield Feedback(
                    record_id=row[0],
                    sentence=row[1],
                    thumb=row[2],
                    correction=row[3],
                    created=datetime.fromisoformat(row[4]),
                )

    def count(self) -> int:
        """Number of records."""
        with self._reported("read"):
            return int(self._db.execute("SELECT count(*) FROM responses").fetchone()[0])

    def purge(self) -> int:
        """Delete records older than the retention allows; returns how many."""
        if self._retention is None:
            return 0
        limit = (datetime.now(UTC) - self._retention).isoformat()
        with self._lock, self._reported("purge"), self._db:
            self._db.execute(
                "DELETE FROM feedback WHERE record_id IN"
                " (SELECT id FROM responses WHERE created < ?)",
                (limit,),
            )
            return self._db.execute("DELETE FROM responses WHERE created < ?", (limit,)).rowcount

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _reported(self, what: str) -> Iterator[None]:
        """Turn SQLite's errors into one that names the file and what was tried."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise RecordError(f"cannot {what} the score log {self.path}: {error}") from error
        except ValueError as error:
            raise RecordError(
                f"the score log {self.path} holds a record of another shape"
            ) from error


class JSONLinesLog:
    """A score log as JSON lines, one record a line, rotated by size.

    Each line is appended with one ``write`` call, so that lines of several processes do not mix.

    Args:
        path: The file; rotated files get the moment of rotation as suffix.
        redact: Applied to every record before it is written.
        sample: Share of responses to record, in [0, 1]; those with errors are always kept.
        rotate_bytes: Size at which the file is rotated.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        redact: Redact | None = None,
        sample: float = 1.0,
        rotate_bytes: int = ROTATE_BYTES,
    ) -> None:
        self.path = Path(path)
        self._redact = redact
        self._sample = sample
        self._rotate_bytes = rotate_bytes
        self._lock = threading.Lock()

    def write(self, answer: GuardedAnswer, *, tags: Mapping[str, str] | None = None) -> None:
        """Record one response; it is with the operating system when this returns."""
        record = _prepare(answer, tags, self._redact, self._sample)
        if record is None:
            return
        line = (_to_json(record) + "\n").encode()
        try:
            with self._lock:
                file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                try:
                    written = os.write(file, line)
                    size = os.fstat(file).st_size
                finally:
                    os.close(file)
                if written != len(line):
                    raise RecordError(f"the disk of {self.path} is full: a record was cut short")
                if size >= self._rotate_bytes:
                    self._rotate()
        except OSError as error:
            raise RecordError(f"cannot write the score log {self.path}: {error}") from error

    def records(self, where: RecordFilter | None = None) -> Iterator[Record]:
        """Stream the records of the file and its rotated predecessors, oldest first.

        A line cut short by the death of its writer is passed over.
        """
        where = where or RecordFilter()
        rotated = sorted(self.path.parent.glob(f"{self.path.name}.*"))
        for path in [*rotated, self.path]:
            if not path.is_file():
                continue
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    try:
                        record = _from_json(line)
                    except ValueError:
                        continue
                    if where.accepts(record):
                        yield record

    def close(self) -> None:
        """Nothing is held open between records."""

    def _rotate(self) -> None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        self.path.rename(self.path.with_name(f"{self.path.name}.{stamp}"))


def open_log(location: str | Path, *, read_only: bool = False) -> SQLiteLog | JSONLinesLog:
    """Open a score log by its file name: ``.jsonl`` is JSON lines, all else SQLite."""
    path = Path(location)
    if path.suffix in {".jsonl", ".ndjson"}:
        return JSONLinesLog(path)
    return SQLiteLog(path, read_only=read_only)


def _prepare(
    answer: GuardedAnswer, tags: Mapping[str, str] | None, redact: Redact | None, sample: float
) -> Record | None:
    if sample < 1.0 and not answer.errors and random.random() >= sample:
        return None
    record = Record(answer=answer, tags=tags or {})
    return record if redact is None else redact(record)


def _to_json(record: Record) -> str:
    # ASCII, because a lone surrogate in a model's answer cannot be stored as UTF-8.
    return json.dumps(record.model_dump(mode="json"), allow_nan=False)


def _from_json(text: str) -> Record:
    # The standard parser, since pydantic's own refuses the escape of a lone surrogate.
    return Record.model_validate(json.loads(text))
