"""Answers phrase by phrase, what the guardrail made of them, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, FiniteFloat, computed_field, model_validator

from guardrail.core.types.judging import (
    Category,
    Finding,
    Judgement,
    Problem,
    ScoreCard,
    SecondOpinion,
    Verdict,
    VerdictThresholds,
    Weight,
)
from guardrail.core.types.knowledge import Citation, Evidence, LinkedEntity, Triple
from guardrail.core.types.value import Probability, Value

__all__ = [
    "Action",
    "AskRequest",
    "AttributedAnswer",
    "CheckRequest",
    "Correction",
    "Explanation",
    "FailedSentence",
    "GuardedAnswer",
    "RankRequest",
    "Sentence",
    "Span",
    "SpanKind",
    "explanation_of",
]


class SpanKind(StrEnum):
    """What the evidence says of a phrase."""

    SUPPORTED = "supported"
    NA = "na"
    CONTRADICTED = "contradicted"
    CORRECTED = "corrected"


class Span(Value):
    """A phrase of the clean answer text, with the triple that supports or contradicts it.

    Offsets count characters of the whole clean answer, not of the sentence. ``instead_of`` is what
    the model wrote where a corrected phrase stands.
    """

    text: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    kind: SpanKind
    triple: Triple | None = None
    instead_of: str | None = None


class Correction(Value):
    """How a sentence was mended that the evidence contradicted.

    The words that changed are its spans of the kind ``corrected``.

    Attributes:
        original: The sentence as the model wrote it, without markers.
        by: ``edit`` where only what conflicts was exchanged, ``model`` where a language model was
            asked for the sentence again.
        against: What contradicted it, as text of the evidence, a line each.
    """

    original: str
    by: Literal["edit", "model"]
    against: tuple[str, ...] = ()


class Sentence(Value):
    """A sentence of the answer and what the evidence says about it.

    ``verdict`` is the decision; ``support`` and ``contradiction`` are the calibrated probabilities
    behind it and are never overwritten. Category, ``na`` and judgement derive from them.

    Attributes:
        text: The clean sentence, without markers.
        start: Offset of its first character in the clean answer.
        end: Offset past its last character.
        verdict: The decision.
        partial: True if the evidence supports a part of an unsupported sentence.
        citations: The cited triples, in the order of the phrases they support.
        citation_errors: Why citations that the model itself wrote into it are wrong, a line each.
        uncited: What supports it but is not cited, since its value does not appear verbatim.
        spans: Supported, unsupported and contradicted phrases, in order, non-overlapping.
        findings: What the checks found.
        against: What contradicts it, as text of the evidence; empty if nothing does, or if no
            single statement does.
        note: What a reader should know, such as a citation that was dropped and why.
        support: Probability of support, judge and findings combined; None without a judge.
        contradiction: Probability of contradiction, likewise.
        sure: True if a contradiction is certain enough to act on at the requested strictness.
        weights: What the judge and each finding added to the two probabilities.
        thresholds: The thresholds of the verdict; None without a judge.
        correction: How it was corrected; None if it stands as the model wrote it.
        judged_by: Name of the judge that gave the probabilities, if there are two judges.
        second_opinion: The result of asking the second judge; None if it was not asked.
        read: Numbers, from 1, of the items of the answer's evidence that were read for it; never
            written out.
    """

    text: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    verdict: Verdict = Verdict.NO_CLAIM
    partial: bool = False
    citations: tuple[Citation, ...] = ()
    citation_errors: tuple[str, ...] = ()
    uncited: tuple[Citation, ...] = ()
    spans: tuple[Span, ...] = ()
    findings: tuple[Finding, ...] = ()
    against: tuple[str, ...] = ()
    note: str | None = None
    support: Probability | None = None
    contradiction: Probability | None = None
    sure: bool = False
    weights: tuple[Weight, ...] = ()
    thresholds: VerdictThresholds | None = None
    correction: Correction | None = None
    judged_by: str | None = None
    second_opinion: SecondOpinion | None = None
    read: tuple[int, ...] = Field(default=(), exclude=True, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _read_derived(cls, fields: object) -> object:
        """Accept sentences as they are written, with derived fields, or by category alone."""
        derived = {"category", "na", "judgement"}
        if not isinstance(fields, Mapping) or not derived & fields.keys():
            return fields
        kept = {name: value for name, value in fields.items() if name not in derived}
        category = fields.get("category")
        if "verdict" not in kept and category is not None:
            kept["verdict"] = {
                Category.SUPPORTIVE: Verdict.SUPPORTED,
                Category.PARTIALLY_SUPPORTIVE: Verdict.UNSUPPORTED,
                Category.IRRELEVANT: Verdict.UNSUPPORTED,
                Category.CONTRADICTORY: Verdict.CONTRADICTED,
            }[Category(category)]
            kept["partial"] = category == Category.PARTIALLY_SUPPORTIVE
        return kept

    @computed_field  # type: ignore[prop-decorator]  # mypy issue 1362
    @property
    def category(self) -> Category | None:
        """The category of CAQA 3.2; None for a sentence without a claim."""
        if self.verdict is Verdict.NO_CLAIM:
            return None
        if self.verdict is Verdict.SUPPORTED:
            return Category.SUPPORTIVE
        if self.verdict is Verdict.CONTRADICTED:
            return Category.CONTRADICTORY
        return Category.PARTIALLY_SUPPORTIVE if self.partial else Category.IRRELEVANT

    @computed_field  # type: ignore[prop-decorator]  # mypy issue 1362
    @property
    def na(self) -> bool:
        """True if a claim in it lacks support (KaLMA 2.1, conscious incompetence)."""
        return self.verdict in (Verdict.UNSUPPORTED, Verdict.NOT_CHECKED)

    @computed_field  # type: ignore[prop-decorator]  # mypy issue 1362
    @property
    def judgement(self) -> Judgement | None:
        """Verdict and probabilities in the four categories; None without a claim or a judge."""
        if self.category is None or self.support is None or self.contradiction is None:
            return None
        against = min(self.contradiction, 1.0 - self.support)
        rest = max(0.0, 1.0 - self.support - against)
        scores = {
            Category.SUPPORTIVE: self.support,
            Category.PARTIALLY_SUPPORTIVE: rest if self.partial else 0.0,
            Category.CONTRADICTORY: against,
            Category.IRRELEVANT: 0.0 if self.partial else rest,
        }
        return Judgement(category=self.category, scores=scores)

    @classmethod
    def not_judged(cls, text: str, start: int, end: int) -> Self:
        """A sentence that was not judged, since the answer has too many."""
        return cls(
            text=text,
            start=start,
            end=end,
            verdict=Verdict.NOT_CHECKED,
            note="not judged: the answer exceeds the sentence limit (limits.sentences)",
        )

    @property
    def behind_the_bound(self) -> bool:
        """True if it was not judged, since the answer has too many sentences."""
        return self.verdict is Verdict.NOT_CHECKED

    def explain(self, *, removed: bool = False) -> Explanation:
        """Why its verdict is what it is, and what would have to change for another.

        Args:
            removed: Whether the policy took it out.
        """
        return explanation_of(self, removed=removed)


class FailedSentence(Value):
    """A sentence of an earlier answer that did not hold, and why."""

    text: str
    reason: str


class AttributedAnswer(Value):
    """An answer split into sentences, each grounded in evidence.

    Attributes:
        text: The clean answer, without markers.
        marked: The answer with ``[Q…, property: value]`` and ``[NA]`` markers.
        sentences: In order; their offsets index ``text``.
    """

    text: str
    marked: str
    sentences: tuple[Sentence, ...] = ()


class Action(StrEnum):
    """What the policy did with the answer."""

    PASS = "pass"
    ANNOTATE = "annotate"
    REGENERATE = "regenerate"
    FILTER = "filter"
    CORRECT = "correct"
    REFUSE = "refuse"
    UNVERIFIED = "unverified"


CHANGING = frozenset({Action.FILTER, Action.CORRECT, Action.REGENERATE, Action.REFUSE})
"""Actions after which the text is not the one that the model wrote."""


class GuardedAnswer(Value):
    """What the guardrail returns for one answer.

    Attributes:
        id: The caller's id, or one made here.
        index: Place of a ranked answer among the candidates as they were given or sampled,
            counted from 0; 0 for an answer that was checked alone.
        question: The question as given.
        text: The clean text to show.
        marked: The same with markers.
        action: What the policy did.
        would: What it would have done, had this been no dry run; None where it was none.
        reasons: Why, one line each.
        sentences: The sentences of ``text``.
        removed: The sentences that the policy took out, as they were judged: of a filtered answer
            those it removed, of a refused one all, before any was corrected. Their offsets count
            the characters of ``original`` without its markers. Empty where an answer was refused
            unjudged.
        entities: The linked entities, each with how it was found.
        evidence: What the answer was judged against.
        evidence_from: Where that came from, the most trusted first: ``caller``, ``content
            parts``, ``tool results``, ``marked text``, ``files`` of the settings, ``graph``.
        scorecard: All scores.
        original: The original answer, before the policy changed anything.
        attempts: Number of model calls spent; 0 for an answer that was handed in.
        versions: Names and versions of model, judge, graph and policy.
        timings_ms: Wall time by stage, milliseconds.
        errors: What went wrong in a part.
    """

    id: str
    index: int = Field(default=0, ge=0)
    question: str
    text: str
    marked: str
    action: Action
    would: Action | None = None
    reasons: tuple[str, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    removed: tuple[Sentence, ...] = ()
    entities: tuple[LinkedEntity, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    evidence_from: tuple[str, ...] = ()
    scorecard: ScoreCard
    original: str | None = None
    attempts: int = Field(default=0, ge=0)
    versions: Mapping[str, str] = Field(default_factory=dict)
    timings_ms: Mapping[str, FiniteFloat] = Field(default_factory=dict)
    errors: tuple[Problem, ...] = ()

    def explain(self) -> tuple[Explanation, ...]:
        """Why each sentence was judged and treated as it was, in the order of ``judged``."""
        return (
            *(sentence.explain() for sentence in self.sentences),
            *(sentence.explain(removed=True) for sentence in self.removed),
        )

    @property
    def dry_run(self) -> bool:
        """Whether it left as the model wrote it, whatever the policy said."""
        return self.would is not None

    @property
    def would_block(self) -> bool:
        """Whether, but for a dry run, its text would not have left as the model wrote it."""
        return self.would in CHANGING

    @property
    def decided(self) -> str:
        """What the policy did, for a person to read; of a dry run ``would filter`` and so on."""
        return self.action.value if self.would is None else f"would {self.would.value}"

    @property
    def judged(self) -> tuple[Sentence, ...]:
        """All sentences that were judged, those first that are shown still."""
        return self.sentences + self.removed


class Explanation(Value):
    """What led to a sentence's verdict, and what would have to change for another.

    Attributes:
        text: The sentence.
        verdict: The verdict on it.
        outcome: Whether it was shown as it is, shown with a mark, corrected, or removed.
        because: What decided, in one line.
        otherwise: Under which probabilities it would have come out differently, a line each.
        support: Probability of support; None without a judge.
        contradiction: Probability of contradiction; None without a judge.
        thresholds: Those that the verdict was given by; None without a judge.
        weights: What the judge's word and each finding added, in log-odds, the largest first.
        findings: What the checks found: check, effect, words and reason, a line each.
        rests_on: What it cites.
        against: What contradicts it, or contradicted it before it was corrected.
        original: The sentence before it was corrected; None for any other.
        judged_by: Which of two judges gave the probabilities, and what the first one said where
            the second was asked; None where there is one judge.
        read: Numbers, from 1, of the items of the answer's evidence that were read for it; empty
            for an answer that was read from JSON.
    """

    text: str
    verdict: Verdict
    outcome: Literal["shown", "marked", "corrected", "removed"]
    because: str
    otherwise: tuple[str, ...] = ()
    support: Probability | None = None
    contradiction: Probability | None = None
    thresholds: VerdictThresholds | None = None
    weights: tuple[Weight, ...] = ()
    findings: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    original: str | None = None
    judged_by: str | None = None
    read: tuple[int, ...] = ()

    def __str__(self) -> str:
        lines = [f'{self.outcome}: "{self.text}"', f"  {self.verdict}: {self.because}"]
        lines += [f"  judged by {self.judged_by}"] if self.judged_by else []
        lines += [f'  corrected from: "{self.original}"'] if self.original else []
        lines += [f"  found by {finding}" for finding in self.findings]
        lines += [f"  rests on: {item}" for item in self.rests_on]
        lines += [f"  against: {item}" for item in self.against]
        if self.weights:
            weights = (f"{w.name} {w.support:+.2f} {w.contradiction:+.2f}" for w in self.weights)
            lines.append(f"  adds to log-odds of support and contradiction: {', '.join(weights)}")
        lines += [f"  would be {item}" for item in self.otherwise]
        lines += [f"  read for it: {_ranges(self.read)}"] if self.read else []
        return "\n".join(lines)


def explanation_of(sentence: Sentence, *, removed: bool) -> Explanation:
    """Why a sentence was judged and treated as it was.

    Args:
        sentence: The sentence.
        removed: Whether the policy took it out.
    """
    verdict, correction = sentence.verdict, sentence.correction
    marked = sentence.na or verdict is Verdict.CONTRADICTED
    weights = sorted(
        sentence.weights, key=lambda item: -max(abs(item.support), abs(item.contradiction))
    )
    return Explanation(
        text=sentence.text,
        verdict=verdict,
        outcome=(
            "removed"
            if removed
            else "corrected"
            if correction is not None
            else "marked"
            if marked
            else "shown"
        ),
        because=_because(sentence, verdict),
        otherwise=_otherwise(sentence, verdict),
        support=sentence.support,
        contradiction=sentence.contradiction,
        thresholds=sentence.thresholds,
        weights=tuple(weights),
        findings=tuple(
            f"{finding.check}, {finding.effect}: {finding.because}" for finding in sentence.findings
        ),
        rests_on=tuple(
            f"{citation.entity}, {citation.property}: {citation.value}"
            for citation in (*sentence.citations, *sentence.uncited)
        ),
        against=sentence.against if correction is None else correction.against,
        original=None if correction is None else correction.original,
        judged_by=_judged_by(sentence),
        read=sentence.read,
    )


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers, those in a row as a range: *1-3, 7*."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if run[1:] else f"{run[0]}" for run in found)


def _judged_by(sentence: Sentence) -> str | None:
    second = sentence.second_opinion
    if second is None:
        return sentence.judged_by
    if second.missing is not None:
        return f"{sentence.judged_by}; {second.judge} did not answer: {second.missing}"
    return (
        f"{sentence.judged_by}; the first judge said support {second.support:.2f}, "
        f"contradiction {second.contradiction:.2f}"
    )


def _because(sentence: Sentence, verdict: Verdict) -> str:
    support, contradiction, at = sentence.support, sentence.contradiction, sentence.thresholds
    if verdict is Verdict.NO_CLAIM:
        return "it makes no claim that can be checked"
    settled = " and ".join(dict.fromkeys(item.check for item in sentence.findings if item.decides))
    if support is None or contradiction is None or at is None:
        return f"{settled} decides" if settled else "no judge was asked; the checks decide"
    if settled:
        return (
            f"{settled} decides, whatever the judge says (support {support:.2f}, contradiction "
            f"{contradiction:.2f})"
        )
    scores = (
        f"support {support:.2f} (threshold {at.support:.2f}), contradiction {contradiction:.2f} "
        f"(threshold {at.contradiction:.2f}; {at.removal:.2f} to act on it)"
    )
    reached = at.verdict(support, contradiction)
    if verdict is not Verdict.UNSUPPORTED or reached is Verdict.UNSUPPORTED:
        return scores
    if reached is Verdict.CONTRADICTED:
        return f"{scores}; but no statement about its subject that was read conflicts with it"
    return f"{scores}; but a part was not read, or it denies what the evidence does not refute"


def _otherwise(sentence: Sentence, verdict: Verdict) -> tuple[str, ...]:
    support, contradiction, at = sentence.support, sentence.contradiction, sentence.thresholds
    if support is None or contradiction is None or at is None:
        return ()
    if any(finding.decides for finding in sentence.findings):
        return ()
    if verdict is not at.verdict(support, contradiction):
        return ()  # not for the sake of a threshold
    supported = (
        f"supported with support of {at.support:.2f} or more (now {support:.2f}), unless "
        "contradiction is higher than support"
    )
    named = (
        f"contradicted with contradiction of {at.contradiction:.2f} or more "
        f"(now {contradiction:.2f}), if it is higher than support"
    )
    if verdict is Verdict.SUPPORTED:
        return (f"unsupported with support below {at.support:.2f} (now {support:.2f})", named)
    if verdict is Verdict.UNSUPPORTED:
        return (supported, named)
    now = f"(now {contradiction:.2f})"
    if sentence.sure:
        return (supported, f"only marked with contradiction below {at.removal:.2f} {now}")
    return (supported, f"acted on with contradiction of {at.removal:.2f} or more {now}")


class CheckRequest(Value):
    """One answer to check; see ``Guardrail.check``."""

    question: str
    answer: str
    evidence: tuple[Evidence, ...] | None = None
    id: str | None = None


class RankRequest(Value):
    """Several answers to rank; see ``Guardrail.rank``."""

    question: str
    answers: tuple[str, ...]
    evidence: tuple[Evidence, ...] | None = None
    id: str | None = None


class AskRequest(Value):
    """A question to answer; see ``Guardrail.ask``."""

    question: str
    n: int | None = None
    evidence: tuple[Evidence, ...] | None = None
    id: str | None = None
