"""How processor time grows with the length of a text."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["grows_linearly", "is_linear", "timed"]

TIMES = 10
"""Times as long as the short text the long one is."""
MOST = 40.0
"""Times as long that it may take: 10 is linear, 100 quadratic."""
NOISE_S = 0.02
"""Seconds below which a ratio says nothing."""
TRIES = 3
"""Times that what does not look linear is looked at."""


def is_linear(run: Callable[[str], object], text: Callable[[int], str], size: int) -> bool:
    """Whether reading ten times as much takes some ten times as long.

    Args:
        run: Reads a text.
        text: Makes one from a size.
        size: That of the short one: one that a linear reader takes some milliseconds for, and a
            quadratic one a tenth of a second.
    """

    def seconds(size: int) -> float:
        made = text(size)
        with timed() as took:
            run(made)
        return took()

    return grows_linearly(seconds, size)


def grows_linearly(seconds: Callable[[int], float], size: int) -> bool:
    """Whether ten times the size takes some ten times as long.

    What is quadratic is so every time; what is linear may be slowed by another test on the same
    core, so that it has to be found so once. The collector rests: a full search of all that the
    process holds is none of the measured time.
    """
    seconds(10)
    collecting = gc.isenabled()
    gc.disable()
    try:
        return any(_once(seconds, size) for _ in range(TRIES))
    finally:
        if collecting:
            gc.enable()


@contextmanager
def timed() -> Iterator[Callable[[], float]]:
    """What tells the seconds of the processor that the block took."""
    begin = time.process_time()
    took: list[float] = []
    yield lambda: took[0]
    took.append(time.process_time() - begin)


def _once(seconds: Callable[[int], float], size: int) -> bool:
    short = min(seconds(size) for _ in range(3))
    return seconds(TIMES * size) < MOST * max(NOISE_S, short)
