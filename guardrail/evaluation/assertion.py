"""``assert_grounded``: a test's assertion on an answer and its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from guardrail.core.errors import JudgeError
from guardrail.core.types import Evidence, GuardedAnswer
from guardrail.engine.loop import run_sync
from guardrail.evaluation.assessment import Assessment, Requirement, assess
from guardrail.evaluation.observers import tell_observer
from guardrail.policy import ANNOTATE, Policy

if TYPE_CHECKING:
    from guardrail.config import GuardrailConfig
    from guardrail.guard import Guardrail

__all__ = [
    "ajudge_answer",
    "assert_grounded",
    "judge_answer",
    "require",
    "whole_answer_policy",
]


def assert_grounded(
    answer: str,
    evidence: Sequence[Evidence | str],
    *,
    question: str = "",
    supported: float = 1.0,
    contradicted: float = 0.0,
    guard: Guardrail | None = None,
) -> Assessment:
    """Assert that the evidence carries an answer.

    Args:
        answer: What the chatbot said.
        evidence: What it may rest on: triples, passages, texts, LangChain documents.
        question: What it was asked; short answers need it to be understood.
        supported: Least share of claims that must be supported, in [0, 1].
        contradicted: Most of them that may be contradicted, as a share in [0, 1].
        guard: Judges; one of the settings in the environment where None, made once.

    Returns:
        What became of the claims.

    Raises:
        AssertionError: The answer falls short; the message names each sentence and what is known
            against it.
        JudgeError: Nothing could be checked.
        InputError: The evidence is not evidence.
    """
    __tracebackhide__ = True  # pytest shows the line of the test, not these
    judged = judge_answer(answer, evidence, question=question, guard=guard)
    return require(judged, Requirement(supported=supported, contradicted=contradicted))


def judge_answer(
    answer: str,
    evidence: Sequence[Evidence | str],
    *,
    question: str = "",
    guard: Guardrail | None = None,
) -> GuardedAnswer:
    """Judge an answer whole, whatever the guardrail's policy would remove.

    Args:
        answer: What the chatbot said.
        evidence: What it may rest on.
        question: What it was asked.
        guard: Judges; one of the settings in the environment where None, made once.

    Raises:
        InputError: The evidence is not evidence.
    """
    return run_sync(ajudge_answer(answer, evidence, question=question, guard=guard))


async def ajudge_answer(
    answer: str,
    evidence: Sequence[Evidence | str],
    *,
    question: str = "",
    guard: Guardrail | None = None,
) -> GuardedAnswer:
    """``judge_answer`` as a coroutine."""
    judge = guard or _own_guard()
    return await judge.acheck(
        question,
        answer,
        evidence=evidence,  # type: ignore[arg-type]  # texts are read as passages
        policy=whole_answer_policy(judge.config),
    )


def require(answer: GuardedAnswer, requirement: Requirement) -> Assessment:
    """Hold a judged answer against a requirement; the report of a run of pytest counts it.

    Raises:
        AssertionError: It falls short.
        JudgeError: Nothing could be checked.
    """
    __tracebackhide__ = True
    found = assess(answer, requirement)
    tell_observer(answer, found)
    if found.verdict is None:
        raise JudgeError(found.failures[0])
    if found.failures:
        raise AssertionError("not grounded: " + "\n  ".join(found.failures))
    return found


def whole_answer_policy(config: GuardrailConfig) -> Policy:
    """A policy that marks and removes nothing, as strict as the settings say."""
    strictness = config.policy.strictness or config.strictness
    return ANNOTATE.model_copy(
        update={"strictness": strictness, "deadline_s": config.policy.deadline_s}
    )


@cache
def _own_guard() -> Guardrail:
    from guardrail.guard import Guardrail

    return Guardrail()
