"""Times of day, as prose writes them."""

import pytest

from guardrail.core.text.dates import find_times


@pytest.mark.parametrize(
    ("text", "minutes", "half"),
    [
        ("It opens at 18:30.", 18 * 60 + 30, True),
        ("It opens at 6.30 pm.", 18 * 60 + 30, True),
        ("It opens at 12 a.m.", 0, True),
        ("It opens at half past six.", 6 * 60 + 30, False),
        ("It opens at quarter to 7.", 6 * 60 + 45, False),
        ("It opens at nine o'clock.", 9 * 60, False),
        ("It opens at noon.", 12 * 60, True),
    ],
)
def test_a_time_is_read(text, minutes, half):
    (found,) = find_times(text)
    assert (found.minutes, found.half) == (minutes, half)
    assert text[found.start : found.end] in text.removeprefix("It opens at ")


@pytest.mark.parametrize("text", ["Version 3.10.2", "It costs 18.30.", "At 25:00.", "Ratio 1:2:3"])
def test_what_is_no_time_is_none(text):
    assert find_times(text) == []


def test_where_no_half_of_the_day_is_told_both_are_meant():
    def of(text):
        (found,) = find_times(text)
        return found

    assert of("at half past six").same(of("at 18:30"))
    assert not of("at 6:30 am").same(of("at 18:30"))
    assert not of("at half past six").same(of("at half past seven"))
