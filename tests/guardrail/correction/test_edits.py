"""A value is exchanged in the sentence's own writing, or not at all."""

import pytest

from guardrail.core.text.values import find_values
from guardrail.correction.edits import replaced, value_edit


def written(sentence: str, held: str) -> str | None:
    """The sentence with its last value exchanged for the one that is held."""
    told, known = find_values(sentence)[-1], find_values(held)[0]
    edit = value_edit(sentence, told, known, 0)
    return None if edit is None else replaced(sentence, [edit])


@pytest.mark.parametrize(
    ("sentence", "held", "expected"),
    [
        ("It costs 2,190 euros.", "2490 EUR", "It costs 2,490 euros."),
        ("It costs 2190 euros.", "2,490 euros", "It costs 2490 euros."),
        ("It costs €990.", "2,490 euros", "It costs €2,490."),
        ("It costs €69.", "64.90 euros", "It costs €64.90."),
        ("It has 2 million rows.", "50,000", "It has 50,000 rows."),
        ("It made 2.4 million euros.", "-2,600,000 euros", "It made -2,600,000 euros."),
        ("It made -2.4 million euros.", "-2,600,000 euros", "It made -2,600,000 euros."),
        ("It made -2.4 million euros.", "2,600,000 euros", "It made 2,600,000 euros."),
        ("It is -5 °C there.", "-6 °C", "It is -6 °C there."),
        ("It has five gears.", "6", "It has six gears."),
        ("It weighs an 8 kg.", "24 kg", "It weighs a 24 kg."),
        ("It takes a 5 hour night.", "8 hours", "It takes an 8 hour night."),
        ("It takes 1 hour.", "4 hours", "It takes 4 hours."),
        ("It takes 3 hours.", "1 hour", "It takes 1 hour."),
        ("The cable is 90 cm long.", "0.75 m", "The cable is 75 cm long."),
        ("A 3-year warranty.", "5 years", "A 5-year warranty."),
        ("It arrives within 7 days.", "3 to 5 days", "It arrives within 3 to 5 days."),
        ("It opened in 1989.", "12 March 1998", "It opened in 1998."),
        ("It opened on 12 March 1989.", "1998-03-14", "It opened on 14 March 1998."),
        ("It opened on March 12th, 1989.", "1998-03-22", "It opened on March 22, 1998."),
        ("Tours start at 3:30 pm.", "14:30", "Tours start at 2:30 pm."),
        ("Tours start at 9 a.m.", "10:00", "Tours start at 10:00."),
        ("Tours start at 08:00.", "9:30", "Tours start at 9:30."),
        ("It runs version 2.3.0.", "v2.4.1", "It runs version 2.4.1."),
        ("Call +44 20 7946 0081.", "+44 20 7946 0018", "Call +44 20 7946 0018."),
    ],
)
def test_a_value_is_written_as_the_sentence_writes_it(sentence, held, expected):
    assert written(sentence, held) == expected


@pytest.mark.parametrize(
    ("sentence", "held"),
    [
        ("It has six gears.", "1"),  # what is counted would need another form
        ("The club is called Gubbio 1910.", "2014"),  # a piece of a name
        ("The notice period is 6 months.", "6 weeks"),
        ("It opened on 12 March 1989.", "April 1998"),  # the day is not known
        ("It was seen by 4.8 million people.", "3.8"),  # of a column that counts in millions
        ("It took more than 300 minutes.", "250 minutes"),  # 250 is not more than 250
    ],
)
def test_what_cannot_be_written_surely_is_left(sentence, held):
    assert written(sentence, held) is None
