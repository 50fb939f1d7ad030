"""Says on stderr how far a long run is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

__all__ = ["teller"]

TELL_EVERY = 20.0
"""Seconds between two lines of progress."""


def teller(what: str) -> Callable[[int, int], None]:
    """Make a progress callback that takes (done, total) and prints from time to time.

    Args:
        what: What is counted.
    """
    last = time.perf_counter()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if time.perf_counter() - last >= TELL_EVERY:
            last = time.perf_counter()
            print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)

    return tell
