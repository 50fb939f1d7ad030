"""What stands behind a number, and how much of it."""

import pytest

from guardrail.core.text.units import is_unit_name, unit_behind, unit_of_label


@pytest.mark.parametrize(
    ("text", "measure"),
    [("5 km", "length"), ("5km", "length"), ("5 kilometres", "length"), ("5 %", "percent"),
     ("5 €", "money EUR"), ("5 euros", "money EUR")],
)  # fmt: skip
def test_a_unit_behind_a_number(text, measure):
    unit, end = unit_behind(text, 1)
    assert unit.measure == measure
    assert end == len(text)


def test_units_of_one_measure_convert():
    kilometres, metres = (unit_behind(f"5 {name}", 1)[0] for name in ("km", "m"))
    assert kilometres.factor == 1000 * metres.factor


@pytest.mark.parametrize("text", ["5 kmh2x", "5 bikes", "5"])
def test_what_is_no_unit_is_none(text):
    assert unit_behind(text, 1) is None


def test_a_label_may_name_its_unit():
    assert unit_of_label("price (£)").measure == "money GBP"
    assert unit_of_label("occupation") is None
    assert is_unit_name("kilometres")
    assert not is_unit_name("oslo")
