"""``assert_grounded``: what passes, what falls short and how it is reported."""

import pytest

from guardrail import Guardrail, GuardrailConfig, JudgeError, Triple
from guardrail.evaluation import Requirement, assert_grounded, assess
from guardrail.policy import STRICT

PRICE = Triple("Fjell 3", "price", "2,490 euros")
RANGE = "The range of the Fjell 3 is 110 km."


def test_a_supported_answer_passes_and_returns_its_claims(guard: Guardrail) -> None:
    found = assert_grounded(f"The Fjell 3 costs 2,490 euros. {RANGE}", [PRICE, RANGE], guard=guard)
    assert (found.verdict, found.claims, found.supported) == ("supported", 2, 1.0)


def test_a_lower_bar_lets_part_of_an_answer_go_without_support(guard: Guardrail) -> None:
    answer = f"{RANGE} It won the Golden Spoke award in Lisbon."
    with pytest.raises(AssertionError, match="50% of the claims are supported"):
        assert_grounded(answer, [RANGE], guard=guard)
    assert assert_grounded(answer, [RANGE], supported=0.5, guard=guard).supported == 0.5


def test_an_answer_that_claims_nothing_passes_and_an_empty_one_does_not(guard: Guardrail) -> None:
    assert assert_grounded("Hello!", [RANGE], guard=guard).verdict == "no_claim"
    with pytest.raises(AssertionError, match="the answer is empty"):
        assert_grounded(" ", [RANGE], guard=guard)


def test_what_could_not_be_checked_neither_passes_nor_fails() -> None:

    config = GuardrailConfig.model_validate({"judge": "transformers:/no/such/judge"})
    with Guardrail(config) as guard, pytest.raises(JudgeError, match="not checked"):
        assert_grounded(RANGE, [RANGE], guard=guard)


def test_what_a_policy_removes_counts(guard: Guardrail) -> None:
    answer = guard.check(
        "", f"The Fjell 3 costs 2,190 euros. {RANGE}", evidence=[PRICE, RANGE], policy=STRICT
    )
    assert len(answer.removed) == 1
    found = assess(answer, Requirement(supported=0.5, contradicted=0.5))
    assert (found.verdict, found.claims, found.passed) == ("contradicted", 2, True)
