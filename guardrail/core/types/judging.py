"""Verdicts of judges, scores, and problems."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, FiniteFloat, model_validator

from guardrail.core.secrets import redact
from guardrail.core.types.value import Probability, Value

__all__ = [
    "Category",
    "Complexity",
    "Grounding",
    "Judgement",
    "NLIScores",
    "Problem",
    "Score",
    "ScoreCard",
    "SecondOpinion",
    "StatementScore",
    "Verdict",
    "VerdictThresholds",
    "Weight",
    "WordScore",
]


class NLIScores(Value):
    """Calibrated probabilities that a premise entails, leaves open or contradicts a hypothesis.

    Attributes:
        entailment: Of ``entailment``.
        neutral: Of ``neutral``.
        contradiction: Of ``contradiction``.
    """

    entailment: Probability
    neutral: Probability
    contradiction: Probability

    @property
    def label(self) -> str:
        """The likeliest of ``entailment``, ``neutral`` and ``contradiction``."""
        return max(("entailment", "neutral", "contradiction"), key=lambda name: getattr(self, name))


class Verdict(StrEnum):
    """What the evidence says about one sentence of an answer.

    ``NOT_CHECKED`` stands for a sentence that nobody judged; it never counts as clean.
    """

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    NO_CLAIM = "no_claim"
    NOT_CHECKED = "not_checked"


class WordScore(Value):
    """How the evidence bears on one word of a sentence.

    Attributes:
        start: Offset of the word's first character in the sentence.
        end: Offset past its last.
        missing: Probability that the evidence does not carry the word.
        contradicted: Probability that the evidence speaks against it.
    """

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    missing: Probability
    contradicted: Probability


class StatementScore(Value):
    """How one statement of the evidence bears on a sentence.

    Attributes:
        carries: Probability that the statement carries a part of the sentence.
        conflicts: Probability that it conflicts with the sentence.
    """

    carries: Probability
    conflicts: Probability


class VerdictThresholds(Value):
    """Least probabilities of a calibrated judge for its verdicts; by default those of ``balanced``.

    Attributes:
        support: A sentence is supported from this probability of support on, among sentences that
            claim something, unless a contradiction is likelier still.
        contradiction: A sentence is called contradicted from this probability of contradiction
            on, among sentences that claim something.
        removal: A policy acts on a contradiction (removes, refuses, regenerates) from this
            probability on; below it the sentence is marked.
    """

    support: Probability = 0.5
    contradiction: Probability = 0.6
    removal: Probability = 0.75

    @property
    def thresholds(self) -> VerdictThresholds:
        """Itself, as a preset has its own."""
        return self

    def distance(self, support: float, contradiction: float) -> float:
        """How far two probabilities are from the nearer of those that verdicts turn at."""
        return min(abs(support - self.support), abs(contradiction - self.contradiction))

    def verdict(self, support: float, contradiction: float) -> Verdict:
        """The verdict on a sentence that claims something, by its two probabilities.

        What is sure enough neither of support nor of contradiction is unsupported.
        """
        if support >= self.support and support >= contradiction:
            return Verdict.SUPPORTED
        if contradiction >= self.contradiction and contradiction > support:
            return Verdict.CONTRADICTED
        return Verdict.UNSUPPORTED


class Weight(Value):
    """What one thing added to the probabilities of a sentence, in log-odds.

    Attributes:
        name: The feature, as ``guardrail.core.types.weighing.features_of`` names it.
        support: Added to support.
        contradiction: Added to contradiction.
    """

    name: str
    support: FiniteFloat
    contradiction: FiniteFloat


class Grounding(Value):
    """Calibrated probabilities of the four verdicts on a sentence, with their evidence.

    Attributes:
        supported: The evidence carries every claim of the sentence.
        unsupported: A claim is not in the evidence, and nothing conflicts.
        contradicted: A claim conflicts with the evidence.
        no_claim: The sentence claims nothing: a greeting, a question, a refusal.
        words: Scores of the sentence's words, in order; empty where the judge does not tell.
        statements: Scores of the evidence statements, in the order in which they were given; None
            for a statement that was not read. Empty where the judge does not tell.
        unread: Offsets of what the judge could not read of the sentence: it has no signs for that,
            or reads no further.
    """

    supported: Probability
    unsupported: Probability
    contradicted: Probability
    no_claim: Probability
    words: tuple[WordScore, ...] = ()
    statements: tuple[StatementScore | None, ...] = ()
    unread: tuple[tuple[int, int], ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict: ``supported`` and ``no_claim`` from 0.5, else the likelier of the two."""
        return self.verdict_at(VerdictThresholds(contradiction=0.5))

    def verdict_at(self, thresholds: VerdictThresholds) -> Verdict:
        """The verdict where support and contradiction need other probabilities than 0.5."""
        if self.no_claim >= 0.5:
            return Verdict.NO_CLAIM
        claims = 1.0 - self.no_claim
        return thresholds.verdict(self.supported / claims, self.contradicted / claims)


class SecondOpinion(Value):
    """That a second judge was asked about a sentence, and what the first one had said.

    Attributes:
        judge: Name of the second judge.
        support: Probability of support by the first judge's word, the findings weighed.
        contradiction: Probability of contradiction, likewise.
        missing: Why the second judge gave no answer, so that the first one's verdict stands; None
            where the verdict is the second one's.
    """

    judge: str
    support: Probability
    contradiction: Probability
    missing: str | None = None


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
        category: The likeliest category; with a strictness other than ``balanced``, the one that
            its thresholds give.
        scores: Probability of each category.
        complexity: The reasoning needed; None where the judge does not tell.
        supported_share: Share of the answer's sub-facts that the evidence supports, in [0, 1];
            None where the judge does not tell.
        rationale: Reason of the verdict, for people.
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
        evidence: Basis of the number, for people.
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


class Problem(Value):
    """Something that went wrong in a part, without stopping the whole.

    Attributes:
        part: ``kg``, ``judge``, ``model``, ``deadline``, ``records``, ``input``, …
        message: What happened and what to do next.
    """

    part: str
    message: Annotated[str, AfterValidator(redact)]
