"""Phone numbers and addresses are one value each, and what only looks like one is none."""

import pytest

from guardrail.core.text.values import ISBN, MAIL, PHONE, WEB, find_contacts, find_values


@pytest.mark.parametrize(
    ("text", "form", "written"),
    [
        ("Call +44 20 7946 0018.", PHONE, "+44 20 7946 0018"),
        ("Call +442079460018 now", PHONE, "+442079460018"),
        ("Call (020) 7946 0018.", PHONE, "(020) 7946 0018"),
        ("Call 030/1234567, please.", PHONE, "030/1234567"),
        ("Call (415) 555-2671.", PHONE, "(415) 555-2671"),
        ("Call 415-555-2671.", PHONE, "415-555-2671"),
        ("ISBN 978-3-16-148410-0", ISBN, "978-3-16-148410-0"),
        ("Write to desk24@a.example.", MAIL, "desk24@a.example"),
        ("See https://a.example/2024/05/06, page 3", WEB, "https://a.example/2024/05/06"),
        ("See www.a24.example!", WEB, "www.a24.example"),
        ("See a.example/rooms/42.", WEB, "a.example/rooms/42"),
    ],
)
def test_it_is_one_value(text, form, written):
    first = find_values(text)[0]
    assert (first.kind, first.text) == (form, written)


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-06", "05/06/2024", "01-02-2024 and 03-04-2024", "from 0900-1700", "2019-2024",
        "10 000 000", "+10 000 000", "1.2.3", "10-12-14", "0.25", "+5%", "3/4", "24/7", "a@b",
        "and/or", "km/h", "i.e./e.g.", "1,234,567", "2019-2020-2021",
    ],
)  # fmt: skip
def test_it_is_none(text):
    assert list(find_contacts(text)) == []
