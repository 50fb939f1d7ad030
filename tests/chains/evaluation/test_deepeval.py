"""The metric inside the real DeepEval: `make hosts` installs it beside a copy of this package."""

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
from guardrail import Guardrail, JudgeError, Triple  # noqa: E402

PRICE = Triple("Fjell 3", "price", "2,490 euros")
RANGE = "The range of the Fjell 3 is 110 km."


def case(output: str, **fields: object) -> LLMTestCase:
    fields = {"retrieval_context": [RANGE]} | fields
    return LLMTestCase(input="What is the Fjell 3?", actual_output=output, **fields)


def test_one_case(guard: Guardrail) -> None:
    metric = GroundednessMetric(evidence=[PRICE], guard=guard)
    assert metric.measure(case(f"{RANGE} The Fjell 3 costs 2,490 euros.")) == 1.0
    assert metric.is_successful()
    assert metric.reason == "2 claims, all as required"
    assert metric.measure(case("The Fjell 3 costs 2,190 euros.")) == 0.0
    assert not metric.is_successful()
    assert "2,490 euros" in metric.reason
    assert metric.score_breakdown == {"contradicted": 1.0, "claims": 1}


def test_the_context_serves_where_nothing_was_retrieved(guard: Guardrail) -> None:
    metric = GroundednessMetric(guard=guard)
    assert metric.measure(case(RANGE, retrieval_context=None, context=[RANGE])) == 1.0


def test_a_contradiction_fails_though_enough_is_supported(guard: Guardrail) -> None:
    output = f"{RANGE} The Fjell 3 costs 2,190 euros."
    assert GroundednessMetric(0.5, evidence=[PRICE], guard=guard).measure(case(output)) == 0.5
    strict = GroundednessMetric(0.5, evidence=[PRICE], guard=guard)
    lenient = GroundednessMetric(0.5, contradicted=0.5, evidence=[PRICE], guard=guard)
    for metric in (strict, lenient):
        metric.measure(case(output))
    assert (strict.is_successful(), lenient.is_successful()) == (False, True)


@pytest.mark.parametrize("run_async", [True, False])
def test_in_an_evaluation(guard: Guardrail, run_async: bool, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)  # DeepEval writes its results into the working folder
    done = evaluate(
        [case(RANGE), case("It won the Golden Spoke award in Lisbon.")],
        [GroundednessMetric(guard=guard)],
        async_config=AsyncConfig(run_async=run_async),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False),
    )
    assert sorted(result.success for result in done.test_results) == [False, True]


def test_as_an_assertion(guard: Guardrail, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    assert_test(case(RANGE), [GroundednessMetric(guard=guard)])
    with pytest.raises(AssertionError, match="Groundedness"):
        assert_test(case("It won an award in Lisbon."), [GroundednessMetric(guard=guard)])


@pytest.mark.parametrize("run_async", [True, False])
def test_what_a_metric_was_given_holds_in_all_runs(
    guard: Guardrail, run_async: bool, monkeypatch, tmp_path
) -> None:
    """DeepEval makes metrics anew for asynchronous runs, from attributes."""
    monkeypatch.chdir(tmp_path)
    price, wrong = "The Fjell 3 costs 2,490 euros.", "The Fjell 3 costs 2,190 euros."
    metric = GroundednessMetric(evidence=[PRICE], guard=guard)
    assert_test(case(price), [metric], run_async=run_async)
    with pytest.raises(AssertionError, match="Groundedness"):
        assert_test(case(wrong), [metric], run_async=run_async)
    lenient = GroundednessMetric(0.5, contradicted=0.5, evidence=[PRICE], guard=guard)
    assert_test(case(f"{RANGE} {wrong}"), [lenient], run_async=run_async)
    done = evaluate(
        [case(price), case(f"{RANGE} {wrong}")],
        [lenient],
        async_config=AsyncConfig(run_async=run_async),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False),
    )
    assert [result.success for result in done.test_results] == [True, True]


def test_every_argument_of_the_constructor_is_an_attribute(guard: Guardrail) -> None:
    given = {"threshold": 0.5, "contradicted": 0.25, "evidence": (PRICE,), "guard": guard}
    (copied,) = copy_metrics([GroundednessMetric(**given)])
    assert {name: vars(copied)[name] for name in given} == given
    assert set(given) == set(signature(GroundednessMetric).parameters)


def test_a_share_that_is_none_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="contradicted"):
        GroundednessMetric(contradicted=2)


def test_what_could_not_be_checked_is_an_error() -> None:
    from guardrail import GuardrailConfig

    config = GuardrailConfig.model_validate({"judge": "transformers:/no/such/judge"})
    with Guardrail(config) as broken, pytest.raises(JudgeError, match="not checked"):
        GroundednessMetric(guard=broken).measure(case(RANGE))
