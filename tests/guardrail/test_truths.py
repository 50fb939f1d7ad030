"""Properties that hold or do not: what a sentence says of them, and which words say it."""

import pytest

from guardrail import Guardrail
from guardrail.truths import names_property, telling, truth_value
from guardrail.types import Category, Triple

PUB = "The Anchor"


def category(guard: Guardrail, text: str, label: str, value: str) -> Category | None:
    evidence = (
        Triple(subject=PUB, property="food", value="English"),
        Triple(subject=PUB, property=label, value=value),
    )
    return guard.check(question="", answer=text, evidence=evidence).sentences[0].category


@pytest.mark.parametrize(
    ("value", "holds"), [("yes", True), ("True", True), (" no ", False), ("maybe", None)]
)
def test_truth_values_are_read_in_any_case(value: str, holds: bool | None) -> None:
    assert truth_value(value) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("The Anchor is family friendly.", True),
        ("The Anchor serves English food and is child friendly.", True),
        ("Kids are welcome at The Anchor.", True),
        ("The Anchor is not family friendly.", False),
        ("The Anchor serves English food and is not child friendly.", False),
        ("The Anchor serves English food, but is not family friendly.", False),
        ("The Anchor is unsuitable for kids.", False),
        ("At The Anchor no kids are allowed.", False),
        ("Kids are not welcome at The Anchor.", False),
        ("The Anchor does not welcome children.", False),
    ],
)
def test_a_sentence_agrees_with_one_truth_value_and_denies_the_other(
    guard: Guardrail, text: str, holds: bool
) -> None:
    for value, agrees in (("yes", holds), ("no", not holds)):
        found = category(guard, text, "familyFriendly", value)
        assert found is (Category.SUPPORTIVE if agrees else Category.CONTRADICTORY)


def test_a_negation_of_something_else_denies_nothing(guard: Guardrail) -> None:
    text = "The family friendly Anchor does not serve Italian food."
    assert category(guard, text, "familyFriendly", "yes") is not Category.CONTRADICTORY


def test_a_denied_denial_states(guard: Guardrail) -> None:
    text = "It is false that The Anchor is not family friendly."
    assert category(guard, text, "familyFriendly", "no") is Category.CONTRADICTORY


def test_properties_that_no_table_knows_are_read_as_well(guard: Guardrail) -> None:
    assert category(guard, "The Anchor has no wifi.", "hasWifi", "true") is Category.CONTRADICTORY
    assert category(guard, "The Anchor has no wifi.", "hasWifi", "false") is Category.SUPPORTIVE


def test_a_piece_of_a_property_neither_states_nor_denies_it(guard: Guardrail) -> None:
    text = "Parking at The Anchor is not free."
    label = "wheelchair accessible parking"
    assert not names_property(label, {"park"})
    for value in ("true", "false"):
        assert category(guard, text, label, value) is Category.IRRELEVANT


def test_words_for_the_opposite_tell_where_nothing_else_does() -> None:
    assert telling("family friendly", {"adult", "pub"}) == ["adult"]
    assert telling("family friendly", {"adult", "kid"}) == ["kid"]
