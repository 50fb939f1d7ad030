"""The shipped judge: a small cross-encoder, and a larger encoder where that one is unsure.

The two read differently: one sees sentence and evidence together, the other encodes evidence once.
Their logarithmic opinion pool judges better than the smaller one (``benchmarks/RESULTS.md``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from guardrail.core.types import Grounding, NLIScores
from judges.base import GroundingItem, Pair
from judges.calibration import LEAST, Calibration
from judges.evidence_judge import EvidenceJudge
from judges.heads import HEADS
from judges.onnx import SECOND, OnnxJudge

__all__ = ["EnsembleJudge", "most_of"]

NLI = HEADS["nli"]


class EnsembleJudge(OnnxJudge):
    """Pools verdicts and NLI of two models; all else is the smaller one's.

    The probabilities of supported, unsupported and contradicted are multiplied, each to the power
    of its model's share, and calibrated (Genest and Zidek 1986, "Combining Probability
    Distributions"). Sentences that the smaller model is sure about are not read by the larger one.

    Args:
        folder: Folder of the smaller model, with that of the larger one, ``second``, in it. Its
            ``judge.json`` has the shares, as ``ensemble``.
        threads: Passes computed at the same time; all cores by default.
    """

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        super().__init__(folder, threads=threads)
        self._second = EvidenceJudge(folder / SECOND, threads=threads)

    @property
    def name(self) -> str:
        """Names and versions of both, for the score log."""
        return f"{super().name}+{self._second.name}"

    @property
    def snapshot(self) -> str | None:
        """Hashes of the files of both; None if some cannot be read."""
        found = super().snapshot, self._second.snapshot
        return "+".join(filter(None, found)) if all(found) else None

    def warm_up(self) -> None:
        """Load both models; later calls do nothing."""
        super().warm_up()
        self._second.warm_up()

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs by both models; see ``NLIJudge``."""
        share = self.card.ensemble.pairs
        return [
            NLIScores.model_validate(
                dict(zip(NLI, _product(_nli(one), _nli(other), share), strict=True))
            )
            for one, other in zip(super().judge(pairs), self._second.judge(pairs), strict=True)
        ]

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences; see ``GroundingJudge``."""
        found = super().ground(items)
        unsure = [i for i, one in enumerate(found) if most_of(one) < self.card.ensemble.sure]
        second = self._second.ground([items[i] for i in unsure])
        for i, other in zip(unsure, second, strict=True):
            found[i] = self._pooled(found[i], other, structured=items[i].structured)
        return found

    def _pooled(self, one: Grounding, other: Grounding, *, structured: bool) -> Grounding:
        share = self.card.ensemble.share
        calibration = self.card.ensemble.grounding.get(
            "triples" if structured else "passages", Calibration()
        )
        pooled = _product(_shares(one), _shares(other), share)
        claims = 1.0 - one.no_claim
        supported, unsupported, contradicted = calibration.shares(pooled)
        return one.model_copy(
            update={
                "supported": supported * claims,
                "unsupported": unsupported * claims,
                "contradicted": contradicted * claims,
            }
        )


def _product(one: Sequence[float], other: Sequence[float], share: float) -> list[float]:
    """Probabilities of two models multiplied, each to the power of its share; their sum is 1."""
    found = [
        math.exp((1 - share) * math.log(max(LEAST, a)) + share * math.log(max(LEAST, b)))
        for a, b in zip(one, other, strict=True)
    ]
    return [value / sum(found) for value in found]


def _nli(one: NLIScores) -> tuple[float, float, float]:
    return one.entailment, one.neutral, one.contradiction


def _shares(one: Grounding) -> tuple[float, float, float]:
    """Supported, unsupported and contradicted, given that something is claimed."""
    claims = max(LEAST, 1.0 - one.no_claim)
    return one.supported / claims, one.unsupported / claims, one.contradicted / claims


def most_of(one: Grounding) -> float:
    """Probability of the likeliest verdict."""
    return max(*_shares(one), one.no_claim)
