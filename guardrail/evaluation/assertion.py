"""Assertions on answers: judge an answer against its evidence and a requirement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from pydantic import Field, FiniteFloat

from guardrail import evaluation
from guardrail.core.errors import JudgeError
from guardrail.core.types import (
    Action,
    Evidence,
    GuardedAnswer,
    Probability,
    Value,
    Verdict,
)
from guardrail.core.workers import run_sync
from guardrail.policy import ANNOTATE, Policy

if TYPE_CHECKING:
    from guardrail.config import GuardrailConfig
    from guardrail.guard import Guardrail


class Requirement(Value):
    """What a grounded answer must reach.

    Attributes:
        supported: Minimum share of supported claims.
        contradicted: Maximum share of contradicted claims.
        thresholds: Minimum of each score, as in a policy.
    """

    supported: Probability = 1.0
    contradicted: Probability = 0.0
    thresholds: Mapping[str, FiniteFloat] = Field(default_factory=dict)


class Assessment(Value):
    """The verdict on an answer, and where it misses the requirement.

    Attributes:
        verdict: Of the answer as a whole: the worst of its claims' verdicts, or ``no_claim``. None
            if nothing could be checked.
        claims: Number of sentences that claim something.
        supported: Share of supported claims; None without claims.
        failures: What is missed, one line each; empty if the requirement is met.
    """

    verdict: Verdict | None
    claims: int
    supported: Probability | None = None
    contradicted: Probability | None = None
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True if the answer was checked and meets the requirement."""
        return not self.failures


def assert_grounded(
    answer: str,
    evidence: Sequence[Evidence | str],
    *,
    question: str = "",
    supported: float = 1.0,
    contradicted: float = 0.0,
    guard: Guardrail | None = None,
) -> Assessment:
    """Assert that the evidence supports an answer.

    Args:
        answer: The chatbot's answer.
        evidence: Triples, passages, texts, LangChain documents.
        question: The question; short answers need it to be understood.
        supported: Minimum share of supported claims, in [0, 1].
        contradicted: Maximum share of contradicted claims, in [0, 1].
        guard: The guardrail; None for a shared one with the environment's settings.

    Raises:
        AssertionError: The answer falls short; the message names each sentence and the facts
            against it.
        JudgeError: Nothing could be checked.
        InputError: The evidence is invalid.
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
    """Judge a whole answer, whatever the guardrail's policy would remove.

    The arguments are those of ``assert_grounded``.

    Raises:
        InputError: The evidence is invalid.
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
    judge = guard or shared_guard()
    return await judge.acheck(
        question,
        answer,
        evidence=evidence,  # type: ignore[arg-type]  # texts are read as passages
        policy=whole_answer_policy(judge.config),
    )


def require(answer: GuardedAnswer, requirement: Requirement) -> Assessment:
    """Assert that a judged answer meets a requirement, and report it to the pytest plugin."""
    __tracebackhide__ = True
    found = assess(answer, requirement)
    for observer in evaluation.observers[-1:]:
        observer(answer, found)
    if found.verdict is None:
        raise JudgeError(found.failures[0])
    if found.failures:
        raise AssertionError("not grounded: " + "\n  ".join(found.failures))
    return found


def assess(answer: GuardedAnswer, requirement: Requirement | None = None) -> Assessment:
    """Compare a judged answer with a requirement; without one, every claim must be supported.

    Sentences that a policy removed count as well.
    """
    wanted = requirement or Requirement()
    if not answer.text.strip():
        return Assessment(verdict=Verdict.NO_CLAIM, claims=0, failures=("the answer is empty",))
    if answer.action is Action.UNVERIFIED:
        why = "; ".join(answer.reasons) or "; ".join(item.message for item in answer.errors)
        return Assessment(verdict=None, claims=0, failures=(f"not checked: {why}",))
    missed = tuple(answer.scorecard.below(wanted.thresholds).values())
    claims = [item for item in answer.judged if item.verdict is not Verdict.NO_CLAIM]
    if not claims:
        return Assessment(verdict=Verdict.NO_CLAIM, claims=0, failures=missed)
    found = [item.verdict for item in claims]
    supported = found.count(Verdict.SUPPORTED) / len(claims)
    contradicted = found.count(Verdict.CONTRADICTED) / len(claims)
    failures = []
    if contradicted > wanted.contradicted:
        failures.append(
            f"{contradicted:.0%} of the claims are contradicted, at most "
            f"{wanted.contradicted:.0%} may be"
        )
    if supported < wanted.supported:
        failures.append(
            f"{supported:.0%} of the claims are supported, at least {wanted.supported:.0%} must be"
        )
    if failures:
        failures += [
            f'{item.verdict}: "{item.text}"'
            + (f", but: {' '.join(item.against)}" if item.against else "")
            for item in claims
            if item.verdict is not Verdict.SUPPORTED
        ]
    worst_first = (Verdict.CONTRADICTED, Verdict.NOT_CHECKED, Verdict.UNSUPPORTED)
    return Assessment(
        verdict=next((kind for kind in worst_first if kind in found), Verdict.SUPPORTED),
        claims=len(claims),
        supported=supported,
        contradicted=contradicted,
        failures=(*failures, *missed),
    )


def whole_answer_policy(config: GuardrailConfig) -> Policy:
    """A policy that removes nothing, with strictness, thresholds and deadline of the settings."""
    return ANNOTATE.model_copy(
        update={
            "strictness": config.policy.strictness or config.strictness,
            "thresholds": config.policy.thresholds,
            "deadline_s": config.policy.deadline_s,
        }
    )


@cache
def shared_guard() -> Guardrail:
    """The guardrail with the environment's settings, one per process."""
    from guardrail.guard import Guardrail

    return Guardrail()
