"""Stretches of a text that do not overlap, of which there may be many."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

__all__ = ["Apart"]


class Apart:
    """Stretches that are taken; what overlaps one of them is not free.

    Args:
        taken: Those taken from the start, none of which overlap.
    """

    def __init__(self, taken: Iterable[tuple[int, int]] = ()) -> None:
        self._taken = sorted(taken)

    def free(self, start: int, end: int) -> bool:
        """Whether a stretch overlaps none; the time hardly grows with their number.

        Args:
            start: Offset of its first character.
            end: Offset past its last.
        """
        behind = bisect_left(self._taken, (end,))
        return behind == 0 or self._taken[behind - 1][1] <= start

    def take(self, start: int, end: int) -> None:
        """Take a stretch that is free."""
        insort(self._taken, (start, end))
