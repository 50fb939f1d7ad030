"""What contradicts a triple, and what only stands where another value would."""

import pytest

from guardrail.types import SpanKind, Triple
from tests.guardrail.test_attribution import ARTEMISIA, ORAZIO, attribute
from tests.guardrail.test_stated import Denying


@pytest.mark.parametrize(
    ("text", "contradicted"),
    [
        ("She was the daughter of Agostino Tassi.", True),
        ("She was the mother of Agostino Tassi.", False),
        ("Her father was Agostino Tassi.", True),
        ("She had a son named Agostino Tassi.", False),
        ("Her children were Agostino and Prudentia.", False),
        ("She had a son, Cristofano, who was the son of Agostino Tassi.", False),
        ("She was the daughter of Prudenzia Montoni, a teacher in Pisa.", False),
    ],
)
def test_only_who_is_told_as_her_father_contradicts_who_he_was(
    text: str, contradicted: bool
) -> None:
    triples = (
        Triple(subject=ARTEMISIA, property="father", value=ORAZIO),
        Triple(subject=ARTEMISIA, property="mother", value="Prudenzia Montoni"),
    )
    last = attribute(f"Artemisia Gentileschi painted. {text}", triples, Denying()).sentences[-1]
    found = {s.triple.property for s in last.spans if s.kind is SpanKind.CONTRADICTED and s.triple}
    assert ("father" in found) is contradicted


def test_a_year_before_christ_is_not_the_same_year_after() -> None:
    triple = Triple(subject="Zu Yi", property="date of birth", value="-1600-01-01")
    (wrong,) = attribute("Zu Yi was born in 1600.", (triple,)).sentences
    assert wrong.citations == ()
    (right,) = attribute("Zu Yi was born in 1600 BC.", (triple,)).sentences
    assert right.citations == (triple.citation,)


def test_her_death_contradicts_no_man_whom_she_married() -> None:
    triples = (
        Triple(subject=ORAZIO, property="sex or gender", value="male"),
        Triple(subject=ORAZIO, property="date of death", value="1639-02-07"),
    )
    text = "She was 16 when she married Orazio Gentileschi, and died in 1654."
    (one,) = attribute(text, triples, Denying()).sentences
    assert not any(span.kind is SpanKind.CONTRADICTED for span in one.spans)


def test_what_is_shown_as_wrong_is_the_value_and_not_the_word_of_its_property() -> None:
    triples = (Triple(subject=ARTEMISIA, property="date of birth", value="1593-07-08"),)
    told = "Artemisia Gentileschi was born in 1600 and loved opera."
    (one,) = attribute(told, triples, Denying()).sentences
    assert [(span.text, span.kind) for span in one.spans] == [
        ("1600", SpanKind.CONTRADICTED),
        ("loved", SpanKind.NA),
        ("opera", SpanKind.NA),
    ]
    assert one.na


@pytest.mark.parametrize(
    ("told", "contradicted"),
    [
        ("between 1590 and 1600", []),
        ("between 1560 and 1570", ["1560", "1570"]),
        ("around 1594", []),
        ("in about 1595", []),
        ("c. 1594", []),
        ("roughly in 1595", []),
        ("no later than 1595", []),
        ("in 1592 or 1594", []),
        ("around 1700", ["1700"]),
        ("in 1594", ["1594"]),
    ],
)
def test_a_date_told_roughly_or_as_a_range_contradicts_none_near(
    told: str, contradicted: list[str]
) -> None:
    triples = (Triple(subject=ARTEMISIA, property="date of birth", value="1593-07-08"),)
    (one,) = attribute(f"Artemisia Gentileschi was born {told}.", triples, Denying()).sentences
    found = [span.text for span in one.spans if span.kind is SpanKind.CONTRADICTED]
    assert found == contradicted


@pytest.mark.parametrize(
    ("told", "contradicted"),
    [
        ("was born in Paris", True),
        ("was born in England", False),
        ("was born on Monday", False),
        ("was born on Pi Day 1593", False),
    ],
)
def test_neither_a_day_nor_a_state_that_may_hold_it_is_another_town(
    told: str, contradicted: bool
) -> None:
    triples = (Triple(subject=ARTEMISIA, property="place of birth", value="Rome"),)
    (one,) = attribute(f"Artemisia Gentileschi {told}.", triples, Denying()).sentences
    assert any(span.kind is SpanKind.CONTRADICTED for span in one.spans) is contradicted


def test_one_state_is_another_than_the_next() -> None:
    triples = (Triple(subject=ARTEMISIA, property="place of birth", value="Italy"),)
    told = "Artemisia Gentileschi was born in France."
    (one,) = attribute(told, triples, Denying()).sentences
    assert any(span.kind is SpanKind.CONTRADICTED for span in one.spans)
