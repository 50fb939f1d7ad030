"""``Guardrail.ask``: the candidate loop over the configured language model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from guardrail.candidates import Attempt, best_answers
from guardrail.config import QUESTION_CHARS, GuardrailConfig
from guardrail.core.errors import InputError
from guardrail.core.types import Evidence, FailedSentence, GuardedAnswer, Problem
from guardrail.core.types.answers import AskRequest, all_of
from guardrail.core.workers import Closing, run_sync, within
from guardrail.engine.problems import UNUSABLE, late, problem_of
from guardrail.evidence.retrieval import Knowledge
from guardrail.log.entries import LOST, tagged
from guardrail.log.tracing import stage
from guardrail.policy import Policy, chosen_policy
from guardrail.sources.items import as_evidence

if TYPE_CHECKING:
    from guardrail.engine.flow import Engine
    from guardrail.sources.tables import Table

__all__ = ["Answering", "given_evidence"]


class Answering(Closing):
    """The methods of ``Guardrail`` that call a language model; see there."""

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
            return await self.arecord(answers)

    def record(
        self, answers: Sequence[GuardedAnswer], *, delivered: int = 1
    ) -> list[GuardedAnswer]:
        """Write the candidates of one response to the score log; see ``arecord``."""
        return run_sync(self.arecord(answers, delivered=delivered))

    async def arecord(
        self, answers: Sequence[GuardedAnswer], *, delivered: int = 1
    ) -> list[GuardedAnswer]:
        """Write the candidates of one response to the score log.

        Args:
            answers: Best first.
            delivered: How many of them the caller gets; the others are tagged as lost.
        """
        best, lost = await asyncio.gather(
            self._engine.recorder.record(answers[:delivered]),
            self._record_lost(answers[delivered:]),
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
    """Run the candidate loop over the configured model; all answers, best first."""
    row = engine.row(request.id, request.question, "", request.evidence)
    _check_question(row.question)
    begin = time.monotonic()
    spent_ms = {"retrieve": 0.0, "generate": 0.0}
    known: Knowledge | None = row.knowledge

    async def generate(attempt: Attempt) -> Sequence[str]:
        nonlocal known
        if attempt.number == 1:
            known = known or await engine.knowledge(row.question)
            spent_ms["retrieve"] = (time.monotonic() - begin) * 1000.0
        start = time.monotonic()
        texts = await _sample(
            engine, row.question, known or Knowledge(), attempt.samples, attempt.failed
        )
        spent_ms["generate"] += (time.monotonic() - start) * 1000.0
        return texts

    async def check(texts: Sequence[str], policy: Policy) -> list[GuardedAnswer]:
        # What an answer names besides the question is looked up when it is checked.
        given = None if row.knowledge is None and engine.reads_answers else known
        rows = [
            row._replace(answer=text, knowledge=given, place=place)
            for place, text in enumerate(texts)
        ]
        return await engine.guard(rows, policy, answers=1)

    problem = Problem(part="model", message="the model gave no answer")
    try:
        pool = await best_answers(
            generate, check, policy, samples=request.n, begin=begin, id=row.id
        )
    except TimeoutError:
        pool, problem = [], late(policy, policy.deadline_s)
    except UNUSABLE as error:
        pool, problem = [], problem_of(error, "model")
    spent_ms["total"] = (time.monotonic() - begin) * 1000.0
    pool = pool or [engine.unavailable(row, [problem], policy, spent_ms["total"])]
    return [
        answer.model_copy(
            update={
                "timings_ms": {**answer.timings_ms, **spent_ms},
                "versions": {**answer.versions, **engine.parts.versions()},
            }
        )
        for answer in pool
    ]


def _check_question(question: str) -> None:
    if not question.strip():
        raise InputError("the question is empty; there is nothing to ask")
    if len(question) > QUESTION_CHARS:
        raise InputError(f"the question has {len(question)} characters, more than {QUESTION_CHARS}")


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
