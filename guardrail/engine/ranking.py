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
    keys = [_key(answer, policy.rank_by) for answer in ordered]
    return [
        answer.model_copy(update={"reasons": (
            _reason(place, keys, answer, policy.rank_by),
            *(told for told in answer.reasons if not told.startswith(RANK)),
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


RANK = "rank "
DECIDE = ("", "", "score", "sentences corrected", "different citations", "share without support")


def _reason(place: int, keys: Sequence[tuple[float, ...]], answer: GuardedAnswer, name: str) -> str:
    score = _score(answer, name)
    head = f"{RANK}{place + 1} of {len(keys)}: {'refused; ' if keys[place][0] else ''}"
    if score.value is None:
        return f"{head}no {name} score, {score.reason}"
    why = "; ".join(score.evidence)
    return f"{head}{name} {score.value:.2f}" + (f" ({why})" if why else "") + _decided(place, keys)


def _decided(place: int, keys: Sequence[tuple[float, ...]]) -> str:
    """What decided against the answer before, of the first against the next, if not the score."""
    beside = place - 1 if place else 1
    pairs = zip(DECIDE, keys[place], keys[beside], strict=True) if len(keys) > 1 else ()
    for name, own, other in pairs:
        if own != other:
            seen = not name or (name == "score" and f"{own:.2f}" != f"{other:.2f}")
            decided = f"; decided against rank {beside + 1} by {name}: "
            return "" if seen else f"{decided}{abs(own):g}, there {abs(other):g}"
    return f"; equal to rank {beside + 1} in all, so in the order given" if pairs else ""
