"""Asking: sample answers, check and rank them, ask again where the policy says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

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
from guardrail.engine.problems import UNUSABLE, late, problem_of
from guardrail.engine.ranking import ranked
from guardrail.evidence.retrieval import Knowledge
from guardrail.log.tracing import model_call, stage
from guardrail.policy import Policy

if TYPE_CHECKING:
    from guardrail.engine.flow import Engine
    from guardrail.engine.pipeline import Row

__all__ = ["ask"]

LAST_ATTEMPT_S = 1.0
"""No further attempt is started with less time than this left."""


async def ask(
    engine: Engine,
    row_id: str | None,
    question: str,
    n: int | None,
    evidence: Sequence[Evidence] | None,
    policy: Policy,
) -> list[GuardedAnswer]:
    """Sample, check and rank answers; all of them, best first.

    Args:
        engine: Has the model and checks what it says.
        row_id: The caller's id.
        question: What to answer.
        n: Answers to sample in each attempt; None for the policy's number.
        evidence: Replaces the graph; None to use the graph.
        policy: Bounds attempts and time.

    Raises:
        InputError: The question is empty or too long.
        GuardrailError: A part cannot be used and the policy says ``raise``.
    """
    row = engine.row(row_id, question, "", evidence)
    size, most = len(row.question), engine.config.limits.question_chars
    if not row.question.strip():
        raise InputError("the question is empty; there is nothing to ask")
    if size > most:
        message = f"the question has {size} characters, more than limits.question_chars = {most}"
        raise InputError(message)
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
            count = n or policy.samples
            for attempt in range(policy.rounds):
                with stage("attempt", number=attempt + 1):
                    asked = time.perf_counter()
                    left = policy.deadline_s and max(0.01, policy.deadline_s - asked + begin)
                    texts = await _sample(engine, row.question, known, count, failed, left)
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


async def _sample(
    engine: Engine,
    question: str,
    known: Knowledge,
    n: int,
    failed: Sequence[FailedSentence],
    left: float | None,
) -> list[str]:
    from guardrail.models.generation import generate  # who only checks needs no models

    settings = engine.config.model.generation
    if left is not None and not (settings.timeout_s and settings.timeout_s < left):
        # A call that nobody waits for would go on; a second more, so that the deadline is told.
        settings = settings.model_copy(update={"timeout_s": left + 1.0})
    model = await engine.workers.run(lambda: engine.parts.model)
    with model_call(model, n):
        answers = await generate(
            question, known.subgraphs, model, n, settings=settings, failed=failed
        )
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
