"""Confidence intervals of shares, means and paired differences, also for clustered rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from guardrail.core.types import Value

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

    @property
    def percent(self) -> str:
        """As text, such as ``50.0% [9.5%, 90.5%]``."""
        return f"{self.value:.1%} [{self.low:.1%}, {self.high:.1%}]"


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


def share(number: int, rows: int) -> Rate:
    """The share of independent rows that count, with Wilson's interval."""
    value = number / rows if rows else 0.0
    low, high = wilson(value, rows)
    return Rate(value=value, low=low, high=high, rows=rows)


def clustered_share(counts: ArrayLike, clusters: ArrayLike) -> Rate:
    """A share with Wilson's interval for the effective number of rows.

    Args:
        counts: [n] 1 or True for each row that counts, else 0.
        clusters: [n] The cluster of each row; rows of a cluster are not independent.
    """
    values = np.asarray(counts, dtype=float)
    if not len(values):
        return share(0, 0)
    value = float(values.mean())
    low, high = wilson(value, _effective_size(values, clusters))
    return Rate(value=value, low=low, high=high, rows=len(values))


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
    values = np.array(changes, dtype=float)
    size = _effective_size(values, clusters)
    more, less = ((size * float(np.mean(values == sign)) + 1) / (size + 2) for sign in (1, -1))
    middle = more - less
    half = Z_95 * sqrt(max(0.0, more + less - middle * middle) / (size + 2))
    low, high = max(-1.0, middle - half), min(1.0, middle + half)
    return Rate(value=float(values.mean()), low=low, high=high, rows=len(values))


def _effective_size(values: np.ndarray, clusters: ArrayLike) -> float:
    """The number of independent rows that would give as precise a mean.

    Rows of one cluster, such as rows with the same evidence, tend to agree. The number of rows is
    divided by the design effect: the variance between clusters over that of independent rows
    (Kish, Survey Sampling, 1965). If all values are equal, the clusters are counted.
    """
    rows = len(values)
    _, members = np.unique(np.asarray(clusters), return_inverse=True)
    number = int(members.max()) + 1
    if number == rows:
        return rows
    residuals = values - values.mean()
    alone = float(residuals @ residuals)
    if number < 2 or not np.ptp(values):
        return number
    sums = np.bincount(members, weights=residuals)
    between = number / (number - 1) * float(sums @ sums)
    return rows / max(1.0, between / alone)
