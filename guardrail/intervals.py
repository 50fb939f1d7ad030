"""Confidence intervals of shares, also where rows come in groups."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final

__all__ = ["Z_95", "GroupedShare", "paired_difference", "wilson"]

Z_95: Final = 1.959963984540054
"""Normal quantile of a two-sided interval of 95 %."""


def wilson(share: float, size: float) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share.

    Args:
        share: The share seen, in [0, 1].
        size: Rows it was seen on; for rows in groups, the number of independent ones that would
            tell as much, which need not be whole. 0 for none.
    """
    if size <= 0:
        return 0.0, 1.0
    square = Z_95 * Z_95
    middle = (share + square / (2 * size)) / (1 + square / size)
    spread = share * (1 - share) / size + square / (4 * size * size)
    half = Z_95 * sqrt(spread) / (1 + square / size)
    return max(0.0, middle - half), min(1.0, middle + half)


def paired_difference(changes: Sequence[int], groups: Sequence[str]) -> tuple[float, float, float]:
    """The difference of two shares on the same rows, with its 95 % interval.

    The interval is Wald's with one row added to either change (Bonett and Price, Adjusted Wald
    intervals for a difference of binomial proportions based on paired data, 2012). Of rows in
    groups the number is divided by the design effect, as in ``GroupedShare``.

    Args:
        changes: Of each row: 1 where it counts now and did not before, -1 the other way, else 0.
        groups: The group of each row.

    Returns:
        Now minus before, and the two ends of its interval.
    """
    if not changes:
        return 0.0, -1.0, 1.0
    rows, size = len(changes), _independent(changes, groups)
    more = (size * changes.count(1) / rows + 1) / (size + 2)
    less = (size * changes.count(-1) / rows + 1) / (size + 2)
    middle = more - less
    half = Z_95 * sqrt(max(0.0, more + less - middle * middle) / (size + 2))
    return sum(changes) / rows, max(-1.0, middle - half), min(1.0, middle + half)


def _independent(changes: Sequence[int], groups: Sequence[str]) -> float:
    """How many rows that have nothing in common would tell as much."""
    rows, mean = len(changes), sum(changes) / len(changes)
    apart: dict[str, float] = {}
    for change, group in zip(changes, groups, strict=True):
        apart[group] = apart.get(group, 0.0) + change - mean
    number = len(apart)
    alone = sum((change - mean) ** 2 for change in changes) / (rows * rows)
    if number == rows:
        return rows
    if number < 2 or alone == 0:
        return number
    variance = number / (number - 1) * sum(one * one for one in apart.values()) / (rows * rows)
    return rows / max(1.0, variance / alone)


class GroupedShare:
    """The share of rows that pass, of rows in groups, while rows stop passing one by one.

    Rows of one group, such as those that share their evidence, tend to pass or fail together, so
    that they tell less than as many rows that have nothing in common. Their number is divided by
    the design effect: the variance between groups beside that of independent rows (Kish, Survey
    Sampling, 1965). Where all pass or none does, the groups are counted.

    Args:
        groups: The group of each row.
    """

    def __init__(self, groups: list[str]) -> None:
        self._sizes: dict[str, int] = {}
        for group in groups:
            self._sizes[group] = self._sizes.get(group, 0) + 1
        self._passing = dict(self._sizes)
        self._rows = len(groups)
        self._passed = len(groups)
        # Sums over groups: of squared sizes, of squared passing rows, of the two multiplied.
        self._squared_sizes = sum(size * size for size in self._sizes.values())
        self._squared_passing = self._products = self._squared_sizes

    @property
    def passed(self) -> int:
        """Rows that pass."""
        return self._passed

    @property
    def share(self) -> float:
        """The share of all rows that pass."""
        return self._passed / self._rows

    def fail(self, group: str) -> None:
        """One row of a group that passed passes no more."""
        passing = self._passing[group]
        self._passing[group] = passing - 1
        self._passed -= 1
        self._squared_passing -= 2 * passing - 1
        self._products -= self._sizes[group]

    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share."""
        return wilson(self.share, self._effective())

    def _effective(self) -> float:
        groups, rows, share = len(self._sizes), self._rows, self.share
        if groups == rows:
            return rows
        if groups < 2 or self._passed in (0, rows):
            return groups
        spread = (
            self._squared_passing - 2 * share * self._products + share * share * self._squared_sizes
        )
        variance = groups / (groups - 1) * spread / (rows * rows)
        effect = variance / (share * (1 - share) / rows)
        return rows / max(1.0, effect)
