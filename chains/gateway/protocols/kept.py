"""Requests that wait for their response: in memory, or in a file that several workers share."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import TypeAdapter

from chains.evidence.base import Found
from guardrail.core.errors import GuardrailError

__all__ = ["CALLS", "KEPT_BYTES", "KEPT_VARIABLE", "KeptRequests"]

KEPT_VARIABLE = "KG_WORKER_REQUESTS"
"""Names the file through which the workers of one gateway share requests."""
CALLS = 10_000
"""Most requests that are kept until their response comes."""
KEPT_BYTES = 256 * 2**20
"""Most bytes that kept requests take together: a gateway's share of a small machine."""
BUSY_S = 10.0
"""Seconds that a worker waits for the others to write."""
TABLE = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS kept (
    place INTEGER PRIMARY KEY, call TEXT UNIQUE NOT NULL, size INTEGER NOT NULL, request TEXT,
    model TEXT
);
CREATE INDEX IF NOT EXISTS sizes ON kept (size);
"""
REQUEST = TypeAdapter(tuple[str, Found])


class KeptRequests:
    """Keeps the newest requests, within bounds of number and bytes.

    Args:
        path: File to share; None to keep them in the memory of this process.
        most_bytes: Most bytes that they take together.

    Raises:
        GuardrailError: The file cannot be opened.
    """

    def __init__(self, path: str | None = None, *, most_bytes: int = KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        with self._told():
            self._db = sqlite3.connect(path or ":memory:", BUSY_S, check_same_thread=False)
            self._db.executescript(TABLE)

    def add(self, call: str, question: str, found: Found, model: str | None = None) -> None:
        """Keep a request, with the model that it names; the oldest go where there is no room.

        Raises:
            GuardrailError: The file cannot be written.
        """
        # Written in ASCII: what is no Unicode, such as half a character, is kept as well.
        request = json.dumps(REQUEST.dump_python((question, found), mode="json"))
        named = None if model is None else json.dumps(model)
        insert = "INSERT OR REPLACE INTO kept (call, size, request, model) VALUES (?, ?, ?, ?)"
        size = len(request) + len(named or "")
        with self._told(), self._db:
            self._db.execute(insert, (json.dumps(call), size, request, named))
            while self._is_full():
                self._db.execute("DELETE FROM kept WHERE place = (SELECT min(place) FROM kept)")

    def get(self, call: str) -> tuple[str, Found] | None:
        """The question and the evidence of a request; None where it is not kept.

        Raises:
            GuardrailError: The file cannot be read.
        """
        with self._told():
            query = "SELECT request FROM kept WHERE call = ?"
            row = self._db.execute(query, (json.dumps(call),)).fetchone()
        return None if row is None else REQUEST.validate_python(json.loads(row[0]))

    def model(self, call: str) -> str | None:
        """The model that a request names; None where it names none or is not kept.

        Raises:
            GuardrailError: The file cannot be read.
        """
        with self._told():
            query = "SELECT model FROM kept WHERE call = ?"
            row = self._db.execute(query, (json.dumps(call),)).fetchone()
        return json.loads(row[0]) if row and row[0] is not None else None

    def calls(self) -> list[str]:
        """The calls whose requests are kept, the oldest first."""
        with self._told():
            rows = self._db.execute("SELECT call FROM kept ORDER BY place").fetchall()
        return [json.loads(call) for (call,) in rows]

    def close(self) -> None:
        """Close the file; what it holds stays there."""
        self._db.close()

    def _is_full(self) -> bool:
        calls, size = self._db.execute("SELECT count(*), total(size) FROM kept").fetchone()
        return bool(calls > CALLS or size > self._most_bytes)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Alone with the file in this process; what goes wrong with it is told."""
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise GuardrailError(
                f"requests that wait for their response cannot be kept: {error}; see whether the "
                "folder for temporary files is full"
            ) from error
