"""What this process holds: threads, files, sockets, memory; and how it waits for cores."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from chains.gateway.requests import in_reader_thread
from guardrail.core.workers import off_loop

__all__ = [
    "NOISE_MIB",
    "Held",
    "fill_shared_pools",
    "held",
    "names_of_threads",
    "waited_for_a_core",
]

PAGE = 4096
MIB = float(1 << 20)
FILLING_S = 0.2
"""Seconds for which each thread of a pool is held, so that the next call needs another."""
NANOSECONDS = 1e9
NOISE_MIB = 8.0
"""Growth of resident memory that is no leak: the allocator keeps pieces that are free."""


class Held(NamedTuple):
    """What a process holds.

    Attributes:
        threads: Threads of Python.
        files: Open descriptors that are no sockets.
        sockets: Open sockets.
        memory_mib: Resident memory.
        blocks: Pieces of memory that Python's own objects take: what leaks there grows, however
            the allocator keeps what is free.
    """

    threads: int
    files: int
    sockets: int
    memory_mib: float
    blocks: int

    def since(self, before: Held) -> Held:
        """What is held now and was not before; memory may be less, handles are 0 then."""
        return Held(
            max(0, self.threads - before.threads),
            max(0, self.files - before.files),
            max(0, self.sockets - before.sockets),
            self.memory_mib - before.memory_mib,
            self.blocks - before.blocks,
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
    return Held(
        threads=threading.active_count(),
        files=len(targets) - sockets,
        sockets=sockets,
        memory_mib=pages * PAGE / MIB,
        blocks=sys.getallocatedblocks(),
    )


def names_of_threads() -> str:
    """The threads by name, for a person who looks for one that should not be there."""
    names = Counter(thread.name.rstrip("-_0123456789") for thread in threading.enumerate())
    return ", ".join(f"{number} {name}" for name, number in sorted(names.items()))


async def fill_shared_pools() -> None:
    """Have the pools that all of a process shares make their threads now.

    They are bounded and stay to the process's end: a thread of theirs that comes later is none
    that some run left behind.
    """
    most = min(32, (os.cpu_count() or 1) + 4)  # of the loop's own pool
    calls = [asyncio.to_thread(time.sleep, FILLING_S) for _ in range(most)]
    calls += [off_loop(time.sleep, FILLING_S) for _ in range(8)]
    calls += [in_reader_thread(time.sleep, FILLING_S) for _ in range(64)]  # of the gateway
    await asyncio.gather(*calls)


def waited_for_a_core() -> float:
    """Seconds for which threads of this process were ready and had no core, all together (Linux).

    It grows where the machine has other work: a deadline missed by no more than this, meanwhile,
    was missed by the machine.
    """
    total = 0
    for task in Path("/proc/self/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[1])
        except OSError:
            continue  # it ended meanwhile
    return total / NANOSECONDS
