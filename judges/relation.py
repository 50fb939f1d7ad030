"""The relation head: whether a sentence states a triple's own relation of its two names.

It reads what the other heads of a judge read, and lies beside the judge's model in a file of its
own, so that it can be fitted anew without touching them. A judge's folder may do without.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardrail.errors import JudgeError

__all__ = ["POOLED", "RELATION_FILE", "RelationHead"]

POOLED = "pooled"
"""A model's output that its heads read: the first token's state joined with the mean, [n, 2 h]."""

RELATION_FILE = "relation.npz"
"""Name of the file in a judge's folder."""


class RelationHead(NamedTuple):
    """A layer of units with tanh, and a logistic one.

    Attributes:
        inner: Weights of the first layer, float32 [units, width].
        inner_bias: Its biases, [units].
        outer: Weights of the second, [units].
        outer_bias: Its bias, [1].
    """

    inner: NDArray[np.float32]
    inner_bias: NDArray[np.float32]
    outer: NDArray[np.float32]
    outer_bias: NDArray[np.float32]

    def __call__(self, pooled: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """Probability that the first text of each of n pairs states the second.

        Args:
            pooled: What the heads read, [n, width].
        """
        units = np.tanh(pooled @ self.inner.T + self.inner_bias)
        logits: NDArray[np.floating[Any]] = units @ self.outer + self.outer_bias
        result: NDArray[np.floating[Any]] = 1.0 / (1.0 + np.exp(-logits))
        return result

    def save(self, folder: Path) -> None:
        """Write the head beside a judge's model, in 16 bits."""
        np.savez(
            folder / RELATION_FILE, **{k: v.astype(np.float16) for k, v in self._asdict().items()}
        )

    @classmethod
    def load(cls, folder: Path) -> RelationHead | None:
        """Read the head of a judge's folder; None where it has none.

        Raises:
            JudgeError: The file is damaged.
        """
        path = folder / RELATION_FILE
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as stored:
                head = cls(**{name: stored[name].astype(np.float32) for name in cls._fields})
        except Exception as error:
            raise JudgeError(f"{path} holds no relation head: {error}") from error
        units = len(head.outer)
        if head.inner.ndim != 2 or len(head.inner) != units or len(head.inner_bias) != units:
            raise JudgeError(f"{path} holds no relation head: its layers do not fit each other")
        return head
