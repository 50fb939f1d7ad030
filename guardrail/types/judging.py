"""Verdicts of judges, and scores."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from pydantic import Field, FiniteFloat, model_validator

from guardrail.types.value import Probability, Value

__all__ = ["Category", "Complexity", "Judgement", "NLIScores", "Score", "ScoreCard"]


class NLIScores(Value):
    """Calibrated probabilities that a premise entails, leaves open or contradicts a hypothesis.

    Attributes:
        entailment: Of ``entailment``.
        neutral: Of ``neutral``.
        contradiction: Of ``contradiction``.
        stated: Where the judge tells it, and the hypothesis is a triple, the probability that the
            premise states its relation of the two names, and no other one; without meaning for
            other hypotheses, and never written out.
    """

    entailment: Probability
    neutral: Probability
    contradiction: Probability
    stated: Probability | None = Field(default=None, exclude=True, repr=False)

    @property
    def label(self) -> str:
        """The likeliest of ``entailment``, ``neutral`` and ``contradiction``."""
        return max(("entailment", "neutral", "contradiction"), key=lambda name: getattr(self, name))


class Category(StrEnum):
    """How evidence bears on an answer (CAQA 3.2)."""

    SUPPORTIVE = "supportive"
    PARTIALLY_SUPPORTIVE = "partially_supportive"
    CONTRADICTORY = "contradictory"
    IRRELEVANT = "irrelevant"


class Complexity(StrEnum):
    """The reasoning that joins the evidence (CAQA 3.3)."""

    SINGLE = "single"
    UNION = "union"
    INTERSECTION = "intersection"
    CONCATENATION = "concatenation"


class Judgement(Value):
    """An attribution judge's verdict on (question, answer, evidence) (CAQA 3).

    Attributes:
        category: The likeliest category.
        scores: Probability of each category.
        complexity: The reasoning needed; None where the judge does not tell.
        supported_share: Share of the answer's sub-facts that the evidence supports, in [0, 1];
            None where the judge does not tell.
        rationale: What the verdict rests on, for a person to read.
    """

    category: Category
    scores: Mapping[Category, Probability]
    complexity: Complexity | None = None
    supported_share: Probability | None = None
    rationale: str | None = None


class Score(Value):
    """A number with what it was computed from, or the reason why there is none.

    Attributes:
        value: The number, None when it cannot be computed.
        reason: Why there is no value; set exactly when ``value`` is None.
        evidence: What the number rests on, for a person to read.
    """

    value: FiniteFloat | None = None
    reason: str | None = None
    evidence: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _value_or_reason(self) -> Self:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a score has either a value or a reason for having none")
        return self


class ScoreCard(Value):
    """All scores of one answer.

    Attributes:
        overall: What candidates are ranked by, in [0, 1].
        scores: Every score by name: ``supported_share``, ``na_share``, ``sck``,
            ``sck.knowledge``, ``conner.factuality``, …; policies set thresholds on these names.
    """

    overall: Score
    scores: Mapping[str, Score] = Field(default_factory=dict)
