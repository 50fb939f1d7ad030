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

__all__ = ["CACHE_S", "QueryCache", "default_cache_path"]

CACHE_S = 86_400.0
"""Seconds until a cached result expires."""
_LOG = get_logger(__name__)
_BUSY_S = 5.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key BLOB PRIMARY KEY,
    body BLOB NOT NULL,
    expires REAL NOT NULL
) WITHOUT ROWID
"""
# Once in so many writes expired entries are dropped, and of the others those that expire first.
_PRUNE_EVERY = 256
_MOST_ENTRIES = 100_000
_PRUNE = (
    "DELETE FROM results WHERE expires <= ? OR key IN "
    "(SELECT key FROM results ORDER BY expires DESC LIMIT -1 OFFSET ?)"
)


def default_cache_path() -> Path:
    """The default cache: ``kg-guardrail/sparql.sqlite`` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kg-guardrail" / "sparql.sqlite"


class QueryCache:
    """Query results by endpoint and query text, in SQLite.

    If the file cannot be read or written while it is in use, the lookup counts as a miss and a
    warning is logged.

    Args:
        path: The database file; created with its folders if missing.

    Attributes:
        hits: Look-ups that found something, in this process.
        misses: Those that did not.

    Raises:
        ConfigError: If the file cannot be created or is no such database.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self._local = threading.local()
        self._counting = threading.Lock()
        self._writes = self.hits = self.misses = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"cannot use {self.path} as a query cache ({error}); "
                "name another file, or switch the cache off"
            ) from error

    def get(self, endpoint: str, query: str) -> bytes | None:
        """The stored result of a query, or None where there is none or it is stale."""
        found: bytes | None = None
        try:
            row = (
                self._connection()
                .execute(
                    "SELECT body FROM results WHERE key = ? AND expires > ?",
                    (_key(endpoint, query), time.time()),
                )
                .fetchone()
            )
            found = None if row is None else zlib.decompress(row[0])
        except (sqlite3.Error, OSError, zlib.error) as error:
            _LOG.warning("query cache %s: %s", self.path, error)
        with self._counting:
            self.hits += found is not None
            self.misses += found is None
        return found

    def put(self, endpoint: str, query: str, body: bytes) -> None:
        """Store the result of a query."""
        now = time.time()
        try:
            connection = self._connection()
            connection.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?)",
                (_key(endpoint, query), zlib.compress(body), now + CACHE_S),
            )
            self._writes += 1
            if self._writes % _PRUNE_EVERY == 1:
                connection.execute(_PRUNE, (now, _MOST_ENTRIES))
        except (sqlite3.Error, OSError) as error:
            _LOG.warning("query cache %s: %s", self.path, error)

    def close(self) -> None:
        """Close this thread's connection; others close with their threads."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _connection(self) -> sqlite3.Connection:
        # SQLite connections must not cross threads, nor a fork.
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None or self._local.pid != os.getpid():
            connection = sqlite3.connect(
                self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
            self._local.connection, self._local.pid = connection, os.getpid()
        return connection


def _key(endpoint: str, query: str) -> bytes:
    return hashlib.sha256(f"{endpoint}\0{query}".encode("utf-8", "surrogatepass")).digest()
