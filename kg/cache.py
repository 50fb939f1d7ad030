"""A cache of query results on disk, shared by threads and processes, with expiry."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import time
import zlib
from pathlib import Path

from guardrail.core.errors import ConfigError
from guardrail.core.secrets import get_logger

CACHE_S = 86_400.0
"""Seconds until a cached result expires."""
_LOG = get_logger(__name__)


class QueryCache:
    """The newest ``most`` query results by endpoint and query text, in SQLite.

    If the file cannot be read or written while it is in use, the lookup counts as a miss and a
    warning is logged.

    Raises:
        ConfigError: If the file cannot be created or is no such database.
    """

    def __init__(self, path: str | Path, *, most: int = 100_000) -> None:
        self.path = Path(path).expanduser()
        self._lock, self._most = threading.Lock(), most
        self._writes = self.hits = self.misses = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"cannot use {self.path} as a query cache ({error}); "
                "name another file, or switch the cache off"
            ) from error

    def get(self, endpoint: str, query: str) -> bytes | None:
        """The stored result of a query, or None where there is none or it is stale."""
        rows = self._run(
            "SELECT body FROM results WHERE key = ? AND expires > ?",
            (_key(endpoint, query), time.time()),
        )
        body = None
        try:
            body = zlib.decompress(rows[0][0]) if rows else None
        except zlib.error as error:
            _LOG.warning("query cache %s: %s", self.path, error)
        with self._lock:
            self.hits += body is not None
            self.misses += body is None
        return body

    def put(self, endpoint: str, query: str, body: bytes) -> None:
        """Store the result of a query."""
        now = time.time()
        row = (_key(endpoint, query), zlib.compress(body), now + CACHE_S)
        self._run("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", row)
        self._writes += 1
        if self._writes % 256 == 1:
            # Expired entries go, and of the others those that expire first.
            self._run(
                "DELETE FROM results WHERE expires <= ? OR key IN "
                "(SELECT key FROM results ORDER BY expires DESC LIMIT -1 OFFSET ?)",
                (now, self._most),
            )

    def close(self) -> None:
        """Close the file; the next look-up opens it again."""
        with self._lock:
            self._db.close()
            self._pid = 0

    def _open(self) -> None:
        self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS results "
            "(key BLOB PRIMARY KEY, body BLOB NOT NULL, expires REAL NOT NULL) WITHOUT ROWID"
        )
        self._pid = os.getpid()

    def _run(self, statement: str, values: tuple[object, ...]) -> list[tuple[bytes]]:
        try:
            with self._lock:
                if self._pid != os.getpid():  # a connection must not cross a fork
                    self._open()
                return self._db.execute(statement, values).fetchall()
        except (sqlite3.Error, OSError) as error:
            _LOG.warning("query cache %s: %s", self.path, error)
            return []


def _key(endpoint: str, query: str) -> bytes:
    return hashlib.sha256(f"{endpoint}\0{query}".encode("utf-8", "surrogatepass")).digest()
