"""Units, and the names of properties."""

from __future__ import annotations

import pytest

from guardrail.core.text.units import (
    cues,
    is_unit_name,
    property_name,
    tells_place,
    unit_behind,
    unit_of_label,
)
from guardrail.core.text.words import content_stems


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


def test_a_property_is_named_by_its_own_words_and_by_others():
    own = content_stems("date of birth")
    assert own <= cues("date of birth")
    assert content_stems("born") <= cues("date of birth")


@pytest.mark.parametrize("label", ["price_eur", "price (EUR)", "price [€]", "Price EUR"])
def test_the_unit_of_a_column_does_not_hide_other_wordings(label):
    assert property_name(label) == "price"
    assert cues(label) == cues("price") >= content_stems("cost")


@pytest.mark.parametrize(
    ("label", "place"),
    [("date of birth", False), ("place of birth", True), ("child", False)],
)
def test_some_properties_have_places_as_values(label, place):
    assert tells_place(label) is place
