"""From when until when a statement holds."""

from datetime import date

import pytest

from guardrail.core.text.dates import timeless, validity_of


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
