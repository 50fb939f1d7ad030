"""Why a sentence was judged and treated as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from guardrail.core.types.judging import Verdict, VerdictThresholds, Weight
from guardrail.core.types.value import Probability, Value

if TYPE_CHECKING:
    from guardrail.core.types.answers import Sentence

__all__ = ["Explanation", "explanation_of"]


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
    )


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
    if support is None or contradiction is None or at is None:
        if verdict is Verdict.NO_CLAIM:
            return "it makes no claim that can be checked"
        return "no judge was asked; the checks decide"
    return (
        f"support {support:.2f} (threshold {at.support:.2f}), contradiction {contradiction:.2f} "
        f"(threshold {at.contradiction:.2f}; {at.removal:.2f} to act on it)"
    )


def _otherwise(sentence: Sentence, verdict: Verdict) -> tuple[str, ...]:
    support, contradiction, at = sentence.support, sentence.contradiction, sentence.thresholds
    if support is None or contradiction is None or at is None:
        return ()
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
