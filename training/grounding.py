"""Calibration of a judge on labelled statements, for each kind of evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from guardrail.core.types import Grounding, Verdict
from judges.base import GroundingItem, GroundingJudge
from judges.settings import Calibration
from training.statements import Statement

__all__ = [
    "KINDS",
    "calibrated",
    "fit_calibration",
    "fit_calibrations",
    "ground",
]

KINDS = ("triples", "passages")


_LABEL = {Verdict.SUPPORTED: 0, Verdict.UNSUPPORTED: 1, Verdict.CONTRADICTED: 2}


def ground(judge: GroundingJudge, statements: Sequence[Statement]) -> list[Grounding]:
    """A judge's scores of statements, in order, each with all of its evidence."""
    return judge.ground(
        [
            GroundingItem(
                statement.statements,
                statement.sentence,
                statement.before,
                structured=statement.triples,
                windows=statement.windows,
            )
            for statement in statements
        ]
    )


class Labelled(Protocol):
    """A sentence whose verdict is known, of one kind of evidence."""

    @property
    def triples(self) -> bool: ...
    @property
    def verdict(self) -> Verdict: ...


def fit_calibrations(
    groundings: Sequence[Grounding], statements: Sequence[Labelled]
) -> dict[str, Calibration]:
    """Fit temperature and bias of each kind of evidence, so that 0.5 is the best threshold.

    Supported statements and the others count alike.

    Args:
        groundings: What the judge says without any calibration.
        statements: The statements.
    """
    found = {}
    for kind in KINDS:
        picked = [
            (grounding, statement)
            for grounding, statement in zip(groundings, statements, strict=True)
            if statement.triples == (kind == "triples") and statement.verdict in _LABEL
        ]
        if picked:
            logits = np.log(np.maximum([_claimed(item) for item, _ in picked], 1e-6))
            labels = np.array([_LABEL[statement.verdict] for _, statement in picked])
            found[kind] = fit_calibration(logits, labels)
    return found


def _claimed(grounding: Grounding) -> list[float]:
    """Probabilities of supported, unsupported and contradicted, given that a claim is made."""
    some = max(1e-9, 1.0 - grounding.no_claim)
    return [grounding.supported / some, grounding.unsupported / some, grounding.contradicted / some]


def fit_calibration(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> Calibration:
    """Maximum likelihood of temperature and bias; supported rows and the others weigh a half each.

    Args:
        logits: Logarithms of the probabilities of the three verdicts, [n, 3].
        labels: Right verdicts, [n].
    """
    values, truth = torch.tensor(logits), torch.tensor(labels)
    supported = truth == 0
    weights = torch.where(supported, 0.5 / supported.sum(), 0.5 / (~supported).sum())
    log_t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([log_t, bias], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        rows = torch.log_softmax((values + bias) / log_t.exp(), -1)
        value = -(weights * rows[torch.arange(len(truth)), truth]).sum() + 1e-4 * (bias**2).sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    first, second, third = (bias - bias.mean()).tolist()
    return Calibration(
        temperature=round(math.exp(float(log_t)), 4),
        bias=(round(first, 4), round(second, 4), round(third, 4)),
    )


def calibrated(grounding: Grounding, calibration: Calibration) -> Grounding:
    """A grounding with other calibration, from one without any."""
    logits = np.log(np.maximum(_claimed(grounding), 1e-9)) + np.array(calibration.bias)
    scaled = np.exp((logits - logits.max()) / calibration.temperature)
    some = 1.0 - grounding.no_claim
    supported, unsupported, contradicted = (scaled / scaled.sum() * some).tolist()
    changed = {
        "supported": supported,
        "unsupported": unsupported,
        "contradicted": contradicted,
    }
    return grounding.model_copy(update=changed)
