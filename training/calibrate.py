"""Temperatures: one number per head that makes its probabilities mean what they say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["expected_calibration_error", "fit_temperature", "softmax"]


def softmax(logits: NDArray[np.floating], temperature: float = 1.0) -> NDArray[np.float64]:
    """Probabilities of logits [n, k] divided by a temperature."""
    scaled = logits.astype(np.float64) / temperature
    scaled -= scaled.max(axis=-1, keepdims=True)
    powers = np.exp(scaled)
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def fit_temperature(
    logits: NDArray[np.floating],
    labels: NDArray[np.integer],
    weights: NDArray[np.floating] | None = None,
) -> float:
    """Find the temperature of least negative log-likelihood (Guo et al. 2017).

    Args:
        logits: Raw scores, [n, k].
        labels: Right classes, [n].
        weights: Weight of each row; all alike when None.

    Returns:
        A temperature in [0.25, 8]; above 1 where the model is too sure.
    """
    weight = np.ones(len(labels)) if weights is None else weights.astype(np.float64)
    rows = np.arange(len(labels))

    def loss(log_temperature: float) -> float:
        chosen = softmax(logits, float(np.exp(log_temperature)))[rows, labels]
        return float(-(weight * np.log(np.maximum(chosen, 1e-12))).sum() / weight.sum())

    low, high = np.log(0.25), np.log(8.0)
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if loss(left) < loss(right):
            high = right
        else:
            low = left
    return float(np.exp((low + high) / 2.0))


def expected_calibration_error(
    probabilities: NDArray[np.floating], labels: NDArray[np.integer], *, bins: int = 15
) -> float:
    """Mean gap between confidence and accuracy over bins of equal width, weighted by their size.

    Args:
        probabilities: [n, k].
        labels: Right classes, [n].
        bins: Number of bins.
    """
    confidence = probabilities.max(axis=-1)
    right = probabilities.argmax(axis=-1) == labels
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    error = 0.0
    for number in range(bins):
        inside = place == number
        if inside.any():
            error += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return float(error)
