"""What this process holds of the system: threads, files, sockets, memory."""

from __future__ import annotations

import ctypes
import gc
import threading
from pathlib import Path
from typing import NamedTuple

__all__ = ["Held", "held"]

PAGE = 4096


class Held(NamedTuple):
    """What a process holds.

    Attributes:
        threads: Threads of Python.
        files: Open descriptors that are no sockets.
        sockets: Open sockets.
        memory_mib: Resident memory.
    """

    threads: int
    files: int
    sockets: int
    memory_mib: float

    def since(self, before: Held) -> Held:
        """What is held now and was not before; memory may be less, the others are 0 then."""
        return Held(
            max(0, self.threads - before.threads),
            max(0, self.files - before.files),
            max(0, self.sockets - before.sockets),
            self.memory_mib - before.memory_mib,
        )


def held() -> Held:
    """Count what this process holds, with what is free given back first (Linux)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    targets = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            targets.append(str(entry.readlink()))
        except OSError:
            continue  # the folder's own descriptor, closed by now
    sockets = sum(target.startswith("socket:") for target in targets)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Held(threading.active_count(), len(targets) - sockets, sockets, pages * PAGE / (1 << 20))
