"""How a judge's probabilities and the findings of checks are weighed: a small logistic model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import Field, FiniteFloat

from guardrail.core.types.answers import Finding
from guardrail.core.types.judging import Grounding, Weight
from guardrail.core.types.value import Value

__all__ = ["Weighed", "Weighing", "Weights", "features_of"]

LEAST = 1e-4
"""Probabilities are kept this far from 0 and 1 before their logarithm is taken."""


class Weighed(NamedTuple):
    """Probabilities that a sentence is supported, and that it is contradicted."""

    support: float
    contradiction: float


UNFITTED_SUPPORT = {
    "support": 1.0,
    "carries": 1.0,
    "exact_match.carries": -0.5,
    "missing": -3.0,
    "contradicts": -4.0,
}
UNFITTED_SUPPORT_IN_PROSE = {
    "support": 1.0,
    "missing": -3.0,
    "contradicts": -4.0,
}
UNFITTED_CONTRADICTION = {
    "contradiction": 1.0,
    "carries": -1.0,
    "contradicts": 5.0,
}
"""Weights for a judge for which none were fitted: its own log-odds, and findings strong enough to
overrule a judge that is not very sure. That a passage has a value of a sentence says little about
what it says of that value: of 758 such sentences of the validation rows 52 % were supported, of all
47 %."""


class Weights(Value):
    """Log-odds by feature, for one kind of statement; see ``features_of``.

    Attributes:
        support: Of support.
        contradiction: Of contradiction.
    """

    support: Mapping[str, FiniteFloat] = Field(default_factory=UNFITTED_SUPPORT.copy)
    contradiction: Mapping[str, FiniteFloat] = Field(default_factory=UNFITTED_CONTRADICTION.copy)

    def weigh(self, features: Mapping[str, float]) -> Weighed:
        """The probabilities of a sentence, from its features."""
        return Weighed(_chance(self.support, features), _chance(self.contradiction, features))

    def parts(self, features: Mapping[str, float]) -> tuple[Weight, ...]:
        """What each feature of a sentence adds to its log-odds, where it adds anything."""
        added = [
            Weight(
                name=name,
                support=round(self.support.get(name, 0.0) * value, 2) + 0.0,
                contradiction=round(self.contradiction.get(name, 0.0) * value, 2) + 0.0,
            )
            for name, value in features.items()
        ]
        return tuple([weight for weight in added if weight.support or weight.contradiction])


class Weighing(Value):
    """Weights of findings by kind of evidence; by default those of a judge without fitted weights.

    Attributes:
        triples: Where all statements that findings name, or else all that were read, are triples.
        passages: Elsewhere.
    """

    triples: Weights = Weights()
    passages: Weights = Weights(support=UNFITTED_SUPPORT_IN_PROSE)


def features_of(grounding: Grounding, findings: Sequence[Finding]) -> dict[str, float]:
    """What is weighed of a sentence that claims something.

    ``support`` and ``contradiction`` are log-odds of the judge's calibrated probabilities;
    ``EFFECT`` is 1 where any check found it, such as ``contradicts``, and ``CHECK.EFFECT`` where
    that check did, such as ``typed_values.contradicts``; ``agrees`` is 1 where checks found support
    and nothing missing or in conflict; ``bias`` is 1.
    """
    claims = max(LEAST, 1.0 - grounding.no_claim)
    found = {f"{finding.check}.{finding.effect}" for finding in findings}
    effects = {finding.effect.value for finding in findings}
    features = {
        "bias": 1.0,
        "support": _log_odds(grounding.supported / claims),
        "contradiction": _log_odds(grounding.contradicted / claims),
        "agrees": float(effects == {"carries"}),
    }
    return features | dict.fromkeys(sorted(found | effects), 1.0)


def _chance(weights: Mapping[str, float], features: Mapping[str, float]) -> float:
    total = math.fsum([weight * features.get(name, 0.0) for name, weight in weights.items()])
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))


def _log_odds(chance: float) -> float:
    inside = min(1.0 - LEAST, max(LEAST, chance))
    return math.log(inside / (1.0 - inside))
