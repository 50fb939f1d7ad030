"""Groundedness as a metric of DeepEval: its test cases, this judge, no call of a language model.

>>> from deepeval import assert_test  # doctest: +SKIP
>>> from chains.deepeval_metric import GroundednessMetric  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deepeval.metrics import BaseMetric
from deepeval.test_case import SingleTurnParams

from guardrail import Evidence, GuardedAnswer, Guardrail, JudgeError
from guardrail.evaluation import Requirement, ajudge_answer, assess, judge_answer

if TYPE_CHECKING:
    from deepeval.test_case import LLMTestCase

__all__ = ["GroundednessMetric"]


class GroundednessMetric(BaseMetric):  # type: ignore[misc]  # DeepEval has no types here
    """Share of the output's claims that its context supports.

    A test case is judged by its ``retrieval_context``, else its ``context``, with what is given
    here. An output that claims nothing scores 1. The arguments are attributes of the same
    names, which DeepEval uses to copy the metric for each test case of an asynchronous run.

    Args:
        threshold: Least share of claims that must be supported, in [0, 1].
        contradicted: Most of them that may be contradicted, as a share in [0, 1]; above it the
            metric fails whatever the share that is supported.
        evidence: Triples and passages that apply to every test case.
        guard: Judges; one of the settings in the environment where None.
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
        self._requirement()  # tells a share that is none now, not at the first test case

    def measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        """Judge one test case.

        Raises:
            JudgeError: Nothing could be checked.
        """
        said, context = self._said(test_case)
        return self._told(judge_answer(said, context, question=test_case.input, guard=self.guard))

    async def a_measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        """``measure`` as a coroutine."""
        said, context = self._said(test_case)
        return self._told(
            await ajudge_answer(said, context, question=test_case.input, guard=self.guard)
        )

    def is_successful(self) -> bool:
        """Whether the last test case met both thresholds."""
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Groundedness"

    def _said(self, test_case: LLMTestCase) -> tuple[str, list[Evidence | str]]:
        """The chatbot's output and its evidence."""
        context = test_case.retrieval_context or test_case.context or ()
        return test_case.actual_output or "", [*self.evidence, *context]

    def _requirement(self) -> Requirement:
        return Requirement(supported=self.threshold, contradicted=self.contradicted)

    def _told(self, answer: GuardedAnswer) -> float:
        found = assess(answer, self._requirement())
        if found.verdict is None:
            raise JudgeError(found.failures[0])
        self.score = 1.0 if found.supported is None else found.supported
        self.score_breakdown = {"contradicted": found.contradicted or 0.0, "claims": found.claims}
        self.success = found.passed
        self.reason = "; ".join(found.failures) or f"{found.claims} claims, all as required"
        return self.score
