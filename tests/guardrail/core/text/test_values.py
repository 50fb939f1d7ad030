"""Typed values of a text, contacts among them, in any notation."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import pytest

from guardrail import Guardrail, GuardrailConfig, Passage, Triple
from guardrail.core.text.dates import find_dates
from guardrail.core.text.units import unit_of_label
from guardrail.core.text.values import (
    ISBN,
    MAIL,
    PHONE,
    WEB,
    Agreement,
    compare,
    find_contacts,
    find_values,
    values_of,
)
from guardrail.correction.edits import value_edit
from guardrail.evidence.statements import statements_of
from tests.guardrail.scripted import Overlap


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("18.7 km, on 11 May 2016", [("length", "18.7 km"), ("date", "11 May 2016")]),
        ("2.94 billion francs", [("money CHF", "2.94 billion francs")]),
        ("open at half past seven", [("time of day", "half past seven")]),
        ("two hours and ten minutes", [("time", "two hours and ten minutes")]),
        ("aged between 45 and 64", [("number", "45 and 64")]),
        ("version 3.10.2", [("version", "3.10.2")]),
        ("spring 2021 or 14 March", [("date", "spring 2021"), ("date", "14 March")]),
        ("5 \u03bcs, a Greek letter", [("time", "5 \u03bcs")]),
        ("61.4 % of 50GB", [("percent", "61.4 %"), ("data", "50GB")]),
        ("£5m and 12k users", [("money GBP", "£5m"), ("number", "12k")]),
        ("£20-25 a head", [("money GBP", "£20-25")]),
        ("£20 - 25 guests came", [("money GBP", "£20"), ("number", "25")]),
        ("the K-21 has IPX7", []),
        ("KX4-77Q, PT9-03L, kx4-77q, AB-12-CD and F2-103", []),
        ("PM2.5 of 2021-AB7, INV/2021/004-B3 and 77Q", []),
        ("a 10-year-old on 5 m3/h", [("time", "10-year"), ("volume", "5 m3")]),
        ("Q3-2021 at 7:15am, A4", [("date", "Q3-2021"), ("time of day", "7:15am")]),
        ("the 58th parallel", []),
        ("2021 bc it rained", [("date", "2021")]),
        ("built 2012–2014", [("date", "2012"), ("date", "2014")]),
        ("call 1234-5678", [("number", "1234-5678")]),
        ("1299 dollars for 1800 kg", [("money USD", "1299 dollars"), ("mass", "1800 kg")]),
        ("1300 million pounds", [("money GBP", "1300 million pounds")]),
        ("in 1990 A. Berg paid in euros", [("date", "1990")]),
    ],
)  # fmt: skip
def test_values_of_a_text(text: str, found: list[tuple[str, str]]) -> None:
    assert [(value.kind, value.text) for value in find_values(text)] == found


@pytest.mark.parametrize(
    ("stated", "held", "label", "expected"),
    [
        ("about 133 miles", "214 (kilometres)", "", "same"),
        ("75.6 minutes", "7560.0 (seconds)", "", "conflict"),
        ("86 °F", "30 °C", "", "same"),
        ("one hour", "90 minutes", "", "conflict"),
        ("2 km", "1,950 m", "", "same"),
        ("56 days", "8", "sick_pay_full_weeks", "same"),
        ("18 kW", "18", "it_capacity_mw", "conflict"),
        ("4,000 mAh", "4", "capacity_ah", "same"),
        ("63 °F", "63", "flash_point_c", "conflict"),
        ("£64.99", "64.99", "price_gbp", "same"),
        ("£199", "£249", "", "conflict"),
        ("284,000", "284,316", "", "same"),
        ("284,317", "284,316", "", "conflict"),
        ("2.9 billion", "2.94 billion", "", "same"),
        ("99.9 %", "99.99 %", "", "conflict"),
        ("500 MB", "500 KB", "", "conflict"),
        ("2024-02-23", "2024-03-14", "", "conflict"),
        ("March 2024", "14 March 2024", "", "same"),
        ("14 March 2024", "March 2024", "", "open"),
        ("summer 2021", "May 2021", "", "conflict"),
        # Days and months that no calendar has are as they are written.
        ("31 June 2024", "30 June 2024", "", "conflict"),
        ("32 March 2024", "30 March 2024", "", "conflict"),
        ("2024-13-01", "2024-12-01", "", "conflict"),
        ("13/25/2024", "2024-12-25", "", "conflict"),
        ("31 June 2024", "June 2024", "", "open"),
        ("30 February 2025", "2025-02-30", "", "same"),
        ("28 February 2025", "2025-02-30", "", "open"),
        ("February 2025", "2025-02-30", "", "same"),
        ("1 March 2025", "2025-02-30", "", "conflict"),
        ("December 2024", "2024-13-01", "", "open"),
        ("half past six", "18:30", "", "same"),
        ("half past midnight", "00:30", "", "same"),
        ("quarter to noon", "11:45", "", "same"),
        ("quarter to 5 pm", "16:45", "", "same"),
        ("quarter to 5 pm", "17:00", "", "conflict"),
        ("7 pm", "18:30", "", "conflict"),
        ("at least 20", "15", "", "conflict"),
        ("half a million people", "1 to 2 million people", "", "conflict"),
        ("1.5 million people", "1 to 2 million people", "", "open"),
        ("£500,000", "£1-2 million", "", "conflict"),
        ("900 people", "900 to 2 million people", "", "same"),
        ("up to 300 km", "250 km", "", "same"),
        ("250 km", "up to 300 km", "", "open"),
        ("3.9", "3.10.2", "", "open"),
        ("version 3.9", "3.10.2", "", "conflict"),
        ("€2.4 million", "EUR -2.4 m", "", "conflict"),
        ("a loss of €2.4 million", "EUR -2.4 m", "", "same"),
        ("30 kg", "30 km", "", "open"),
        ("3 cubic kilometres", "4 km³", "", "conflict"),
    ],
)
def test_values_that_agree(stated: str, held: str, label: str, expected: str) -> None:
    (mine,) = find_values(stated)
    (theirs,) = find_values(held, unit_of_label(label) if label else None)
    assert compare(mine, theirs) is Agreement(expected)


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("31 June 2024", (2024, 6, None)),
        ("29 February 2023", (2023, 2, None)),
        ("29 February 2024", (2024, 2, 29)),
        ("29 February 1900", (1900, 2, None)),
        ("29 February", (None, 2, 29)),
        ("30 February", (None, 2, None)),
        ("30/02/2025", (2025, 2, None)),
        ("2025-00-10", (2025, None, None)),
        ("2025-13-45", (2025, None, None)),
        ("-0004-02-29", (-4, 2, 29)),
        ("2024", (2024, None, None)),
    ],
)
def test_what_a_calendar_has_of_a_date(text: str, real: tuple[int | None, ...]) -> None:
    (found,) = find_dates(text, yearless=True)
    assert found.real[:3] == real


PIECES = (
    *("/", "-", ".", ":", " ", ",", "T", " of ", "st ", " pm", " BC", "v", "s", "%", "€", "½"),
    *("February", "June", "half past", "quarter to", "spring", "early", "century", "noon", "kg"),
    *("0", "00", "1", "02", "13", "24", "29", "30", "31", "32", "45", "60", "61", "1e999"),
    *("0000", "0001", "1900", "2023", "2024", "9999", "99999", "million", "Z", "+25:00", "\u0663"),
)
"""What dates, times, versions and amounts are made of."""


ALMOST = (
    *("2025-02-30", "31 June 2024", "June 31, 2024", "30/02/2025", "29 February 2023", "24:61"),
    *("-0003-02-29", "2024-13-01", "2025-02-30T25:61:00Z", "30.2.25", "v1.2.99999", "0 o'clock"),
)


def test_no_text_that_is_almost_a_value_fails() -> None:
    """As a cell of a table neither."""
    chance = Random(7)
    others = find_values("29 February 2024, 3 kg, 24:00, v1.2.3, 5 BC, 0000-02-29")
    made = ("".join(chance.choices(PIECES, k=chance.randint(1, 9))) for _ in range(1_500))
    for text in (*ALMOST, *made):
        values = find_values(text)
        for value, other in product(values, [*values, *others]):
            compare(value, other)
            value_edit(text, value, other, 0)
        (statement,) = statements_of([Triple("Fjell 3", "end", text)])
        assert isinstance(statement.values, tuple), text


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


NUMBERS = {
    "digits": "9" * 400,
    "beyond what an integer may be read from": "9" * 5_000,
    "thousands": ",".join(["999"] * 150),
    "decimals": "0." + "1" * 400,
    "a fraction behind": "9" * 400 + ".5",
    "negative": "-" + "9" * 400,
    "an exponent": "1e400",
    "words": "nine " + "million " * 60,
    "a scale": "9" * 400 + " million",
    "zeros": "0" * 400,
    "zeros beyond what an integer may be read from": "0" * 5_000,
    "thousands of zeros": "0" + ",000" * 150,
    "zeros and a decimal": "0" * 400 + ".5",
    "zeros behind a point": "0." + "0" * 400,
    "zeros and a scale": "0" * 400 + " million",
    "zeros and a figure": "0" * 400 + "7",
    "figures and signs": "12,0.00-" * 60 + "0" * 400,
    "groups of zeros": " ".join(["1", *["000"] * 130]),
    "other figures": "\u0660" * 400,
    "largest float and a scale": "9" * 300 + " billion euros",
}
FORMS = (
    "The depot holds {} seeds.",
    "The depot costs {} euros.",
    "It lasts {} hours per day.",
    "Between 5 and {} percent came.",
    "It opened on {}-01-01.",
    "It opened in {}.",
    "At {}:30 it closes.",
    "${}m",
    "version {}.1.2",
    "It was {} \N{DEGREE SIGN}C.",
)


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_long_numbers_are_read_as_text(number: str) -> None:
    for form in FORMS:
        find_values(form.format(number))


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_long_numbers_are_judged(number: str) -> None:
    triples = [Triple("Depot", "seeds held", number), Triple("Depot", "opened", f"{number}-01-01")]
    with Guardrail(GuardrailConfig(graph={"location": "none"}), grounding=Overlap()) as guard:
        for form in FORMS:
            stated = form.format(number)
            for evidence in (triples, [Passage(stated)], [Passage("The depot holds 12 seeds.")]):
                answer = guard.check(
                    "How many?", f"{stated} The depot holds 12 seeds.", evidence=evidence
                )
                assert answer.sentences
                assert {error.part for error in answer.errors} <= {"language"}


def test_a_zero_is_as_fine_as_its_last_figure() -> None:
    """However many zeros write it: a wide step would let any other number pass for it."""
    for written in ("0", "000", "0,000,000", "0" * 400):
        quantity = find_values(f"It was {written} \N{DEGREE SIGN}C.")[0].value
        assert (quantity.low, quantity.step) == (0.0, 1.0), written
