"""Ranking: candidates best first, each with the reason for its place."""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.core.types import Action, GuardedAnswer, Score
from guardrail.policy import Policy

__all__ = ["ranked"]


def ranked(answers: Sequence[GuardedAnswer], policy: Policy) -> list[GuardedAnswer]:
    """Order answers by the policy's ``rank_by``; the first reason of each tells its place.

    Refused answers and those without a score come last; of equal ones those come first of which
    less had to be corrected. Ties are broken by the number of different citations, then by the
    share of claims without support, then by the order given.
    """
    ordered = sorted(answers, key=lambda answer: _key(answer, policy.rank_by))
    return [
        answer.model_copy(update={"reasons": (_reason(place, len(ordered), answer, policy.rank_by),
                                              *_plain(answer.reasons))})
        for place, answer in enumerate(ordered, start=1)
    ]  # fmt: skip


def _score(answer: GuardedAnswer, name: str) -> Score:
    card = answer.scorecard
    if name == "overall":
        return card.overall
    if name not in card.scores and card.overall.value is None:
        return card.overall  # the answer was not scored at all, and this says why
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


RANK = "rank "


def _reason(place: int, total: int, answer: GuardedAnswer, name: str) -> str:
    score = _score(answer, name)
    head = f"{RANK}{place} of {total}: "
    if score.value is None:
        return f"{head}no {name} score, {score.reason}"
    why = "; ".join(score.evidence)
    return f"{head}{name} {score.value:.2f}" + (f" ({why})" if why else "")


def _plain(reasons: Sequence[str]) -> list[str]:
    return [reason for reason in reasons if not reason.startswith(RANK)]
