"""Headings and headers only name what the lines below them tell of."""

import pytest

from guardrail.drafting import AttributionRequest, drafts_of
from guardrail.markers.grammar import parse as read
from guardrail.phrases import parse


@pytest.mark.parametrize(
    ("answer", "claimed"),
    [
        ("## Anna Berg\n\nShe was a poet.", ["She was a poet."]),
        ("# 1. Contributions to Computing\nShe was a poet.", ["She was a poet."]),
        ("**Anna Berg**\nShe was a poet.", ["She was a poet."]),
        ("Key facts about her life:\n- She was a poet.", ["She was a poet."]),
        (
            "1. Carl Dahl\n   - Birthplace: Bergen\n2. Anna Berg\n   - Born: Rome, 1593",
            ["Birthplace: Bergen", "Born: Rome, 1593"],
        ),
        ("- **Carl Dahl**\n\n  He was a poet.", ["He was a poet."]),
        (
            "| Name | Born |\n|---|:--|\n| Anna Berg | Oslo |",
            ["| Anna Berg | Oslo |"],
        ),
        ("# Ada was born in Paris", ["Ada was born in Paris"]),
        ("# Anna Berg, engineer\n\nOslo.", ["Anna Berg, engineer", "Oslo."]),
        ("# No deaths", ["No deaths"]),
        (
            "Anna Berg won:\n- Nobel Prize\n- Fields Medal",
            ["Anna Berg won:", "Nobel Prize", "Fields Medal"],
        ),
        (
            "Anna Berg won:\n\n- Fields Medal\n\nShe was a poet.",
            ["Anna Berg won:", "Fields Medal", "She was a poet."],
        ),
        ("1. Carl Dahl\n2. Anna Berg", ["Carl Dahl", "Anna Berg"]),
        ("| All of the patients died | 4 |\n|---|---|", ["| All of the patients died | 4 |"]),
        ("Anna Berg", ["Anna Berg"]),
    ],
)
def test_names_above_what_is_told_of_them_are_no_claims(answer: str, claimed: list[str]) -> None:
    request = AttributionRequest("", read(answer, ()), ())
    drafts = drafts_of(0, request, parse([answer])[0])
    assert [one.stretch.text for one in drafts if one.claim] == claimed
