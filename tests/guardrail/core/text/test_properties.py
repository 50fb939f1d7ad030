"""How prose names properties."""

import pytest

from guardrail.core.text.units import cues, property_name, tells_place
from guardrail.core.text.words import content_stems


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
