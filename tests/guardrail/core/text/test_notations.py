"""One value in many notations, and values that only look alike; see ``notations.psv``."""

from pathlib import Path

import pytest

from guardrail.core.text.values import compare, find_values, values_of

ROWS = [
    line.split("|")
    for line in Path(__file__).with_name("notations.psv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("held", "label", "claimed", "expected"), ROWS)
def test_a_claimed_value_agrees_with_a_held_one(
    held: str, label: str, claimed: str, expected: str
) -> None:
    found = {
        compare(value, known).value
        for value in find_values(claimed)
        for known in values_of(held, label)
    }
    assert found <= {expected, "open"}
    assert (expected in found) or (expected == "open")
