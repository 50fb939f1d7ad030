"""What a judge's heads answer, and what its description says."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from guardrail.core.types import Category, Complexity, Value
from guardrail.core.types.judging import Weighing
from judges.calibration import Calibration
from judges.folder import Card

__all__ = ["HEADS", "STATEMENT_MARK", "TOKEN_HEADS", "Ensemble", "JudgeCard"]

HEADS: Mapping[str, tuple[str, ...]] = {
    "nli": ("entailment", "neutral", "contradiction"),
    "attribution": tuple(Category),
    "complexity": tuple(Complexity),
    "claim": ("claim", "no_claim"),
}
"""The heads a judge may have, which read a whole pair; the first label stands for full support."""

TOKEN_HEADS: Mapping[str, tuple[str, ...]] = {
    "words": ("carried", "missing", "contradicted"),
    "statements": ("neither", "carries", "conflicts"),
}
"""Heads that read one token: a word piece of the sentence, or the mark before a statement."""

STATEMENT_MARK = "[unused0]"
"""The token that stands before each numbered statement of the evidence."""


class Ensemble(Value):
    """How two models are pooled.

    Attributes:
        share: Weight of the larger model; that of the smaller one is the rest.
        pairs: The same for NLI of a pair.
        sure: Probability of a verdict from which the smaller model decides alone.
        grounding: Calibration of the pooled verdicts by kind of evidence.
    """

    share: float = Field(default=0.5, ge=0, le=1)
    pairs: float = Field(default=0.3, ge=0, le=1)
    sure: float = Field(default=1.01, ge=0)
    grounding: dict[str, Calibration] = Field(default_factory=dict)


class JudgeCard(Card):
    """What ``judge.json`` says of a model.

    Attributes:
        grounding: Calibration of verdicts by kind of evidence, ``triples`` and ``passages``.
        weighing: How much its probabilities and the findings of checks weigh in a verdict.
        ensemble: How it is pooled with the larger model in its folder, if there is one.
    """

    grounding: dict[str, Calibration] = Field(default_factory=dict)
    weighing: Weighing | None = None
    ensemble: Ensemble = Ensemble()
