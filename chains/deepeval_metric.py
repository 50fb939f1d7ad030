"""Groundedness as a DeepEval metric, without calls of a language model.

>>> from deepeval import assert_test  # doctest: +SKIP
>>> from chains.deepeval_metric import GroundednessMetric  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deepeval.metrics import BaseMetric
from deepeval.test_case import SingleTurnParams

from guardrail import Evidence, Guardrail, JudgeError
from guardrail.core.workers import run_sync
from guardrail.evaluation import Requirement, ajudge_answer, assess

if TYPE_CHECKING:
    from deepeval.test_case import LLMTestCase


class GroundednessMetric(BaseMetric):  # type: ignore[misc]  # DeepEval has no types here
    """Share of the output's claims that its context supports.

    A test case is judged by its ``retrieval_context``, else its ``context``, and by the evidence
    given here. An output without claims scores 1. The arguments are attributes of the same names,
    which DeepEval uses to copy the metric for each test case of an asynchronous run.

    Args:
        threshold: Least share of claims that must be supported, in [0, 1].
        contradicted: Largest share of claims that may be contradicted, in [0, 1]; above it the
            metric fails whatever the supported share.
        evidence: Triples and passages that apply to every test case.
        guard: Judges the outputs; None for one with the settings of the environment.

    Raises:
        ValueError: A share is outside [0, 1].
    """

    _required_params = (SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT)

    def __init__(
        self,
        threshold: float = 1.0,
        *,
        contradicted: float = 0.0,
        evidence: Sequence[Evidence] = (),
        guard: Guardrail | None = None,
    ) -> None:
        self.threshold = threshold
        self.contradicted = contradicted
        self.evidence = tuple(evidence)
        self.guard = guard
        self._requirement()

    def measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        """Judge one test case.

        Raises:
            JudgeError: Nothing could be checked.
        """
        return run_sync(self.a_measure(test_case))

    async def a_measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        """``measure`` as a coroutine."""
        context = test_case.retrieval_context or test_case.context or ()
        answer = await ajudge_answer(
            test_case.actual_output or "",
            [*self.evidence, *context],
            question=test_case.input,
            guard=self.guard,
        )
        found = assess(answer, self._requirement())
        if found.verdict is None:
            raise JudgeError(found.failures[0])
        self.score = 1.0 if found.supported is None else found.supported
        self.score_breakdown = {"contradicted": found.contradicted or 0.0, "claims": found.claims}
        self.success = found.passed
        self.reason = "; ".join(found.failures) or f"{found.claims} claims, all as required"
        return self.score

    def is_successful(self) -> bool:
        """True if the last test case met both thresholds."""
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Groundedness"

    def _requirement(self) -> Requirement:
        return Requirement(supported=self.threshold, contradicted=self.contradicted)
