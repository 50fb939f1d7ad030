"""Prices and ratings told by their degree: *affordable*, *highly rated*, *a low rating*."""

import pytest

from guardrail import Guardrail
from guardrail.degrees import attribute_of, is_opposite, told_by_degree
from guardrail.naming import SentenceTokens
from guardrail.types import Category, Triple

PUB = "The Anchor"
FOOD = Triple(subject=PUB, property="food", value="English")


def fact(label: str, value: str) -> Triple:
    return Triple(subject=PUB, property=label, value=value)


def told(text: str, label: str, value: str, *, opposite: bool = False) -> bool:
    """Whether a degree tells a value, or the other end of its scale."""
    triple = fact(label, value)
    return any(
        is_opposite(text[start:end].lower(), triple) is opposite
        for start, end in told_by_degree(SentenceTokens.of(text, 0), triple)
    )


@pytest.mark.parametrize(
    ("text", "label", "value", "tells"),
    [
        ("It has poor ratings.", "customer rating", "1 out of 5", True),
        ("It is rated low.", "customerRating", "1/5", True),
        ("The customer rating is average.", "customer rating", "3 out of 5", True),
        ("Its reviews are excellent.", "rating", "5 out of 5 stars", True),
        ("It is highly rated.", "customer rating", "1 out of 5", False),
        ("It has high prices and a rating of 5.", "customer rating", "5 out of 5", False),
        ("It is rated low, with high prices.", "customer rating", "5 out of 5", False),
        ("It is pricey.", "priceRange", "high", True),
        ("It is affordable.", "price range", "cheap", True),
        ("It has reasonable prices.", "pricerange", "moderate", True),
        ("It is expensive.", "price range", "cheap", False),
        ("It has low ceilings.", "price range", "low", False),
        ("It has high ceilings.", "ceiling", "5 out of 5", False),
        ("It is in a low season.", "birth rate", "low", False),
    ],
)
def test_a_level_is_told_by_any_degree_of_it(
    text: str, label: str, value: str, tells: bool
) -> None:
    assert told(text, label, value) is tells


@pytest.mark.parametrize(
    ("text", "value", "against"),
    [
        ("It is highly rated.", "1 out of 5", True),
        ("It has terrible reviews.", "5 out of 5", True),
        ("It has decent reviews.", "5 out of 5", False),
        ("It is highly rated.", "3 out of 5", False),
        ("It is highly rated.", "0 out of 0", False),
    ],
)
def test_only_the_other_end_of_a_scale_contradicts(text: str, value: str, against: bool) -> None:
    assert told(text, "customer rating", value, opposite=True) is against


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("The Anchor is highly rated.", Category.CONTRADICTORY),
        ("The Anchor has poor customer ratings.", Category.SUPPORTIVE),
        ("The Anchor is near the highly rated Eagle.", None),
        ("The Anchor does not have a high customer rating.", None),
        ("The Anchor is far from highly rated.", None),
        ("The Anchor lacks good reviews.", None),
    ],
)
def test_a_degree_is_read_by_its_clause(
    guard: Guardrail, text: str, category: Category | None
) -> None:
    evidence = (fact("customer rating", "1 out of 5"), fact("near", "Eagle"))
    (sentence,) = guard.check(question="", answer=text, evidence=evidence).sentences
    if category is None:
        assert sentence.category is not Category.CONTRADICTORY
    else:
        assert sentence.category is category


@pytest.mark.parametrize(
    ("label", "tells"),
    [
        ("priceRange", True), ("pricerange", True), ("cost", True), ("customer rating", True),
        ("averageRating", True), ("safety rating", False), ("interest rate", False),
        ("operating organisation", False), ("range", False),
    ],
)  # fmt: skip
def test_labels_tell_a_price_or_rating_in_any_spelling(label: str, tells: bool) -> None:
    assert (attribute_of(label) is not None) is tells


@pytest.mark.parametrize(
    "text",
    [
        "The Anchor serves English food at moderate prices.",
        "The Anchor is a low-cost place for English food.",
        "The Anchor serves English food and has excellent customer ratings.",
        "The Anchor serves English food; its prices are quite high.",
        "The Anchor serves English food for £20-25.",
        "The Anchor has 14 tables and serves English food.",
    ],
)
def test_what_no_evidence_speaks_of_lacks_support(guard: Guardrail, text: str) -> None:
    answer = guard.check(question="", answer=text, evidence=(FOOD, fact("near", "Clare Hall")))
    assert any(one.na for one in answer.sentences)
    assert all(one.category is not Category.SUPPORTIVE for one in answer.sentences if one.na)


@pytest.mark.parametrize(
    ("text", "label", "value"),
    [
        ("The Anchor serves English food at moderate prices.", "priceRange", "moderate"),
        ("The Anchor, which is affordable, serves English food.", "priceRange", "cheap"),
        ("The Anchor serves English food and is highly rated.", "customer rating", "5 out of 5"),
        ("The Anchor serves English food and has 14 tables.", "tables", "14"),
    ],
)
def test_the_same_is_supported_by_a_fact_that_tells_it(
    guard: Guardrail, text: str, label: str, value: str
) -> None:
    answer = guard.check(question="", answer=text, evidence=(FOOD, fact(label, value)))
    assert [one.category for one in answer.sentences] == [Category.SUPPORTIVE]


def test_a_degree_of_one_attribute_tells_no_other(guard: Guardrail) -> None:
    evidence = (FOOD, fact("priceRange", "high"))
    text = "The Anchor serves English food and is highly rated."
    (sentence,) = guard.check(question="", answer=text, evidence=evidence).sentences
    assert [one.property for one in sentence.citations] == ["food"]
    assert sentence.na
