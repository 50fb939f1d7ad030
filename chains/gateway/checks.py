"""What ``/v1/checks`` and ``/v1/rank`` read and write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import FailFast, Field

from chains.evidence.base import Case, Found, Source, case_of
from chains.evidence.items import HandedOver, RequestField
from chains.gateway.threads import in_reader_thread
from guardrail import GuardedAnswer, Policy
from guardrail.core.types import OwnStrictness, ScoreCard, Value
from guardrail.sources.items import ShortPassages, ShortTriples, inline_evidence
from guardrail.sources.tables import few_enough

if TYPE_CHECKING:
    from chains.openai_text import Guarding

__all__ = ["CheckBody", "RankBody", "Ranking", "check", "rank"]

MAX_ANSWERS = 64
"""Most answers of one ranking; the same bound as a policy's candidates."""


class _Body(Value):
    id: str | int | None = None
    question: str = ""
    triples: ShortTriples = None
    passages: ShortPassages = None
    evidence: HandedOver = None
    policy: str | None = None
    strictness: OwnStrictness = None

    async def asked(self, guarding: Guarding) -> tuple[Case, Policy]:
        """What is judged against what, by which policy.

        Without evidence the graph is asked. The policy is ``annotate`` unless told otherwise,
        since the caller keeps control here.
        """
        found = await in_reader_thread(self._found, guarding)
        field = RequestField(policy=self.policy, strictness=self.strictness)
        policy, problems = guarding.rights.policy_of(field, guarding.checks_policy)
        found |= Found(problems=tuple(problems))
        case = await case_of(guarding.guard, self.question, found, guarding.evidence.mode)
        return case, policy

    def _found(self, guarding: Guarding) -> Found:
        inline = inline_evidence(self.triples, self.passages)
        if inline is None and self.evidence is None:
            return Found()
        few_enough(len(self.evidence or ()) + len(inline or ()), "the request")
        together = dict.fromkeys((*(self.evidence or ()), *(inline or ())))
        return guarding.rights.evidence_of(Found.of(Source.CALLER, together))


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

    answers: Annotated[tuple[str, ...], FailFast()] = Field(min_length=1, max_length=MAX_ANSWERS)


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

    @classmethod
    def of(cls, body: RankBody, answers: Iterable[GuardedAnswer]) -> Self:
        """The reply to a request."""
        ranking = (
            RankedAnswer(
                index=answer.index,
                id=answer.id,
                score=answer.scorecard.overall.value,
                scorecard=answer.scorecard,
            )
            for answer in answers
        )
        return cls(id=body.id, ranking=tuple(ranking))


async def check(guarding: Guarding, body: CheckBody) -> GuardedAnswer:
    """Check one answer."""
    case, policy = await body.asked(guarding)
    return await case.check(guarding.guard, body.answer, policy, id=_written(body.id))


async def rank(guarding: Guarding, body: RankBody) -> list[GuardedAnswer]:
    """Rank several answers, best first."""
    case, policy = await body.asked(guarding)
    return await case.rank(guarding.guard, body.answers, policy, id=_written(body.id))


def _written(told: str | int | None) -> str | None:
    return None if told is None else str(told)
