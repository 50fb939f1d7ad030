"""Verdicts of judges and checks, scores, problems, and how probabilities become a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    FiniteFloat,
    ValidationError,
    model_validator,
)

from guardrail.core.secrets import redact
from guardrail.core.types.value import Probability, Value

__all__ = [
    "Category",
    "Complexity",
    "Effect",
    "Finding",
    "Grounding",
    "Judgement",
    "NLIScores",
    "OwnStrictness",
    "Problem",
    "Score",
    "ScoreCard",
    "SecondOpinion",
    "StatementScore",
    "Strictness",
    "StrictnessSetting",
    "Verdict",
    "VerdictThresholds",
    "Weighed",
    "Weighing",
    "Weight",
    "Weights",
    "WordScore",
    "as_strictness",
    "features_of",
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
        support: Minimum probability of support, given that the sentence claims something, to call
            it supported, unless a contradiction is likelier.
        contradiction: Minimum probability of contradiction, given that the sentence claims
            something, to call it contradicted.
        removal: Minimum probability of a contradiction for a policy to act on it (remove, refuse,
            regenerate); below it the sentence is marked.
    """

    support: Probability = 0.5
    contradiction: Probability = 0.65
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
        name: The feature, as ``guardrail.core.types.judging.features_of`` names it.
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
        unread: Spans of the sentence that the judge could not read: characters outside its
            vocabulary, or text beyond its limit.
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


class Effect(StrEnum):
    """What a check says of a sentence."""

    CARRIES = "carries"
    MISSING = "missing"
    CONTRADICTS = "contradicts"
    NO_CLAIM = "no_claim"


class Finding(Value):
    """What one check found in a sentence, and why.

    Attributes:
        check: Name of the check, as the configuration switches it.
        effect: What it says of the sentence.
        start: Offset of the words it speaks of, in the clean answer.
        end: Offset past them.
        because: Its reason, for people.
        instead: For a contradiction, the conflicting value as the evidence writes it; None if
            there is no single one.
        decides: True if it settles the verdict, whatever the judge says: a copied sentence, a fact
            stated or denied in full, a subject that the evidence says nothing about.
        statements: Numbers of the statements of evidence that support it; never written out.
    """

    check: str
    effect: Effect
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    because: str
    instead: str | None = None
    decides: bool = False
    statements: tuple[int, ...] = Field(default=(), exclude=True, repr=False)


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

    def below(self, thresholds: Mapping[str, float]) -> dict[str, str]:
        """Scores below their thresholds, by name, each with the reason in words.

        A score without a value, such as a share of claims where there is none, is below nothing.
        """
        reasons = {}
        for name, least in thresholds.items():
            score = self.overall if name == "overall" else self.scores.get(name)
            if score is not None and score.value is not None and score.value < least:
                reasons[name] = f"{name} is {score.value:.2f}, below {least:.2f}"
        return reasons


class Problem(Value):
    """Something that went wrong in a part, without stopping the whole.

    Attributes:
        part: ``kg``, ``judge``, ``model``, ``deadline``, ``records``, ``input``, …
        message: What happened and what to do next.
    """

    part: str
    message: Annotated[str, AfterValidator(redact)]


LEAST = 1e-4
"""Probabilities are kept this far from 0 and 1 before their logarithm is taken."""


class Weighed(NamedTuple):
    """Probabilities that a sentence is supported, and that it is contradicted."""

    support: float
    contradiction: float


class Weights(Value):
    """Log-odds by feature, for one kind of statement; see ``features_of``.

    The defaults are for a judge for which none were fitted: its own log-odds, and findings strong
    enough to overrule a judge that is not very sure. That a passage has a value of a sentence says
    little about what it says of that value: of 758 such sentences of the validation rows 52 % were
    supported, of all 47 %.

    Attributes:
        support: Of support.
        contradiction: Of contradiction.
    """

    support: Mapping[str, FiniteFloat] = Field(
        default_factory=lambda: {
            "support": 1.0,
            "carries": 1.0,
            "exact_match.carries": -0.5,
            "missing": -3.0,
            "contradicts": -4.0,
        }
    )
    contradiction: Mapping[str, FiniteFloat] = Field(
        default_factory=lambda: {"contradiction": 1.0, "carries": -1.0, "contradicts": 5.0}
    )

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
    passages: Weights = Weights(support={"support": 1.0, "missing": -3.0, "contradicts": -4.0})


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


class Strictness(StrEnum):
    """Presets of thresholds."""

    LENIENT = "lenient"
    BALANCED = "balanced"
    STRICT = "strict"

    @property
    def thresholds(self) -> VerdictThresholds:
        """The preset's thresholds."""
        return _PRESETS[self]


# A threshold on a calibrated probability of support says what an error costs: from two thirds on,
# a false sentence that passes costs as much as two true ones that are marked; from one third on,
# half of one. Contradictions are reported and acted on only if certain, by precisions that
# ``python -m training calibrate`` measured on validation rows.
_PRESETS = {
    Strictness.LENIENT: VerdictThresholds(support=1 / 3, contradiction=0.7, removal=0.75),
    Strictness.BALANCED: VerdictThresholds(support=0.5, contradiction=0.65, removal=0.75),
    Strictness.STRICT: VerdictThresholds(support=2 / 3, contradiction=0.5, removal=0.75),
}


def as_strictness(value: object) -> Strictness | VerdictThresholds:
    """Read a strictness: a preset, its name, or thresholds.

    Raises:
        ConfigError: It is none of these; the message names the nearest preset.
    """
    from guardrail.core.errors import ConfigError
    from guardrail.core.fields import did_you_mean

    if isinstance(value, Strictness | VerdictThresholds):
        return value
    if isinstance(value, str):
        name = value.strip().lower()
        if name in list(Strictness):
            return Strictness(name)
        hint = did_you_mean(name, [item.value for item in Strictness])
        raise ConfigError(f"there is no strictness {value!r}; {hint}")
    if isinstance(value, Mapping):
        try:
            return VerdictThresholds.model_validate(dict(value))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            if first["type"] == "extra_forbidden":
                known = ", ".join(VerdictThresholds.model_fields)
                raise ConfigError(
                    f"strictness has no {first['loc'][0]!r}; known: {known}"
                ) from None
            raise ConfigError(f"strictness.{first['loc'][0]}: {first['msg']}") from None
    raise ConfigError(
        f"strictness is one of {', '.join(Strictness)}, or a table of support, contradiction and "
        "removal"
    )


def _as_own(value: object) -> Strictness | VerdictThresholds | None:
    return None if value is None else as_strictness(value)


StrictnessSetting = Annotated[Strictness | VerdictThresholds, BeforeValidator(as_strictness)]
"""The type of a setting that holds one."""

OwnStrictness = Annotated[Strictness | VerdictThresholds | None, BeforeValidator(_as_own)]
"""The type of a setting that may leave it to another one."""
