"""What follows from a judged answer: the policy's decision, ranking, feedback, and problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.config import QUESTION_CHARS, LimitsConfig
from guardrail.core.errors import (
    DeadlineExceededError,
    GuardrailError,
    InputError,
    JudgeError,
    KnowledgeGraphError,
    MissingExtraError,
    ModelError,
    OverloadedError,
)
from guardrail.core.text.words import in_english
from guardrail.core.types import (
    Action,
    AttributedAnswer,
    FailedSentence,
    GuardedAnswer,
    Problem,
    Score,
    ScoreCard,
    Sentence,
    SpanKind,
    Verdict,
)
from guardrail.markers.grammar import parse
from guardrail.markers.rendering import without_sentences
from guardrail.policy import Policy

if TYPE_CHECKING:
    from guardrail.engine.flow import Checked, Row
    from guardrail.evidence.retrieval import Knowledge


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
    below = card.below(policy.thresholds)
    reasons += below.values()
    wanted += [policy.irrelevant if name == "relevance" else policy.below for name in below]
    if Action.REFUSE in wanted:
        return _refuse(policy, reasons, answer)
    if Action.REGENERATE in wanted:
        return Decision(Action.REGENERATE, tuple(reasons), answer)
    kept = without_sentences(answer, remove)
    bare = policy.needs_support and _lacks_support(answer, kept)
    if bare or (remove and not kept.text.strip()):
        reasons.append("no sentence is left that the evidence supports")
        return _refuse(policy, reasons, answer)
    if remove:
        return Decision(Action.FILTER, tuple(reasons), kept, tuple(remove))
    done = Action.ANNOTATE if reasons else Action.PASS
    done = Action.CORRECT if Action.CORRECT in wanted else done
    return Decision(done, tuple(reasons), kept)


def _lacks_support(answer: AttributedAnswer, kept: AttributedAnswer) -> bool:
    """True if an answer claims something, and nothing that is kept of it is supported."""
    claims = {sentence.verdict for sentence in answer.sentences} - {Verdict.NO_CLAIM}
    return bool(claims) and not any(
        one.partial or one.verdict is Verdict.SUPPORTED for one in kept.sentences
    )


def as_judged_first(
    decision: Decision, shown: AttributedAnswer, first: AttributedAnswer
) -> Decision:
    """A decision on a corrected answer, with the removed sentences as they were in the original."""
    before = {one.start: other for one, other in zip(shown.sentences, first.sentences, strict=True)}
    return decision._replace(removed=tuple(before[one.start] for one in decision.removed))


def dry(decision: Decision, first: AttributedAnswer) -> Decision:
    """A decision that is reported and not carried out: the answer stays unchanged."""
    done = Action.UNVERIFIED if decision.action is Action.UNVERIFIED else Action.PASS
    return Decision(done, decision.reasons, first, would=decision.action)


def feedback(sentences: Sequence[Sentence]) -> list[FailedSentence]:
    """Feedback for a model's next attempt: the failed sentences with reasons."""
    failed = []
    for sentence in sentences:
        phrases = [f'"{span.text}"' for span in sentence.spans if span.kind is SpanKind.NA]
        if sentence.verdict is Verdict.CONTRADICTED:
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
    if sentence.verdict is Verdict.CONTRADICTED:
        known = " ".join(sentence.against) or "the evidence as a whole"
        likely = "" if sentence.sure else "likely "
        return f'{likely}contradicted: "{shown}" against {known}'
    phrases = ", ".join(f'"{span.text}"' for span in sentence.spans if span.kind is SpanKind.NA)
    place = f'{phrases} in "{shown}"' if phrases else f'"{shown}"'
    return f"lacks support: {place}"


def _refuse(policy: Policy, reasons: list[str], answer: AttributedAnswer) -> Decision:
    refusal = AttributedAnswer(text=policy.refusal, marked=policy.refusal)
    return Decision(Action.REFUSE, tuple(reasons), refusal, answer.sentences)


def ranked(answers: Sequence[GuardedAnswer], policy: Policy) -> list[GuardedAnswer]:
    """Order answers by the policy's ``rank_by``; the first reason of each tells its place.

    Refused answers and those without a score come last; among equal ones those with
    fewer corrections come first. Ties are broken by the number of different citations, then by the
    share of claims without support, then by the order given.
    """
    ordered = sorted(answers, key=lambda answer: _key(answer, policy.rank_by))
    keys = [_key(answer, policy.rank_by) for answer in ordered]
    return [
        answer.model_copy(update={"reasons": (
            _place_reason(place, keys, answer, policy.rank_by),
            *(reason for reason in answer.reasons if not reason.startswith("rank ")),
        )})
        for place, answer in enumerate(ordered)
    ]  # fmt: skip


def _score(answer: GuardedAnswer, name: str) -> Score:
    card = answer.scorecard
    if name == "overall" or (name not in card.scores and card.overall.value is None):
        return card.overall  # where the answer was not scored at all, it says why
    return card.scores.get(name, Score(reason=f"there is no score {name!r}"))


def _key(answer: GuardedAnswer, name: str) -> tuple[bool, bool, float, int, float, float]:
    scores = answer.scorecard.scores
    value = _score(answer, name).value
    citations = scores["citations"].value if "citations" in scores else None
    lacking = scores["na_share"].value if "na_share" in scores else None
    return (
        (answer.would or answer.action) is Action.REFUSE,
        value is None,
        -(value or 0.0),
        sum(sentence.correction is not None for sentence in answer.sentences),
        -(citations or 0.0),
        lacking or 0.0,
    )


def _place_reason(
    place: int, keys: Sequence[tuple[float, ...]], answer: GuardedAnswer, name: str
) -> str:
    score = _score(answer, name)
    head = f"rank {place + 1} of {len(keys)}: {'refused; ' if keys[place][0] else ''}"
    if score.value is None:
        return f"{head}no {name} score, {score.reason}"
    why = "; ".join(score.evidence)
    return f"{head}{name} {score.value:.2f}" + (f" ({why})" if why else "") + _decided(place, keys)


def _decided(place: int, keys: Sequence[tuple[float, ...]]) -> str:
    """What decided against the answer before, of the first against the next, if not the score."""
    rival = place - 1 if place else 1
    names = ("", "", "score", "sentences corrected", "different citations", "share without support")
    pairs = zip(names, keys[place], keys[rival], strict=True) if len(keys) > 1 else ()
    for name, own, other in pairs:
        if own != other:
            seen = not name or (name == "score" and f"{own:.2f}" != f"{other:.2f}")
            decided = f"; decided against rank {rival + 1} by {name}: "
            return "" if seen else f"{decided}{abs(own):g}, there {abs(other):g}"
    return f"; equal to rank {rival + 1} in all, so in the order given" if pairs else ""


ERRORS_OF_PARTS: dict[str, type[GuardrailError]] = {
    "kg": KnowledgeGraphError,
    "judge": JudgeError,
    "checks": JudgeError,
    "model": ModelError,
    "deadline": DeadlineExceededError,
    "overload": OverloadedError,
    "input": InputError,
    "sentences": InputError,
}

UNUSABLE = (KnowledgeGraphError, JudgeError, ModelError, MissingExtraError, OverloadedError)
"""Errors that say that a part cannot be used: the policy decides what follows from them."""


def problem_of(error: GuardrailError, otherwise: str) -> Problem:
    """The problem of a part that could not be used; ``otherwise`` if the error names none."""
    named = (part for part, kind in ERRORS_OF_PARTS.items() if isinstance(error, kind))
    return Problem(part=next(named, otherwise), message=str(error))


def late(policy: Policy, seconds: float | None, part: str = "deadline") -> Problem:
    """The problem of a missed deadline; ``part`` names what was late after the verdicts."""
    message = (
        f"the {seconds:g} s of policy {policy.name!r} ran out; raise deadline_s or ask for less"
    )
    return Problem(part=part, message=message)


def unfit(row: Row, limits: LimitsConfig) -> Problem | None:
    """Why a row cannot be checked; None where it can."""
    for what, text, most in (
        ("answer", row.request.answer, limits.answer_chars),
        ("question", row.request.question, QUESTION_CHARS),
    ):
        if len(text) > most:
            return overlong(what, most)
    if (
        not row.request.answer.partition("[")[0].strip()
        and not parse(row.request.answer).clean.strip()
    ):
        message = "the answer is empty or has only markers; there is nothing to check"
        return Problem(part="input", message=message)
    return None


def overlong(what: str, most: int) -> Problem:
    """The problem of an answer or a question with more characters than are read."""
    advice = " or raise limits.answer_chars" if what == "answer" else ""
    message = f"the {what} has more than {most} characters; shorten it{advice}"
    return Problem(part="input", message=message)


def behind_the_bound(sentences: Sequence[Sentence], limits: LimitsConfig) -> list[Problem]:
    """The problem of an answer with unjudged sentences, if any."""
    left = [sentence.verdict for sentence in sentences].count(Verdict.NOT_CHECKED)
    message = (
        f"the last {left} sentences of the answer were not judged, beyond limits.sentences = "
        f"{limits.sentences}; check it in parts, or raise the limit"
    )
    return [Problem(part="sentences", message=message)] if left else []


def without_second_opinion(sentences: Sequence[Sentence]) -> list[Problem]:
    """Problems for the sentences that the second judge did not answer, by reason."""
    opinions = [sentence.second_opinion for sentence in sentences if sentence.second_opinion]
    missing = Counter([(one.judge, one.missing) for one in opinions if one.missing is not None])
    return [
        Problem(
            part="second_judge",
            message=f"{judge} gave no second opinion on {count} sentences; the first judge's "
            f"verdict stands: {why}",
        )
        for (judge, why), count in missing.items()
    ]


def notices(
    row: Row, checked: Checked | None, known: Knowledge, *, failed: bool
) -> Iterator[Problem]:
    """Problems that do not change the verdict.

    Where something else ``failed``, that explains evidence that is missing.
    """
    if not row.request.question.strip() and known.source == "graph":
        message = "the question is empty; entities were linked in the answer alone"
        yield Problem(part="question", message=message)
    if checked and not in_english(f"{row.request.question} {row.request.answer}"):
        message = "the text does not read like English; the verdicts may be wrong"
        yield Problem(part="language", message=message)
    bare = checked.answer.sentences if checked and not known.evidence and not failed else ()
    if {item.verdict for item in bare} - {Verdict.NO_CLAIM}:
        message = "nothing to judge by: no evidence, and no entity of a graph named"
        yield Problem(part="evidence", message=message)
    if known.left_out:
        message = (
            f"{known.left_out} triples and passages were left out or cut; raise limits.evidence, "
            "or hand in less or shorter passages"
        )
        yield Problem(part="evidence", message=message)
