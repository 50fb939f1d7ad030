"""The metric inside the real DeepEval: `make hosts` installs it with a copy of this package."""

import os
from inspect import signature

import pytest

os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "1")
deepeval = pytest.importorskip("deepeval", reason="DeepEval is not installed: make hosts")

from deepeval import assert_test, evaluate  # noqa: E402
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig  # noqa: E402
from deepeval.metrics.utils import copy_metrics  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402

from chains.deepeval_metric import GroundednessMetric  # noqa: E402
from guardrail import Guardrail, GuardrailConfig, JudgeError, Triple  # noqa: E402

PRICE = Triple("Fjell 3", "price", "2,490 euros")
RANGE = "The range of the Fjell 3 is 110 km."
TRUE, FALSE = "The Fjell 3 costs 2,490 euros.", "The Fjell 3 costs 2,190 euros."


def case(output: str, **fields: object) -> LLMTestCase:
    fields = {"retrieval_context": [RANGE]} | fields
    return LLMTestCase(input="What is the Fjell 3?", actual_output=output, **fields)


@pytest.mark.parametrize(
    ("output", "options", "score", "passed"),
    [
        (f"{RANGE} {TRUE}", {}, 1.0, True),
        (FALSE, {}, 0.0, False),
        (f"{RANGE} {FALSE}", {"threshold": 0.5}, 0.5, False),  # contradicted
        (f"{RANGE} {FALSE}", {"threshold": 0.5, "contradicted": 0.5}, 0.5, True),
    ],
)
def test_one_case(guard: Guardrail, output: str, options: dict, score: float, passed: bool) -> None:
    metric = GroundednessMetric(evidence=[PRICE], guard=guard, **options)
    assert metric.measure(case(output)) == score
    assert metric.is_successful() is passed
    assert metric.score_breakdown["claims"] == output.count("Fjell 3")
    assert metric.reason


def test_the_context_is_read_without_a_retrieval_context(guard: Guardrail) -> None:
    metric = GroundednessMetric(guard=guard)
    assert metric.measure(case(RANGE, retrieval_context=None, context=[RANGE])) == 1.0


@pytest.mark.parametrize("run_async", [True, False])
def test_in_an_evaluation_and_an_assertion(guard: Guardrail, run_async, monkeypatch, tmp_path):
    """DeepEval makes metrics anew for asynchronous runs, from attributes."""
    monkeypatch.chdir(tmp_path)  # DeepEval writes its results into the working folder
    metric = GroundednessMetric(evidence=[PRICE], guard=guard)
    assert_test(case(TRUE), [metric], run_async=run_async)
    with pytest.raises(AssertionError):
        assert_test(case(FALSE), [metric], run_async=run_async)
    lenient = GroundednessMetric(0.5, contradicted=0.5, evidence=[PRICE], guard=guard)
    done = evaluate(
        [case(TRUE), case(f"{RANGE} {FALSE}"), case("It won the Golden Spoke award in Lisbon.")],
        [lenient],
        async_config=AsyncConfig(run_async=run_async),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False),
    )
    assert sorted(result.success for result in done.test_results) == [False, True, True]


def test_every_argument_of_the_constructor_is_an_attribute(guard: Guardrail) -> None:
    given = {"threshold": 0.5, "contradicted": 0.25, "evidence": (PRICE,), "guard": guard}
    (copied,) = copy_metrics([GroundednessMetric(**given)])
    assert {name: vars(copied)[name] for name in given} == given
    assert set(given) == set(signature(GroundednessMetric).parameters)


def test_an_invalid_share_is_an_error() -> None:
    with pytest.raises(ValueError):
        GroundednessMetric(contradicted=2)


def test_an_output_that_could_not_be_checked_is_an_error() -> None:
    config = GuardrailConfig.model_validate({"judge": "transformers:/no/such/judge"})
    with Guardrail(config) as broken, pytest.raises(JudgeError):
        GroundednessMetric(guard=broken).measure(case(RANGE))
