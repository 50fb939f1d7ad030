"""Non-overlapping spans."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TypeVar

__all__ = ["Apart", "Span", "meets", "read_apart", "within_another"]

T = TypeVar("T")

Span = tuple[int, int]
"""Offsets of the first character of a stretch, and past its last."""


class Apart:
    """Stretches that are taken; what overlaps one of them is not free.

    Args:
        taken: Initial spans, which do not overlap.
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


def read_apart(
    text: str, forms: Iterable[re.Pattern[str]], read: Callable[[re.Match[str]], T | None]
) -> list[T]:
    """What some forms find in a text, in its order, not overlapping; earlier forms go first.

    Args:
        text: The text.
        forms: Each is looked for in what those before it have left.
        read: What a match tells; None where it tells nothing, and takes no place.
    """
    found: list[tuple[int, T]] = []
    apart = Apart()
    for form in forms:
        for match in form.finditer(text):
            if apart.free(*match.span()) and (item := read(match)) is not None:
                apart.take(*match.span())
                found.append((match.start(), item))
    return [item for _, item in sorted(found, key=itemgetter(0))]


def meets(span: Span, others: Iterable[Span]) -> bool:
    """Whether a stretch overlaps one of some others."""
    first, last = span
    for start, end in others:  # noqa: SIM110  # runs for every word of a sentence
        if first < end and start < last:
            return True
    return False


def within_another(span: Span, others: Iterable[Span]) -> bool:
    """Whether a stretch is a piece of one of some others, and not the whole of it."""
    first, last = span
    for start, end in others:
        if start <= first and last <= end and end - start > last - first:
            return True
    return False
