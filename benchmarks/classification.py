"""Measures of a score against a truth of two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["area", "balanced_accuracy", "best_balanced_accuracy"]

Scores = NDArray[np.floating[Any]]
Truth = NDArray[np.bool_]


def area(scores: Scores, truth: Truth) -> float:
    """Area under the curve: how often a true row scores above a false one, ties half.

    Args:
        scores: [n].
        truth: [n].

    Returns:
        0.5 where one of the classes is empty.
    """
    positives = int(truth.sum())
    negatives = len(truth) - positives
    if not positives or not negatives:
        return 0.5
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    below = float(ranks[place][truth].sum()) - positives * (positives + 1) / 2
    return below / positives / negatives


def balanced_accuracy(scores: Scores, truth: Truth, threshold: float = 0.5) -> float:
    """Mean of the shares of true rows at or above a threshold and of false rows below it."""
    passed = scores >= threshold
    true = float(passed[truth].mean()) if truth.any() else 1.0
    false = float(passed[~truth].mean()) if (~truth).any() else 0.0
    return (true + 1.0 - false) / 2.0


def best_balanced_accuracy(scores: Scores, truth: Truth) -> float:
    """Balanced accuracy at the threshold that is best for these very rows."""
    return max(balanced_accuracy(scores, truth, float(item)) for item in np.unique(scores))
