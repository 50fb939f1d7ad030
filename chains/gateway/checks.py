"""What ``/v1/checks`` and ``/v1/rank`` read and write."""

from __future__ import annotations

from pydantic import Field

from chains.evidence.base import Case, Source
from chains.evidence.items import HandedOver
from guardrail import (
    ANNOTATE,
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
    evidence: HandedOver = None
    policy: str | None = None
    strictness: OwnStrictness = None

    def case(self) -> Case:
        """The question with the evidence given; without any the graph is asked."""
        inline = inline_evidence(self.triples, self.passages)
        if inline is None and self.evidence is None:
            return Case(self.question)
        together = dict.fromkeys((*(self.evidence or ()), *(inline or ())))
        return Case(self.question, tuple(together), (Source.CALLER,))

    def chosen_policy(self) -> Policy:
        """The policy named, with the strictness told; ``annotate`` unless told otherwise, since
        the caller keeps control here.
        """
        policy = policy_named(self.policy) if self.policy else ANNOTATE
        return policy.changed(strictness=self.strictness) if self.strictness else policy


class CheckBody(_Body):
    """An answer to check.

    Attributes:
        id: Echoed in the reply.
        question: What was asked.
        triples: Evidence as subject, property and value.
        passages: Evidence as texts.
        evidence: The same items as in the field ``guardrail.evidence`` of a chat call: texts,
            objects with ``text``, ``id``, ``title`` and ``url``, or with a ``triple``.
        policy: A policy by name; ``annotate`` unless told.
        strictness: How sure the judge must be, a preset or thresholds.
        answer: With or without markers.
    """

    answer: str


class RankBody(_Body):
    """Answers to rank; all else as for a check.

    Attributes:
        answers: In the order that the result's indices count.
    """

    answers: tuple[str, ...] = Field(min_length=1, max_length=MAX_ANSWERS)


class RankedAnswer(Value):
    """A candidate's place in the request, its id for feedback, its score and its score card."""

    index: int
    id: str
    score: float | None
    scorecard: ScoreCard


class Ranking(Value):
    """Candidates, best first."""

    id: str | int | None
    ranking: tuple[RankedAnswer, ...]


async def check(guard: Guardrail, body: CheckBody) -> GuardedAnswer:
    """Check one answer."""
    return await body.case().check(guard, body.answer, body.chosen_policy(), id=_written(body.id))


async def rank(guard: Guardrail, body: RankBody) -> Ranking:
    """Rank several answers."""
    answers = await body.case().rank(
        guard, body.answers, body.chosen_policy(), id=_written(body.id)
    )
    return Ranking(
        id=body.id,
        ranking=tuple(
            RankedAnswer(
                index=answer.index,
                id=answer.id,
                score=answer.scorecard.overall.value,
                scorecard=answer.scorecard,
            )
            for answer in answers
        ),
    )


def _written(told: str | int | None) -> str | None:
    return None if told is None else str(told)
