"""Numbers with units, bounds and roundings."""

import pytest

from guardrail.naming import SentenceTokens
from guardrail.quantities import Quantity, find_quantity, quantity_of
from guardrail.types import Triple
from tests.guardrail.test_attribution import attribute


def share(text: str, value: str) -> float:
    held = quantity_of(value)
    assert held is not None
    return find_quantity(SentenceTokens.of(text, 0), held, bare=held.unit is None)[0]


@pytest.mark.parametrize(
    ("told", "held", "agrees"),
    [
        ("It is 330 metres tall.", "330 metre", True),
        ("It is 330 m tall.", "330 metre", True),
        ("It is 330m tall.", "330 metre", True),
        ("It lies 330ft high.", "330 metre", False),
        ("It weighs 3.5kg.", "3.5 kilogram", True),
        ("It is 1,083 feet tall.", "330 metre", True),
        ("It is 330 feet tall.", "330 metre", False),
        ("It is 330 kg.", "330 metre", False),
        ("It is about 340 metres tall.", "330 metre", True),
        ("It is 340 metres tall.", "330 metre", False),
        ("It is more than 300 metres tall.", "330 metre", True),
        ("It is more than 330 metres tall.", "330 metre", False),
        ("It is less than 330 metres tall.", "330 metre", False),
        ("It is at least 330 metres tall.", "330 metre", True),
        ("It is no more than 300 metres tall.", "330 metre", False),
        ("It grossed $160 million.", "160000000 United States dollar", True),
        ("It grossed €160 million.", "160000000 United States dollar", False),
        ("It grossed $161 million.", "160000000 United States dollar", False),
        ("83 million people live there.", "83149300", True),
        ("83.1 million people live there.", "83149300", True),
        ("83.2 million people live there.", "83149300", False),
        ("84 million people live there.", "83149300", False),
        ("She had more than 3 children.", "3", False),
        ("It has over half a million readers.", "545,796", True),
        ("It has over a million readers.", "545,796", False),
        ("It has more than 4,000 readers.", "$2.4 billion", False),
        ("Moreover, 4,000 people live there.", "90000", False),
        ("It is spread over 17 islands.", "17000", False),
        ("She had fewer than four children.", "3", True),
        ("Twenty one ships came.", "21", True),
        ("Twenty one ships came.", "1", False),
        ("It covers 2.5 square kilometres.", "250 hectare", True),
    ],
)
def test_a_number_agrees_in_its_unit_and_as_precisely_as_told(
    told: str, held: str, agrees: bool
) -> None:
    assert share(told, held) == float(agrees)


def test_a_number_without_its_unit_is_half_of_a_quantity() -> None:
    assert share("It stands 330 above the river.", "330 metre") == 0.5


@pytest.mark.parametrize(
    ("value", "number", "measures"),
    [
        ("330 metre", 330.0, "length"),
        ("$5 million", 5e6, "dollar"),
        ("3746.66 (square metres)", 3746.66, "area"),
        ("12", 12.0, None),
    ],
)
def test_values_that_are_quantities(value: str, number: float, measures: str | None) -> None:
    found = quantity_of(value)
    assert found is not None
    assert found.number == number
    assert (found.unit and found.unit.measures) == measures


@pytest.mark.parametrize("value", ["Boeing 747", "747 Squadron", "12 Angry Men", "1593-07-08", ""])
def test_values_that_are_none(value: str) -> None:
    assert quantity_of(value) is None


def test_another_unit_or_bound_is_not_cited() -> None:
    triples = (Triple(subject="Anna Berg", property="number of children", value="3"),)
    (right,) = attribute("Anna Berg had 3 children.", triples).sentences
    (wrong,) = attribute("Anna Berg had more than 3 children.", triples).sentences
    assert right.citations == (triples[0].citation,)
    assert wrong.citations == ()
    assert Quantity(3.0, None) == quantity_of("3")
