"""The part of a guardrail that answers: a language model is asked, and what holds is kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from guardrail.config import GuardrailConfig
from guardrail.core.cancellation import within
from guardrail.core.closing import Closing
from guardrail.core.errors import InputError
from guardrail.core.types import (
    Action,
    AttributedAnswer,
    Evidence,
    FailedSentence,
    GuardedAnswer,
    Problem,
)
from guardrail.engine.decision import decide, feedback
from guardrail.engine.loop import run_sync
from guardrail.engine.problems import UNUSABLE, late, problem_of
from guardrail.engine.ranking import ranked
from guardrail.evidence.retrieval import Knowledge
from guardrail.log.entries import LOST, tagged
from guardrail.log.tracing import stage
from guardrail.policy import Policy, chosen_policy
from guardrail.requests import AskRequest, all_of
from guardrail.sources.items import as_evidence

if TYPE_CHECKING:
    from guardrail.engine.flow import Engine
    from guardrail.engine.pipeline import Row
    from guardrail.sources.tables import Table

__all__ = ["Answering", "given_evidence"]

LAST_ATTEMPT_S = 1.0
"""No further attempt is started with less time than this left."""


class Answering(Closing):
    """What of ``Guardrail`` asks a language model; see there."""

    config: GuardrailConfig
    _engine: Engine

    def ask(
        self,
        question: str,
        *,
        n: int | None = None,
        evidence: Iterable[Evidence | Table] | None = None,
        policy: Policy | str | None = None,
        id: str | None = None,
    ) -> GuardedAnswer:
        """Answer a question: retrieve, sample, check, rank, regenerate where needed.

        Args:
            question: What to answer.
            n: Answers to sample in each attempt; None for the policy's number.
            evidence: Triples, passages and tables that replace the graph.
            policy: A policy or its name; ``attempts`` and ``deadline_s`` bound the work.
            id: Echoed in the result; made when None.

        Raises:
            InputError: The question is empty or too long, or the evidence is not evidence.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        return run_sync(self.aask(question=question, n=n, evidence=evidence, policy=policy, id=id))

    async def aask(
        self,
        question: str,
        *,
        n: int | None = None,
        evidence: Iterable[Evidence | Table] | None = None,
        policy: Policy | str | None = None,
        id: str | None = None,
    ) -> GuardedAnswer:
        """``ask`` as a coroutine."""
        return (await self.aask_ranked(question, n=n, evidence=evidence, policy=policy, id=id))[0]

    def ask_ranked(
        self,
        question: str,
        *,
        n: int | None = None,
        evidence: Iterable[Evidence | Table] | None = None,
        policy: Policy | str | None = None,
        id: str | None = None,
    ) -> list[GuardedAnswer]:
        """``ask``, with all sampled answers, best first; the log has each with its place."""
        return run_sync(self.aask_ranked(question, n=n, evidence=evidence, policy=policy, id=id))

    async def aask_ranked(
        self,
        question: str,
        *,
        n: int | None = None,
        evidence: Iterable[Evidence | Table] | None = None,
        policy: Policy | str | None = None,
        id: str | None = None,
    ) -> list[GuardedAnswer]:
        """``ask_ranked`` as a coroutine."""
        request = AskRequest(question=question, n=n, evidence=given_evidence(evidence), id=id)
        return await self._ask(request, self._policy(policy))

    def ask_batch(
        self, requests: Sequence[AskRequest], *, policy: Policy | str | None = None
    ) -> list[GuardedAnswer]:
        """Answer n questions, in order."""
        return run_sync(self.aask_batch(requests, policy=policy))

    async def aask_batch(
        self, requests: Sequence[AskRequest], *, policy: Policy | str | None = None
    ) -> list[GuardedAnswer]:
        """``ask_batch`` as a coroutine; as many questions at once as ``limits.concurrency``."""
        chosen = self._policy(policy)
        gate = asyncio.Semaphore(self.config.limits.concurrency)

        async def one(request: AskRequest) -> GuardedAnswer:
            async with gate:
                return (await self._ask(request, chosen))[0]

        return list(await asyncio.gather(*map(one, all_of(AskRequest, requests))))

    async def _ask(self, request: AskRequest, policy: Policy) -> list[GuardedAnswer]:
        with stage("ask"):
            with within(policy.deadline_s):
                answers = await _answers(self._engine, request, policy)
            best, lost = await asyncio.gather(
                self._engine.recorder.record(answers[:1]), self._record_lost(answers[1:])
            )
            return [*best, *lost]

    async def _record_lost(self, answers: Sequence[GuardedAnswer]) -> list[GuardedAnswer]:
        if not answers:
            return []
        with tagged(**LOST):
            return await self._engine.recorder.record(answers)

    def _policy(self, policy: Policy | str | None) -> Policy:
        chosen = chosen_policy(policy, self.config.policy)
        if chosen.strictness is not None:
            return chosen
        return chosen.model_copy(update={"strictness": self.config.strictness})


def given_evidence(evidence: Iterable[Evidence | Table] | None) -> tuple[Evidence, ...] | None:
    """What a call brings to be judged by; None where it brings none, and the graph is asked."""
    return None if evidence is None else as_evidence(evidence)


async def _answers(engine: Engine, request: AskRequest, policy: Policy) -> list[GuardedAnswer]:
    """Sample, check and rank answers, and again where the policy says so; all, best first."""
    row = engine.row(request.id, request.question, "", request.evidence)
    _check_question(row.question, engine.config.limits.question_chars)
    begin = time.perf_counter()
    spent_ms = {"retrieve": 0.0, "generate": 0.0}
    pool: list[GuardedAnswer] = []
    calls = 0
    failed: Sequence[FailedSentence] = ()
    problems: list[Problem] = []
    try:
        async with asyncio.timeout(policy.deadline_s):
            known = row.knowledge or await engine.knowledge(row.question)
            spent_ms["retrieve"] = (time.perf_counter() - begin) * 1000.0
            # What an answer names beside the question is looked up when it is checked.
            given = None if row.knowledge is None and engine.reads_answers else known
            count = request.n or policy.samples
            for attempt in range(policy.rounds):
                with stage("attempt", number=attempt + 1):
                    asked = time.perf_counter()
                    texts = await _sample(engine, row.question, known, count, failed)
                    spent_ms["generate"] += (time.perf_counter() - asked) * 1000.0
                    calls += 1
                    rows = [
                        row._replace(
                            id=f"{row.id}.{place}", answer=text, knowledge=given, place=place
                        )
                        for place, text in enumerate(texts, start=len(pool))
                    ]
                    inner = policy.model_copy(update={"deadline_s": None})
                    pool = ranked([*pool, *await engine.guard(rows, inner)], policy)
                    if pool[0].action is not Action.REGENERATE:
                        break
                    failed = feedback(pool[0].sentences)
                    spent = time.perf_counter() - begin
                    left = (policy.deadline_s or float("inf")) - spent
                    if attempt + 1 < policy.rounds and left < LAST_ATTEMPT_S:
                        problems.append(late(policy, policy.deadline_s))
                        break
    except TimeoutError:
        problems.append(late(policy, policy.deadline_s))
    except UNUSABLE as error:
        problems.append(problem_of(error, "model"))
    spent_ms["total"] = (time.perf_counter() - begin) * 1000.0
    if not pool:
        problems = problems or [Problem(part="model", message="the model gave no answer")]
        pool = [engine.unavailable(row, problems, policy, spent_ms["total"])]
        problems = []
    return [
        _finished(engine, answer, place, row, calls, problems, policy, spent_ms)
        for place, answer in enumerate(pool)
    ]


def _check_question(question: str, most: int) -> None:
    if not question.strip():
        raise InputError("the question is empty; there is nothing to ask")
    if len(question) > most:
        raise InputError(
            f"the question has {len(question)} characters, more than limits.question_chars = {most}"
        )


async def _sample(
    engine: Engine,
    question: str,
    known: Knowledge,
    n: int,
    failed: Sequence[FailedSentence],
) -> list[str]:
    from guardrail.models.generation import generate  # who only checks needs no models

    settings = engine.config.model.generation
    model = await engine.workers.run(lambda: engine.parts.model)
    answers = await generate(question, known.subgraphs, model, n, settings=settings, failed=failed)
    return [answer.marked for answer in answers]


def _finished(
    engine: Engine,
    answer: GuardedAnswer,
    place: int,
    row: Row,
    calls: int,
    problems: Sequence[Problem],
    policy: Policy,
    spent_ms: Mapping[str, float],
) -> GuardedAnswer:
    changes: dict[str, object] = {
        "id": row.id if place == 0 else answer.id,
        "attempts": calls,
        "errors": (*answer.errors, *problems),
        "timings_ms": {**answer.timings_ms, **spent_ms},
        "versions": {**answer.versions, **engine.parts.versions()},
    }
    if answer.action is Action.REGENERATE:
        # What cannot be had again is done without: the text that leaves is never the
        # unfiltered one that regeneration was asked for.
        note = f"no better answer within {calls} attempt{'s' if calls != 1 else ''}"
        attributed = AttributedAnswer(
            text=answer.text, marked=answer.marked, sentences=answer.sentences
        )
        last = decide(policy.settled(), attributed, answer.scorecard)
        changes |= {
            "action": last.action,
            "reasons": (*answer.reasons, *([] if place else [note])),
            "removed": last.removed,
            **dict(last.answer),  # text, marked, sentences
        }
    return answer.model_copy(update=changes)
