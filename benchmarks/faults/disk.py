"""Disks that fail: files that are locked, spoilt or gone, and no room left."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.faults.facts import Fault

__all__ = ["failing_log", "no_room", "spoilt"]

LATE_S = 0.3
"""Seconds for which another writer holds a log that is late."""


@contextmanager
def no_room(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as on a full disk.

    Args:
        size: Bytes.
    """
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def spoilt(content: bytes, fault: Fault, rng: random.Random) -> bytes:
    """The content of a file after a fault.

    Args:
        content: What it was.
        fault: ``garbage`` overwrites a stretch, ``half`` cuts it, others leave it.
        rng: Of the place and the noise.
    """
    if fault == "half":
        return content[: len(content) // 2 + rng.randrange(7)]
    if fault == "garbage":
        start = rng.randrange(max(1, len(content) - 64))
        return content[:start] + rng.randbytes(64) + content[start + 64 :]
    return content


@contextmanager
def failing_log(path: Path, fault: Fault, rng: random.Random) -> Iterator[None]:
    """Make the disk below an open score log fail while something is written to it.

    Args:
        path: The log, an SQLite file.
        fault: What fails.
        rng: Of what is random.
    """
    if fault in ("late", "hang"):
        with closing(sqlite3.connect(path, check_same_thread=False)) as other:
            other.execute("BEGIN IMMEDIATE")
            timer = threading.Timer(LATE_S, other.rollback)
            if fault == "late":
                timer.start()
            try:
                yield
            finally:
                timer.cancel()
                if fault == "late":
                    timer.join()
                other.rollback()
    elif fault == "full":
        with no_room(0):
            yield
    else:
        for file in path.parent.glob(f"{path.name}*"):
            if fault == "reset":
                file.unlink()
            elif not file.name.endswith("-shm"):  # memory that processes share, not a disk's
                content = spoilt(file.read_bytes(), fault, rng)
                with file.open("r+b") as opened:  # the log has it open
                    opened.write(content)
                    os.ftruncate(opened.fileno(), len(content))
        yield
