"""The query cache on disk."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from guardrail.core.errors import ConfigError
from kg.cache import QueryCache
from tests.clock import PATIENCE_S

WRITER = """
import sys
from kg.cache import QueryCache
cache = QueryCache(sys.argv[1])
for n in range(100):
    cache.put("e", f"{sys.argv[2]} {n}", b"body")
    assert cache.get("e", f"{sys.argv[2]} {n}") == b"body"
"""


def test_processes_and_threads_share_it(tmp_path: Path) -> None:
    path = tmp_path / "made" / "cache.sqlite"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(number)])
        for number in range(2)
    ]
    cache = QueryCache(path)
    cache.put("http://other", "mine", b"other")
    failures: list[BaseException] = []

    def read() -> None:
        try:
            cache.put("e", "mine", b"x")
            assert cache.get("e", "mine") == b"x"
        except BaseException as error:
            failures.append(error)
        finally:
            cache.close()

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [writer.wait(timeout=PATIENCE_S) for writer in writers] == [0, 0]
    assert not failures
    assert all(cache.get("e", f"{w} {n}") == b"body" for w in range(2) for n in range(100))


def test_a_damaged_entry_is_a_miss(tmp_path: Path) -> None:
    cache = QueryCache(tmp_path / "c.sqlite")
    cache.put("e", "q", b"body")
    with sqlite3.connect(cache.path) as database:
        database.execute("UPDATE results SET body = x'00'")
    assert cache.get("e", "q") is None
    cache.put("e", "q", b"body")
    assert cache.get("e", "q") == b"body"


def test_stays_within_its_size(tmp_path: Path) -> None:
    cache = QueryCache(tmp_path / "c.sqlite", most=10)
    for number in range(600):
        cache.put("e", str(number), b"")
    assert sum(cache.get("e", str(number)) is not None for number in range(600)) < 300
    assert cache.get("e", "599") == b""


def test_a_file_that_is_no_cache_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.write_text("this is a text, and not a database at all" * 100)
    with pytest.raises(ConfigError, match="query cache"):
        QueryCache(path)
    assert path.read_text().startswith("this is")
