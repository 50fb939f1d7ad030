"""Memory for what is computed from words and labels, bounded in size and in number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["remembered"]

LONGEST = 128
"""Longest text that is remembered, in characters: what recurs is shorter, and whoever writes the
evidence must not fill the memory."""

Result = TypeVar("Result")


class _Memory(dict[str, Result]):
    """Results by text; a hit is a lookup in a dictionary and calls no function of Python."""

    def __init__(self, function: Callable[[str], Result], many: int) -> None:
        self._function = function
        self._many = many

    def __missing__(self, text: str) -> Result:
        result = self._function(text)
        if len(text) <= LONGEST:
            if len(self) >= self._many:
                self.clear()
            self[text] = result
        return result


def remembered(many: int) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Make a function of a text remember its results for short texts.

    Args:
        many: Number of results after which all are forgotten.
    """
    return lambda function: _Memory(function, many).__getitem__
