"""Groundedness as a Ragas metric, without calls of a language model.

>>> from ragas import evaluate  # doctest: +SKIP
>>> from chains.ragas_metric import Groundedness  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragas.metrics.base import MetricType, SingleTurnMetric

from guardrail import Evidence, Guardrail, JudgeError
from guardrail.evaluation import ajudge_answer, assess

if TYPE_CHECKING:
    from ragas.dataset_schema import SingleTurnSample
    from ragas.run_config import RunConfig


class Groundedness(SingleTurnMetric):  # type: ignore[misc]  # Ragas has no types here
    """Share of the response's claims that its retrieved contexts support, in [0, 1].

    A response without claims scores 1.

    Args:
        evidence: Triples and passages that apply to every sample.
        guard: Judges the responses; None for one with the settings of the environment.
        name: The column of the results.
    """

    def __init__(
        self,
        *,
        evidence: Sequence[Evidence] = (),
        guard: Guardrail | None = None,
        name: str = "groundedness",
    ) -> None:
        columns = {"user_input", "response", "retrieved_contexts"}
        super().__init__(name=name, _required_columns={MetricType.SINGLE_TURN: columns})
        self._evidence = tuple(evidence)
        self._guard = guard

    def init(self, run_config: RunConfig) -> None:
        """Do nothing: Ragas' timeouts and retries are for calls of a language model."""

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: object) -> float:
        answer = await ajudge_answer(
            sample.response or "",
            [*self._evidence, *(sample.retrieved_contexts or ())],
            question=sample.user_input or "",
            guard=self._guard,
        )
        found = assess(answer)
        if found.verdict is None:
            raise JudgeError(found.failures[0])
        return 1.0 if found.supported is None else found.supported
