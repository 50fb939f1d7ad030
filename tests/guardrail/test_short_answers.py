"""Answers without a verb, read as their question asks."""

import pytest

from guardrail import Category, Guardrail

ADA, EINSTEIN = "Ada Lovelace", "Albert Einstein"


@pytest.fixture(scope="module")
def guard():
    with Guardrail() as guard:
        yield guard


@pytest.mark.parametrize(
    ("question", "answer", "cited"),
    [
        (f"Who was {ADA}'s father?", "Lord Byron.", {("father", "Lord Byron")}),
        (f"Who was {ADA}'s father?", "Father: Lord Byron", {("father", "Lord Byron")}),
        (f"When was {ADA} born?", "1815", {("date of birth", "1815-12-10")}),
        (f"Where was {EINSTEIN} born?", "Ulm.", {("place of birth", "Ulm")}),
        (f"Who was the mother of {EINSTEIN}?", "Pauline Koch.", {("mother", "Pauline Koch")}),
        (
            f"What was {ADA}'s occupation?",
            "Poet, mathematician.",
            {("occupation", "mathematician")},
        ),
    ],
)
def test_what_is_asked_for_is_cited(guard, question, answer, cited):
    (sentence,) = guard.check(question=question, answer=answer).sentences
    assert {(one.property, one.value) for one in sentence.citations} == cited


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (f"Who was {ADA}'s father?", "Charles Babbage."),
        (f"Who was {ADA}'s nephew?", "Charles Babbage."),
        (f"When was {ADA} born?", "1852"),
        (f"Where was {EINSTEIN} born?", "Bern."),
    ],
)
def test_another_property_with_the_same_value_supports_nothing(guard, question, answer):
    (sentence,) = guard.check(question=question, answer=answer).sentences
    assert sentence.category is Category.IRRELEVANT
    assert sentence.na


def test_where_no_property_is_asked_for_any_may_be_told(guard):
    checked = guard.check(question=f"Who was {ADA}?", answer="A mathematician.")
    assert checked.sentences[0].category is Category.SUPPORTIVE


def test_the_right_short_answer_is_ranked_first(guard):
    answers = ["Charles Babbage.", "Lord Byron."]
    ranked = guard.rank(question=f"Who was {ADA}'s father?", answers=answers)
    assert [one.text for one in ranked] == ["Lord Byron.", "Charles Babbage."]
