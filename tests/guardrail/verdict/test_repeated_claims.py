"""What an answer states is no evidence when it states it again."""

import pytest

from guardrail import Guardrail, GuardrailConfig, Passage, Triple
from guardrail.core.types import Effect

FALSE = "The Fjell 3 costs 2,190 euros."
TRUE = "The frame has a warranty of five years."
PASSAGE = Passage(f"The Fjell 3 costs 2,490 euros. {TRUE}")
BEFORE = {
    "nothing": "",
    "the same": FALSE,
    "a heading": "# 2,190 euros\n\n",
    "a question": "What about 2,190 euros?",
    "another thing": "A trailer is offered at 2,190 euros.",
}


@pytest.fixture(scope="module")
def guard():
    with Guardrail(GuardrailConfig(graph={"location": "none"})) as guard:
        yield guard


@pytest.mark.parametrize("before", BEFORE.values(), ids=list(BEFORE))
@pytest.mark.parametrize("price", ["2,190", "2,490"])
def test_a_repeated_value_is_as_wrong_as_the_first(guard, before, price):
    stated = FALSE.replace("2,190", price)
    text = f"{before.replace('2,190', price)} {TRUE} {stated}"
    answer = guard.check("", text, evidence=[PASSAGE], policy="strict")
    assert (stated in answer.text) == (price == "2,490")


@pytest.mark.parametrize("yes", ["", "Yes, "])
@pytest.mark.parametrize("evidence", [PASSAGE, Triple("Fjell 3", "price", "2,490 euros")])
@pytest.mark.parametrize("price", ["2,190", "2,490"])
def test_so_is_a_value_that_the_question_states(guard, yes, evidence, price):
    stated = f"the Fjell 3 costs {price} euros"
    question = f"I was told that {stated}. Is that right?"
    answer = guard.check(question, f"{yes}{stated}.", evidence=[evidence], policy="strict")
    assert (price in answer.text) == (price == "2,490")


def test_a_condition_of_the_question_is_not_missing(guard):
    evidence = [Passage("Shipping is free within Denmark.")]
    question = "What is shipping for 100 euros to Denmark?"
    answer = guard.check(question, "For 100 euros shipping is free.", evidence=evidence)
    (sentence,) = answer.sentences
    missing = [item.check for item in sentence.findings if item.effect is Effect.MISSING]
    assert "typed_values" not in missing


def test_a_value_of_the_answers_own_stays_missing():
    config = GuardrailConfig(graph={"location": "none"}, judge="none")
    with Guardrail(config) as guard:
        evidence = [Triple("Fjell 3", "range", "110 km")]
        answer = guard.check("", f"{FALSE} {FALSE}", evidence=evidence, policy="annotate")
    for sentence in answer.sentences:
        missing = [item for item in sentence.findings if item.effect is Effect.MISSING]
        assert [answer.text[item.start : item.end] for item in missing] == ["2,190 euros"]


@pytest.mark.parametrize(("question", "known"), [("", False), ("Who is Otto Lindqvist?", True)])
def test_a_name_of_the_answers_own_stays_missing(question, known):
    config = GuardrailConfig(graph={"location": "none"}, judge="none")
    stated = "The Fjell 3 was designed by Otto Lindqvist."
    with Guardrail(config) as guard:
        evidence = [Triple("Fjell 3", "designer", "Ingrid Solberg")]
        answer = guard.check(question, f"{stated} {stated}", evidence=evidence, policy="annotate")
    for sentence in answer.sentences:
        names = [item for item in sentence.findings if item.check == "unknown_names"]
        assert bool(names) != known
