"""The metric inside the real Ragas: `make hosts` installs it with a copy of this package."""

import os

import pytest

os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
ragas = pytest.importorskip("ragas", reason="Ragas is not installed: make hosts")

from ragas import EvaluationDataset, evaluate  # noqa: E402
from ragas.dataset_schema import SingleTurnSample  # noqa: E402

from chains.ragas_metric import Groundedness  # noqa: E402
from guardrail import Guardrail, GuardrailConfig, JudgeError, Triple  # noqa: E402

PRICE = Triple("Fjell 3", "price", "2,490 euros")
RANGE = "The range of the Fjell 3 is 110 km."


def sample(response: str) -> SingleTurnSample:
    return SingleTurnSample(
        user_input="What is the Fjell 3?", response=response, retrieved_contexts=[RANGE]
    )


def test_one_sample(guard: Guardrail) -> None:
    metric = Groundedness(evidence=[PRICE], guard=guard)
    assert metric.single_turn_score(sample(f"{RANGE} The Fjell 3 costs 2,490 euros.")) == 1.0
    assert metric.single_turn_score(sample(f"{RANGE} The Fjell 3 costs 2,190 euros.")) == 0.5
    assert metric.single_turn_score(sample("Hello!")) == 1.0


def test_in_an_evaluation(guard: Guardrail) -> None:
    samples = [sample(RANGE), sample("It won the Golden Spoke award in Lisbon.")]
    found = evaluate(
        EvaluationDataset(samples=samples), [Groundedness(guard=guard)], show_progress=False
    )
    assert found["groundedness"] == [1.0, 0.0]


def test_what_could_not_be_checked_is_an_error() -> None:
    config = GuardrailConfig.model_validate({"judge": "transformers:/no/such/judge"})
    with Guardrail(config) as broken, pytest.raises(JudgeError, match="not checked"):
        Groundedness(guard=broken).single_turn_score(sample(RANGE))
