"""What a broken marker lists is not read as prose."""

import pytest

from guardrail.markers.grammar import without_ruins

BORN = "[Ada Lovelace, place of birth: London"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"She wrote {BORN} and", ["She", "wrote"]),
        (f"She wrote {BORN}] on.", ["She", "wrote", "on."]),
        (f"{BORN} [x]] was there.", ["was", "there."]),
        ("So [Q7259, born: London] it is.", ["So", "it", "is."]),
    ],
)
def test_a_marker_is_blanked_to_its_end_and_offsets_stay(text, left):
    blanked = without_ruins(text, {"Ada Lovelace"})
    assert len(blanked) == len(text)
    assert blanked.split() == left


@pytest.mark.parametrize("text", ["See [Smith, page: 3] there.", "An [aside, no colon] here.", ""])
def test_brackets_of_prose_stay(text):
    assert without_ruins(text, {"Ada Lovelace"}) == text
