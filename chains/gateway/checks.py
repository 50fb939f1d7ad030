"""What ``/v1/checks`` and ``/v1/rank`` read and write."""

from __future__ import annotations

from pydantic import Field

from guardrail import (
    ANNOTATE,
    Evidence,
    GuardedAnswer,
    Guardrail,
    Passage,
    Policy,
    ScoreCard,
    inline_evidence,
    policy_named,
)
from guardrail.types import OwnStrictness, Value

__all__ = ["CheckBody", "RankBody", "Ranking", "check", "rank"]

MAX_ANSWERS = 64
"""Most answers of one ranking; the same bound as a policy's candidates."""


class _Body(Value):
    id: str | int | None = None
    question: str = ""
    triples: tuple[tuple[str, str, str], ...] | None = None
    passages: tuple[str | Passage, ...] | None = None
    policy: str | None = None
    strictness: OwnStrictness = None

    def evidence(self) -> tuple[Evidence, ...] | None:
        """The evidence given inline; None where the graph is to be asked."""
        return inline_evidence(self.triples, self.passages)

    def chosen_policy(self) -> Policy:
        """The policy named, with the strictness told; ``annotate`` unless told otherwise, since
        the caller keeps control here.
        """
        policy = policy_named(self.policy) if self.policy else ANNOTATE
        return policy.changed(strictness=self.strictness) if self.strictness else policy


class CheckBody(_Body):
    """An answer to check.

    Attributes:
        answer: With or without markers.
    """

    answer: str


class RankBody(_Body):
    """Answers to rank.

    Attributes:
        answers: In the order that the result's indices count.
    """

    answers: tuple[str, ...] = Field(min_length=1, max_length=MAX_ANSWERS)


class RankedAnswer(Value):
    """A candidate's place in the request, its score and its score card."""

    index: int
    score: float | None
    scorecard: ScoreCard


class Ranking(Value):
    """Candidates, best first."""

    id: str | int | None
    ranking: tuple[RankedAnswer, ...]


async def check(guard: Guardrail, body: CheckBody) -> GuardedAnswer:
    """Check one answer."""
    return await guard.acheck(
        question=body.question,
        answer=body.answer,
        evidence=body.evidence(),
        policy=body.chosen_policy(),
        id=None if body.id is None else str(body.id),
    )


async def rank(guard: Guardrail, body: RankBody) -> Ranking:
    """Rank several answers."""
    answers = await guard.arank(
        question=body.question,
        answers=body.answers,
        evidence=body.evidence(),
        policy=body.chosen_policy(),
    )
    return Ranking(
        id=body.id,
        ranking=tuple(
            RankedAnswer(
                index=answer.index,
                score=answer.scorecard.overall.value,
                scorecard=answer.scorecard,
            )
            for answer in answers
        ),
    )
