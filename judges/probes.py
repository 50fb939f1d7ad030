"""Small heads that read what a judge's network gives for a claim: two layers, run with NumPy.

They are fitted on a finished network by ``python -m training publish``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from judges.sequences import Claim
from judges.session import softmax
from judges.window_reader import Reading

__all__ = [
    "PROBES",
    "PROBES_FILE",
    "Probe",
    "read_probes",
    "statement_features",
    "word_features",
    "write_probes",
]

PROBES_FILE = "probes.npz"

PROBES: Mapping[str, int] = {"statements": 3, "words": 3, "attribution": 4, "complexity": 4}
"""Probes and their number of labels, in the order of ``judges.heads``."""

Array = NDArray[np.float32]


class Probe(NamedTuple):
    """softmax(tanh(((x - mean) / scale) · first + first_bias) · second + second_bias).

    Attributes:
        mean: Of each feature, [features].
        scale: Standard deviation of each feature, [features].
        first: [features, hidden].
        first_bias: [hidden].
        second: [hidden, labels].
        second_bias: [labels].
    """

    mean: Array
    scale: Array
    first: Array
    first_bias: Array
    second: Array
    second_bias: Array

    def __call__(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probabilities [n, labels] of features [n, features]."""
        inner = np.tanh((features - self.mean) / self.scale @ self.first + self.first_bias)
        return softmax(inner @ self.second + self.second_bias)


def statement_features(reading: Reading, spans: Sequence[tuple[int, int]]) -> NDArray[np.float32]:
    """Features of statements, [n, layers · heads + 4].

    The logarithm of the attention of the sentence to each statement by head, less that to the
    statement with most of it, and the logits of the sentence.

    Args:
        reading: What the network gave for the sentence.
        spans: Tokens of each statement among those of the evidence.
    """
    attended = np.stack([reading.attention[:, a:b].sum(1) for a, b in spans])
    logs = np.log(attended + 1e-4)
    most = logs.max(0, keepdims=True)
    labels = np.broadcast_to(reading.labels, (len(spans), len(reading.labels)))
    return np.concatenate([logs - most, logs[:, ::4], labels], axis=1).astype(np.float32)


def word_features(reading: Reading, claim: Claim) -> NDArray[np.float32]:
    """Features of the tokens of a sentence, [n, width]."""
    return reading.states[claim.start : claim.start + claim.length]


def read_probes(folder: Path) -> dict[str, Probe]:
    """The probes of a judge's folder; empty if it has none.

    Raises:
        JudgeError: The file cannot be read.
    """
    path = folder / PROBES_FILE
    if not path.is_file():
        return {}
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {
                name: Probe(*(stored[f"{name}.{part}"] for part in Probe._fields))
                for name in PROBES
                if f"{name}.mean" in stored
            }
    except (OSError, ValueError, KeyError) as error:
        raise JudgeError(f"{path} cannot be read: {error}") from error


def write_probes(folder: Path, probes: Mapping[str, Probe]) -> None:
    """Write the probes of a judge's folder."""
    arrays = {
        f"{name}.{part}": values
        for name, probe in probes.items()
        for part, values in zip(Probe._fields, probe, strict=True)
    }
    np.savez(folder / PROBES_FILE, **arrays)  # type: ignore[arg-type]
