"""Times of day, and the time for which a statement holds."""

from __future__ import annotations

from datetime import date

import pytest

from guardrail.core.text.dates import Agreement, days_in_full, find_times, timeless, validity_of
from guardrail.core.text.names import label_in
from guardrail.core.text.words import tokenise


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


@pytest.mark.parametrize(
    "text",
    [
        "Version 3.10.2",
        "It costs 18.30.",
        "At 25:00.",
        "At 1715 euros.",
        "Until 1945.",
        "Ratio 1:2:3",
    ],
)
def test_what_is_no_time_is_none(text):
    assert find_times(text) == []


def test_without_a_half_of_the_day_both_are_meant():
    def of(text):
        (found,) = find_times(text)
        return found

    assert of("at half past six").agreement(of("at 18:30")) is Agreement.SAME
    assert of("at 6:30 am").agreement(of("at 18:30")) is Agreement.CONFLICT
    assert of("at half past six").agreement(of("at half past seven")) is Agreement.CONFLICT


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("She led it from 2017 to 2021.", (2017, 1, 1), (2021, 12, 31)),
        ("Bergen (2015 to 2020)", (2015, 1, 1), (2020, 12, 31)),
        ("Since 2022 she has led it.", (2022, 1, 1), None),
        ("It cost 40 kroner until 31 December 2024.", None, (2024, 12, 31)),
        ("From May 2025 it is 48 kroner.", (2025, 5, 1), None),
    ],
)
def test_a_span(text, first, last):
    assert validity_of(text) == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        "It opened in 2019.",
        "It was founded in 1953 and has carried cars since 1971.",
        "From 10 to 17 o'clock.",
        "",
    ],
)
def test_no_span_or_one_of_a_part(text):
    assert validity_of(text) is None


def test_a_day_within_a_span():
    valid = validity_of("from May 2025 to June 2025")
    assert valid.holds(date(2025, 6, 30))
    assert not valid.holds(date(2025, 7, 1))


def test_a_text_without_its_span():
    assert timeless("Bergen (2015 to 2020)").strip() == "Bergen"


@pytest.mark.parametrize(
    ("cell", "full"),
    [
        ("Fri", "Friday"),
        ("Fri, Sat", "Fridays, Saturdays"),
        ("mo-fr", "Mondays, Tuesdays, Wednesdays, Thursdays, Fridays"),
        ("Mo-We, Sa", "Mondays, Tuesdays, Wednesdays, Saturdays"),
        ("Sat-Mon", "Mondays, Saturdays, Sundays"),
        ("Sun", ""),
        ("sat", ""),
        ("fr, th", ""),
        ("fr-FR", ""),
        ("Fri 9-5", ""),
    ],
)
def test_a_cell_of_days_is_read_in_full(cell, full):
    assert days_in_full(cell) == full


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("It runs on Fridays.", True),
        ("It runs from Monday to Friday.", True),
        ("It runs on weekdays.", True),
        ("It runs from Monday to Saturday.", False),
        ("It runs on Sundays and at weekends.", False),
        ("The sun sat on the wed.", False),
    ],
)
def test_a_cell_of_days_stands_where_a_text_names_some_of_them(text, stands):
    assert bool(label_in(text, tokenise(text), "Mon-Fri")) is stands
