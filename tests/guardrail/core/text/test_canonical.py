"""The canonical form: other writings of one thing meet, other things stay apart, offsets hold."""

import pytest

from guardrail.core.text.canonical import canonical


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("It holds 9,750 seeds.", "It holds 9750 seeds."),
        ("It holds 9 750 seeds.", "It holds 9750 seeds."),
        ("It holds 9\u202f750 seeds.", "It holds 9750 seeds."),
        ("It holds 9’750 seeds.", "It holds 9750 seeds."),
        ("nine thousand seven hundred and fifty", "9750"),
        ("1.250.000 or 12,50,000 people", "1250000 or 1250000 people"),
        ("1.2 million, 12k users", "1200000, 12000 users"),
        ("twenty-five rooms, two dozen eggs", "25 rooms, 24 eggs"),
        ("one month", "1 month"),
        ("€48.00, 48 euro, EUR 48 or 48 EUR", "48 euros, 48 euros, 48 euros or 48 euros"),
        ("£5 or £48.50", "5 pounds or 48.50 pounds"),
        ("75 percent, 75 %, 75 per cent", "75%, 75%, 75%"),
        ("a 5kg or 5-kilogram bag", "a 5 kg or 5 kg bag"),
        ("3 hrs 20 mins, 24 h", "3 hours 20 minutes, 24 hours"),
        ("1996-03-14, 14/03/1996, March 14th, 1996", "14 March 1996, 14 March 1996, 14 March 1996"),
        ("1996-03-14T00:00:00Z", "14 March 1996"),
        ("1996-03-14T18:30:00Z", "14 March 1996 18:30"),
        ("Mon–Fri 9:00–17:00", "Monday to Friday 09:00 to 17:00"),
        ("Sat 10 am to 4 p.m.", "Saturday 10:00 to 16:00"),
        ("noon on Saturdays", "12:00 on Saturdays"),
        ("Kettle, price_gbp: 64.99.", "Kettle, price_gbp: 64.99 pounds."),
        ("Fjell 3, range km: 110.", "Fjell 3, range km: 110 km."),
    ],
)
def test_writings_of_one_thing_meet(written: str, expected: str) -> None:
    assert canonical(written).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "Sun Microsystems sat on the Wed proposal.",
        "Seven Sisters is no one hill.",
        "INV-2024-0012 and K-21 are IPX7.",
        "version 3.10.2 at 192.168.0.1",
        "It was built 2012-2014, in the 1990s, in spring 2021.",
        "03/04/1996 may be either.",
        "at half past six",
        "The Noon Cafe is open.",
        "44 BC",
        "",
    ],
)
def test_what_is_not_sure_stays(text: str) -> None:
    assert canonical(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "It costs €48.00 from Mon–Fri, 9:00–17:00, for 9,750 people.",
        "Born 1996-03-14, one year, twenty-five days",
        "nothing to rewrite",
    ],
)
def test_offsets_lead_back_and_the_form_is_its_own(text: str) -> None:
    found = canonical(text)
    assert canonical(found.text).text == found.text
    assert found.original(0, len(found.text)) == (0, len(text))
    for start, end, here, stop in found.edits:
        assert found.original(here, stop) == (start, end)
    last = len(found.text) - 1
    assert text[slice(*found.original(0, 2))] == text[:2]
    assert found.original(last, last + 1)[1] == len(text)


@pytest.mark.parametrize("written", ["50p", "80 cents", "5 pence", "¢5"])
def test_hundredths_of_a_currency_stay_what_they_are(written):
    text = f"A badge costs {written}."
    assert canonical(canonical(text).text).text == canonical(text).text
