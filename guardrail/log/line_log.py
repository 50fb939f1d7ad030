"""The score log as JSON lines: append only, rotated by size, readable with any tool."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Unpack

from guardrail.core.errors import RecordError
from guardrail.log.base import Kept, RecordLog
from guardrail.log.entries import (
    Feedback,
    Record,
    RecordFilter,
    from_json,
    to_json,
)

__all__ = ["JSONLinesLog"]

ROTATE_BYTES = 256 * 1024 * 1024
"""A JSON lines file is rotated when it has grown to this size."""


class _Told(NamedTuple):
    """What feedback needs of a record."""

    created: datetime
    record_id: str
    tenant: str | None


class JSONLinesLog(RecordLog):
    """A score log as JSON lines, one record a line, rotated by size.

    Each line is appended with one ``write`` call, so that lines of several processes do not mix.
    Feedback goes to a file of its own beside it, ``<name>-feedback``.

    Args:
        path: The file; rotated files get the moment of rotation as suffix.
        rotate_bytes: Size at which the file is rotated.
        kept: As of ``RecordLog``; rotated files last written longer ago than ``retention`` are
            deleted at rotation.
    """

    def __init__(
        self, path: str | Path, *, rotate_bytes: int = ROTATE_BYTES, **kept: Unpack[Kept]
    ) -> None:
        super().__init__(path, **kept)
        self._rotate_bytes = rotate_bytes

    def write_record(self, record: Record) -> None:
        """Write a finished record."""
        with self._lock:
            if self._append(self.path, to_json(record)) >= self._rotate_bytes:
                self._rotate()

    def write_feedback(self, feedback: Feedback) -> bool:
        """Store a reader's verdict beside the log, whose records are not looked at.

        ``record_id`` may be the record's own id or that of the answer.

        Returns:
            True: all of it is kept.
        """
        with self._lock:
            self._append(self._feedback_path, json.dumps(feedback.model_dump(mode="json")))
        return True

    def records(self, where: RecordFilter | None = None) -> Iterator[Record]:
        """Stream the records of the file and its rotated predecessors, oldest first.

        A line cut short by the death of its writer is passed over.
        """
        where = where or RecordFilter()
        for path in [*self._rotated(), self.path]:
            for line in _lines(path):
                try:
                    record = from_json(line)
                except RecordError:
                    continue
                if where.accepts(record):
                    yield record

    def latest(self, number: int, where: RecordFilter | None = None) -> list[Record]:
        """The newest n records that meet the conditions, oldest first."""
        return list(deque(self.records(where), maxlen=number))

    def record(self, record_id: str) -> Record | None:
        """The record with an id, or None."""
        return next((record for record in self.records() if record.id == record_id), None)

    def feedback(self) -> Iterator[Feedback]:
        """Stream all feedback, oldest first, each with the id of its record."""
        by_answer: dict[str, list[_Told]] | None = None
        for line in _lines(self._feedback_path):
            try:
                one = Feedback.model_validate(json.loads(line))
            except (ValueError, RecursionError):
                continue
            if by_answer is None:
                by_answer = self._by_answer()
            recorded = by_answer.get(one.record_id, [])
            own = [told for told in recorded if one.tenant in (None, told.tenant)]
            if recorded and not own:
                continue  # another tenant's record
            before = [told.record_id for told in own if told.created <= one.created]
            found = before[-1] if before else own[0].record_id if own else one.record_id
            yield one.model_copy(update={"record_id": found})

    def close(self) -> None:
        """Nothing is held open between records."""

    def _by_answer(self) -> dict[str, list[_Told]]:
        """The records by the id of their answer and by their own, oldest first."""
        by_answer: dict[str, list[_Told]] = {}
        for record in self.records():
            told = _Told(record.created, record.id, record.tags.get("tenant"))
            for name in {record.answer.id, record.id}:
                by_answer.setdefault(name, []).append(told)
        return by_answer

    @property
    def _feedback_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}-feedback")

    def _rotated(self) -> list[Path]:
        return sorted(self.path.parent.glob(f"{self.path.name}.*"))

    def _append(self, path: Path, text: str) -> int:
        """Append a line; returns the size of the file."""
        line = f"{text}\n".encode()
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                size = os.fstat(file).st_size
                if size and os.pread(file, 1, size - 1) not in (b"\n", b""):
                    # A writer died or the disk was full: its half line must not swallow this one.
                    line = b"\n" + line
                if os.write(file, line) != len(line):
                    raise OSError("no space left: a record was cut short")
                return size + len(line)
            finally:
                os.close(file)
        except OSError as error:
            raise RecordError(f"cannot write the score log {path}: {error}") from error

    def _rotate(self) -> None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        try:
            self.path.rename(self.path.with_name(f"{self.path.name}.{stamp}"))
            if self._retention is not None:
                limit = (datetime.now(UTC) - self._retention).timestamp()
                for path in self._rotated():
                    if path.stat().st_mtime < limit:
                        path.unlink()
        except FileNotFoundError:
            pass  # another process was quicker
        except OSError as error:
            raise RecordError(f"cannot rotate the score log {self.path}: {error}") from error


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            yield from lines
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordError(f"cannot read the score log {path}: {error}") from error
