"""How processor time grows with the length of a text."""

import time
from collections.abc import Callable

__all__ = ["is_linear"]

TIMES = 10
"""Times as long as the short text the long one is."""
MOST = 40.0
"""Times as long that it may take: 10 is linear, 100 quadratic."""
NOISE_S = 0.02
"""Seconds below which a ratio says nothing."""


def is_linear(run: Callable[[str], object], text: Callable[[int], str], size: int) -> bool:
    """Whether reading ten times as much takes some ten times as long.

    Args:
        run: Reads a text.
        text: Makes one from a size.
        size: That of the short one: one that a linear reader takes some milliseconds for, and a
            quadratic one a tenth of a second.
    """

    def seconds(made: str) -> float:
        begin = time.process_time()
        run(made)
        return time.process_time() - begin

    short, long = text(size), text(TIMES * size)
    seconds(text(10))
    return seconds(long) < MOST * max(NOISE_S, min(seconds(short) for _ in range(3)))
