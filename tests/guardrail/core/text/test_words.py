"""Words, and dates and numbers in words."""

from __future__ import annotations

import tracemalloc

import pytest

from guardrail.core.text.dates import Agreement, agreement, find_dates, parse_date
from guardrail.core.text.names import label_in
from guardrail.core.text.units import cues
from guardrail.core.text.words import content_stems, number_of, property_words, stem, tokenise


@pytest.mark.parametrize(
    "written",
    [
        "8 July 1593", "July 8, 1593", "July 8 1593", "8th of July, 1593", "1593-07-08",
        "08/07/1593", "07/08/1593", "8.7.1593", "Jul. 8, 1593", "JULY 8TH, 1593",
        "1593-07-08T00:00:00Z",
    ],
)  # fmt: skip
def test_a_date_is_the_same_in_any_written_form(written: str) -> None:
    (date,) = find_dates(f"She was born on {written} in Rome.")
    assert agreement(date, parse_date("1593-07-08")) is Agreement.SAME


@pytest.mark.parametrize(
    ("stated", "held", "expected"),
    [
        ("in 1593", "1593-07-08", Agreement.SAME),
        ("in July 1593", "1593-07-08", Agreement.SAME),
        ("in the 1590s", "1593-07-08", Agreement.SAME),
        ("in the 16th century", "1593-07-08", Agreement.SAME),
        ("in the late 1990s", "1998", Agreement.SAME),
        ("in the mid-1990s", "1995", Agreement.SAME),
        ("in the early 1990s", "1998", Agreement.CONFLICT),
        ("in the late 16th century", "1593-07-08", Agreement.SAME),
        ("in the early 16th century", "1593-07-08", Agreement.CONFLICT),
        ("on 9 July 1593", "1593-07-08", Agreement.CONFLICT),
        ("in 1596", "1593-07-08", Agreement.CONFLICT),
        ("on 14 June 1654", "1654-01-01", Agreement.OPEN),
        ("in 44 BC", "-0043-03-15", Agreement.SAME),
        ("in the 1st century BC", "-0043-03-15", Agreement.SAME),
    ],
)
def test_dates_agree_as_far_as_the_text_goes(stated: str, held: str, expected: Agreement) -> None:
    (date,) = find_dates(stated)
    assert agreement(date, parse_date(held)) is expected


def test_numbers_that_are_no_dates() -> None:
    assert find_dates("It sold 1,999 copies, 1995.5 m long, 1990 km away, won 2-1910, 12%") == []
    assert parse_date("2439.0") is None
    assert parse_date("June 1999 edition") is None


@pytest.mark.parametrize(
    ("words", "value"),
    [("5,457,831", 5457831), ("3.5 million", 3.5e6), ("twenty one", 21), ("15th", 15),
     ("third", 3), ("two hundred and six", 206), ("red", None), ("2,1", 2.1)],
)  # fmt: skip
def test_numbers_in_figures_and_words(words: str, value: float | None) -> None:
    assert number_of(tokenise(words)) == value


def test_tokens_keep_their_place_and_meet_their_relatives() -> None:
    text = "Gérard's paintings, O'Neill’s 3,000 sons"
    assert tokenise("T. S. Eliot")[0].folded == tokenise("T.S. Eliot")[0].folded == "ts"
    tokens = tokenise(text)
    assert [text[token.start : token.end] for token in tokens] == [
        "Gérard", "paintings", "O'Neill", "3,000", "sons",
    ]  # fmt: skip
    assert tokens[0].folded == "gerard"
    assert stem("painters") == stem("painting") == "paint"
    assert stem("children") == stem("child")
    assert stem("italian") == stem("italy")


def test_labels_of_any_length_leave_no_memory_behind() -> None:
    tokens = tokenise("The Fjell 3 costs 40 euros.")
    tracemalloc.start()
    try:
        for number in range(200):
            label = f"{number} {'ab ' * 650}"
            label_in("The Fjell 3 costs 40 euros.", tokens, label)
            content_stems(label)
            property_words(label)
            cues(label)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2_000_000
