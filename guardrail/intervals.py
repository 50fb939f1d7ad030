"""Confidence intervals of shares, means and paired differences, also for clustered rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from guardrail.core.types import Value

__all__ = ["Z_95", "Rate", "effective_size", "mean", "paired_difference", "share", "wilson"]

Z_95: Final = 1.959963984540054
"""Normal quantile of a two-sided 95 % interval."""


class Rate(Value):
    """A share, a mean or a difference with its 95 % confidence interval.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.
        rows: Number of rows.
    """

    value: float
    low: float
    high: float
    rows: int


def wilson(share: float, size: float) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share.

    Args:
        share: The observed share, in [0, 1].
        size: Number of rows, or their effective number, which need not be whole; 0 for none.
    """
    if size <= 0:
        return 0.0, 1.0
    square = Z_95 * Z_95
    middle = (share + square / (2 * size)) / (1 + square / size)
    spread = share * (1 - share) / size + square / (4 * size * size)
    half = Z_95 * sqrt(spread) / (1 + square / size)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(number: int, rows: int, size: float | None = None) -> Rate:
    """A share with Wilson's interval.

    Args:
        number: Rows that count.
        rows: All rows.
        size: Their effective number (``effective_size``); None for independent rows.
    """
    value = number / rows if rows else 0.0
    low, high = wilson(value, rows if size is None else size)
    return Rate(value=value, low=low, high=high, rows=rows)


def mean(rows: int, total: float, squares: float) -> Rate:
    """A mean with its normal interval.

    Args:
        rows: Number of values, at least one.
        total: Their sum.
        squares: The sum of their squares.
    """
    value = total / rows
    half = Z_95 * sqrt(max(0.0, squares / rows - value * value) / max(1, rows - 1))
    return Rate(value=value, low=value - half, high=value + half, rows=rows)


def paired_difference(changes: Sequence[int], clusters: Sequence[str]) -> Rate:
    """The difference of two shares on the same rows.

    The interval is Wald's with one row added to either change (Bonett and Price, Adjusted Wald
    intervals for a difference of binomial proportions based on paired data, 2012), with the
    effective number of rows.

    Args:
        changes: For each row 1 if it counts only now, -1 if it counted only before, else 0.
        clusters: The cluster of each row.
    """
    if not changes:
        return Rate(value=0.0, low=-1.0, high=1.0, rows=0)
    rows, size = len(changes), effective_size(changes, clusters)
    more = (size * changes.count(1) / rows + 1) / (size + 2)
    less = (size * changes.count(-1) / rows + 1) / (size + 2)
    middle = more - less
    half = Z_95 * sqrt(max(0.0, more + less - middle * middle) / (size + 2))
    return Rate(
        value=sum(changes) / rows, low=max(-1.0, middle - half), high=min(1.0, middle + half),
        rows=rows,
    )  # fmt: skip


def effective_size(values: ArrayLike, clusters: ArrayLike) -> float:
    """The number of independent rows that would give as precise a mean.

    Rows of one cluster, such as rows with the same evidence, tend to agree. The number of rows is
    divided by the design effect: the variance between clusters over that of independent rows
    (Kish, Survey Sampling, 1965). If all values are equal, the clusters are counted.

    Args:
        values: [n] A value for each row; n is at least 1.
        clusters: [n] The cluster of each row.
    """
    numbers = np.asarray(values, dtype=float)
    rows = len(numbers)
    _, members = np.unique(np.asarray(clusters), return_inverse=True)
    number = int(members.max()) + 1
    if number == rows:
        return rows
    residuals = numbers - numbers.mean()
    alone = float(residuals @ residuals)
    if number < 2 or not np.ptp(numbers):
        return number
    sums = np.bincount(members, weights=residuals)
    between = number / (number - 1) * float(sums @ sums)
    return rows / max(1.0, between / alone)
