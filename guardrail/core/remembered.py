"""Memory for what is computed of words and labels, bounded in size as well as in number."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

__all__ = ["remembered"]

LONGEST = 128
"""Most characters of a text that is remembered: what recurs is shorter, and whoever writes the
evidence shall not fill the memory."""

Result = TypeVar("Result")


def remembered(many: int) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Make a function of a text remember what it gave for short ones.

    Args:
        many: Most texts that are remembered; the ones not asked for longest go first.
    """

    def with_memory(function: Callable[[str], Result]) -> Callable[[str], Result]:
        recall = lru_cache(maxsize=many)(function)

        @wraps(function)
        def of(text: str) -> Result:
            return recall(text) if len(text) <= LONGEST else function(text)

        return of

    return with_memory
