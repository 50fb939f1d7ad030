"""What a policy makes of an answer, and what a model is told before it tries again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from guardrail.core.types import (
    Action,
    AttributedAnswer,
    Category,
    FailedSentence,
    ScoreCard,
    Sentence,
    SpanKind,
)
from guardrail.markers.rendering import without_sentences
from guardrail.policy import Policy

__all__ = ["Decision", "as_it_came", "decide", "dry", "feedback"]


class Decision(NamedTuple):
    """What the policy makes of one answer.

    Attributes:
        action: What was decided; ``regenerate`` asks the caller for another answer.
        reasons: Why, one line each.
        answer: The answer to show.
        removed: The sentences that it lacks, as they were judged.
        would: What would have been done, had this been no dry run; None where it was none.
    """

    action: Action
    reasons: tuple[str, ...]
    answer: AttributedAnswer
    removed: tuple[Sentence, ...] = ()
    would: Action | None = None


def decide(policy: Policy, answer: AttributedAnswer, card: ScoreCard) -> Decision:
    """Apply a policy to one attributed and scored answer."""
    reasons: list[str] = []
    wanted: list[Action] = []
    remove: list[Sentence] = []
    for sentence in answer.sentences:
        action = policy.asks_for(sentence)
        if action is None:
            continue
        reasons.append(_reason(sentence))
        wanted.append(action)
        if action is Action.FILTER:
            remove.append(sentence)
    below = _below(policy, card)
    reasons += below.values()
    wanted += [policy.irrelevant if name == "relevance" else policy.below for name in below]
    if Action.REFUSE in wanted:
        return _refuse(policy, reasons, answer)
    if Action.REGENERATE in wanted:
        return Decision(Action.REGENERATE, tuple(reasons), answer)
    kept = without_sentences(answer, remove)
    supported = any(
        sentence.category in (Category.SUPPORTIVE, Category.PARTIALLY_SUPPORTIVE)
        for sentence in kept.sentences
    )
    claims = any(sentence.category is not None for sentence in answer.sentences)
    if (policy.needs_support and claims and not supported) or (remove and not kept.text.strip()):
        reasons.append("no sentence is left that the evidence supports")
        return _refuse(policy, reasons, answer)
    if remove:
        return Decision(Action.FILTER, tuple(reasons), kept, tuple(remove))
    done = Action.ANNOTATE if reasons else Action.PASS
    done = Action.CORRECT if Action.CORRECT in wanted else done
    return Decision(done, tuple(reasons), kept)


def as_it_came(decision: Decision, shown: AttributedAnswer, first: AttributedAnswer) -> Decision:
    """A decision on a corrected answer, with the removed sentences as they came.

    ``shown`` is the corrected answer, ``first`` the answer as it came, of as many sentences.
    """
    before = {one.start: other for one, other in zip(shown.sentences, first.sentences, strict=True)}
    return decision._replace(removed=tuple(before[one.start] for one in decision.removed))


def dry(decision: Decision, first: AttributedAnswer) -> Decision:
    """A decision that is told and not carried out: the answer stays as it came first."""
    done = Action.UNVERIFIED if decision.action is Action.UNVERIFIED else Action.PASS
    return Decision(done, decision.reasons, first, would=decision.action)


def feedback(sentences: Sequence[Sentence]) -> list[FailedSentence]:
    """What a model should be told before it tries again: the failed sentences, and why."""
    failed = []
    for sentence in sentences:
        phrases = [f'"{span.text}"' for span in sentence.spans if span.kind is SpanKind.NA]
        if sentence.category is Category.CONTRADICTORY:
            known = " ".join(sentence.against) or "the evidence says otherwise"
            failed.append(FailedSentence(text=sentence.text, reason=f"but {known}"))
        elif sentence.na:
            what = f" for {', '.join(phrases)}" if phrases else ""
            failed.append(FailedSentence(text=sentence.text, reason=f"no support is given{what}"))
    return failed


def _reason(sentence: Sentence) -> str:
    """Why a policy asks for something on a sentence."""
    shown = sentence.text if len(sentence.text) <= 80 else sentence.text[:79] + "…"
    if sentence.correction is not None:
        known = " ".join(sentence.correction.against)
        return f'corrected: "{sentence.correction.original}" against {known}'
    if sentence.category is Category.CONTRADICTORY:
        known = " ".join(sentence.against) or "the evidence as a whole"
        likely = "" if sentence.sure else "likely "
        return f'{likely}contradicted: "{shown}" against {known}'
    phrases = ", ".join(f'"{span.text}"' for span in sentence.spans if span.kind is SpanKind.NA)
    place = f'{phrases} in "{shown}"' if phrases else f'"{shown}"'
    return f"lacks support: {place}"


def _below(policy: Policy, card: ScoreCard) -> dict[str, str]:
    """Why scores are below their thresholds, by name."""
    reasons = {}
    for name, least in policy.thresholds.items():
        score = card.overall if name == "overall" else card.scores.get(name)
        if score is not None and score.value is not None and score.value < least:
            reasons[name] = f"{name} is {score.value:.2f}, below {least:.2f}"
    return reasons


def _refuse(policy: Policy, reasons: list[str], answer: AttributedAnswer) -> Decision:
    refusal = AttributedAnswer(text=policy.refusal, marked=policy.refusal)
    return Decision(Action.REFUSE, tuple(reasons), refusal, answer.sentences)
