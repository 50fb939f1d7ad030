"""The part of a guardrail that answers: a language model is asked, and what holds is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from guardrail.config import GuardrailConfig
from guardrail.core.closing import Closing
from guardrail.core.types import Evidence, GuardedAnswer
from guardrail.engine.asking import ask
from guardrail.engine.loop import run_sync
from guardrail.evidence.retrieval import as_evidence
from guardrail.log.entries import LOST, tagged
from guardrail.log.tracing import stage
from guardrail.policy import Policy, chosen_policy
from guardrail.requests import AskRequest, all_of

if TYPE_CHECKING:
    from guardrail.engine.flow import Engine
    from guardrail.sources.tables import Table

__all__ = ["Answering", "given_evidence"]


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
            answers = await ask(
                self._engine, request.id, request.question, request.n, request.evidence, policy
            )
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
