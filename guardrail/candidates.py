"""The candidate loop behind every wrapper: sample, check, rank, and regenerate with feedback.

``Guardrail.ask``, LangChain, OpenAI clients and the gateway differ in how they call a model and in
what they return. Everything in between is here, so that a policy means the same in all of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from guardrail.config import QUESTION_CHARS
from guardrail.core.errors import GuardrailError, InputError
from guardrail.core.types import (
    Action,
    AskRequest,
    AttributedAnswer,
    CheckRequest,
    FailedSentence,
    GuardedAnswer,
    Problem,
)
from guardrail.engine.decision import UNUSABLE, decide, feedback, late, problem_of, ranked
from guardrail.evidence.retrieval import Knowledge
from guardrail.log.tracing import stage
from guardrail.policy import Policy

if TYPE_CHECKING:
    from guardrail.engine.flow import Engine


class Attempt(NamedTuple):
    """One round of generation.

    Attributes:
        number: Counted from 1.
        samples: Number of answers to sample.
        failed: Sentences of the best answer so far that did not hold; empty in the first round.
        rejected: That answer as the model wrote it; empty in the first round.
    """

    number: int
    samples: int
    failed: tuple[FailedSentence, ...] = ()
    rejected: str = ""

    @property
    def feedback(self) -> str:
        """What a chat model is sent after its rejected answer; empty in the first round."""
        return retry_text(self.failed) if self.number > 1 else ""


Generate = Callable[[Attempt], Awaitable[Sequence[str]]]
"""Calls the model and returns the texts to judge; none where it wrote no answer, such as when it
calls a tool."""

Check = Callable[[Sequence[str], Policy], Awaitable[Sequence[GuardedAnswer]]]
"""Judges the texts of one round in one batch, in any order; ``index`` counts from 0."""


def retry_text(failed: Sequence[FailedSentence]) -> str:
    """The message that asks a model to answer again: the failed sentences, and why they failed."""
    problems = "\n".join(f'- "{item.text}": {item.reason}' for item in failed)
    return (
        "Some of your answer does not hold against the evidence:\n"
        f"{problems or '- it scored too low'}\n"
        "Answer the question again. Keep what is right, leave out or correct the rest."
    )


async def best_answers(
    generate: Generate,
    check: Check,
    policy: Policy,
    *,
    samples: int | None = None,
    rounds: int | None = None,
    begin: float | None = None,
    id: str | None = None,
) -> list[GuardedAnswer]:
    """Sample, check and rank answers, again with feedback while the policy asks for it.

    An error or a timeout after the first round costs that round only: the best answer so far is
    returned, and its ``errors`` name the problem.

    Args:
        generate: Calls the model.
        check: Judges its answers, without writing the score log.
        policy: ``candidates``, ``attempts`` and ``deadline_s`` bound the loop.
        samples: Answers in each round; None for the policy's number.
        rounds: Most rounds; None for the policy's number.
        begin: ``time.monotonic()`` at which the deadline starts to count, the first generation
            included. None starts it once the first answers are there, for a model whose time is
            its caller's own.
        id: Id of the best answer, and prefix of the others' ids; made when None.

    Returns:
        All candidates, best first, each as the policy delivers it: none has the action
        ``regenerate``. ``index`` is the place in the order of sampling over all rounds.

    Raises:
        TimeoutError: The time ran out in the first round.
        Exception: Whatever ``generate`` or ``check`` raises in the first round.
    """
    rounds = rounds or policy.rounds
    pool: list[GuardedAnswer] = []
    problems: list[Problem] = []
    attempt = Attempt(1, samples or policy.samples)

    def left() -> float | None:
        if begin is None or policy.deadline_s is None:
            return None
        return policy.deadline_s - (time.monotonic() - begin)

    while True:
        try:
            with stage("attempt", number=attempt.number):
                async with asyncio.timeout(left()):
                    texts = await generate(attempt)
                    begin = time.monotonic() if begin is None else begin
                    judged = await check(texts, policy) if texts else []
        except Exception as error:
            if not pool:
                raise
            problems.append(_problem(error, policy, attempt.number))
            break
        pool += [answer.model_copy(update={"index": len(pool) + answer.index}) for answer in judged]
        if policy.dry_run:
            pool.sort(key=lambda answer: answer.index)
        elif len(pool) > 1:
            pool = ranked(pool, policy)
        if not pool or pool[0].action is not Action.REGENERATE or attempt.number == rounds:
            break
        remaining = left()
        # No further attempt starts with less time than this left, in seconds
        if remaining is not None and remaining < 1.0:
            problems.append(late(policy, policy.deadline_s))
            break
        best = pool[0]
        failed = tuple(feedback(best.sentences))
        attempt = Attempt(attempt.number + 1, attempt.samples, failed, best.original or best.text)
    prefix = id or uuid4().hex
    return [
        _delivered(answer, prefix if place == 0 else f"{prefix}.{answer.index}", policy, attempt,
                   problems, best=place == 0)
        for place, answer in enumerate(pool)
    ]  # fmt: skip


def _problem(error: Exception, policy: Policy, number: int) -> Problem:
    """What the answer's ``errors`` say of a later round that failed."""
    if isinstance(error, TimeoutError):
        return late(policy, policy.deadline_s)
    if isinstance(error, GuardrailError):
        return problem_of(error, "model")
    # The message of another package's error may hold addresses and keys.
    return Problem(part="model", message=f"attempt {number} failed: {type(error).__name__}")


def _delivered(
    answer: GuardedAnswer,
    id: str,
    policy: Policy,
    attempt: Attempt,
    problems: Sequence[Problem],
    *,
    best: bool,
) -> GuardedAnswer:
    """An answer as it leaves the loop; its action is never ``regenerate``."""
    changes: dict[str, object] = {
        "id": id,
        "attempts": attempt.number,
        "errors": (*answer.errors, *problems),
    }
    if answer.action is Action.REGENERATE:
        attributed = AttributedAnswer(
            text=answer.text, marked=answer.marked, sentences=answer.sentences
        )
        last = decide(policy.settled(), attributed, answer.scorecard)
        tried = f"{attempt.number} attempt{'s' if attempt.number != 1 else ''}"
        note = (f"no better answer within {tried}",) if best else ()
        changes |= {
            "action": last.action,
            "reasons": (*answer.reasons, *note),
            "removed": last.removed,
            **dict(last.answer),  # text, marked, sentences
        }
    return answer.model_copy(update=changes)


async def answers_of_model(
    engine: Engine, request: AskRequest, policy: Policy
) -> list[GuardedAnswer]:
    """Run the candidate loop over the configured model; all answers, best first."""
    row = engine.row(
        CheckRequest(id=request.id, question=request.question, answer="", evidence=request.evidence)
    )
    question = row.request.question
    if not question.strip():
        raise InputError("the question is empty; there is nothing to ask")
    if len(question) > QUESTION_CHARS:
        raise InputError(f"the question has {len(question)} characters, more than {QUESTION_CHARS}")
    begin = time.monotonic()
    spent_ms = {"retrieve": 0.0, "generate": 0.0}
    known: Knowledge | None = row.knowledge

    async def generate(attempt: Attempt) -> Sequence[str]:
        nonlocal known
        if attempt.number == 1:
            known = known or await engine.knowledge(question)
            spent_ms["retrieve"] = (time.monotonic() - begin) * 1000.0
        start = time.monotonic()
        texts = await _sample(
            engine, question, known or Knowledge(), attempt.samples, attempt.failed
        )
        spent_ms["generate"] += (time.monotonic() - start) * 1000.0
        return texts

    async def check(texts: Sequence[str], policy: Policy) -> list[GuardedAnswer]:
        # What an answer names besides the question is looked up when it is checked.
        given = None if row.knowledge is None and engine.reads_answers else known
        rows = [
            row.answering(text)._replace(knowledge=given, place=place)
            for place, text in enumerate(texts)
        ]
        return await engine.guard(rows, policy, answers=1)

    problem = Problem(part="model", message="the model gave no answer")
    try:
        pool = await best_answers(
            generate, check, policy, samples=request.n, begin=begin, id=row.request.id
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
    return await generate(question, known.subgraphs, model, n, settings=settings, failed=failed)
