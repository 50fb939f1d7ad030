"""What a judge reads of values that the evidence writes in another notation."""

import pytest

from guardrail.core.text.units import unit_of_label
from guardrail.core.text.values import find_values
from guardrail.core.types import Grounding, WordScore
from judges.notation import notation_of, restored, with_notation


def read(sentence: str, *held: tuple[str, str]) -> str:
    known = [
        (value, label) for text, label in held for value in find_values(text, unit_of_label(label))
    ]
    return with_notation(sentence, notation_of(find_values(sentence), known))


@pytest.mark.parametrize(
    ("sentence", "held", "label", "expected"),
    [
        ("It costs €2,490.", "2490 euros", "", "It costs 2490 euros."),
        ("It rides 110,000 m.", "110 km", "", "It rides 110 km."),
        ("It rides 8 km.", "5 miles", "", "It rides 5 miles."),
        ("It opened on 9 March 2014.", "2014-03-09", "", "It opened on 2014-03-09."),
        ("It shuts at 9 pm, or so.", "21:00", "", "It shuts at 21:00, or so."),
        ("It has six gears.", "6", "gears", "It has 6 gears."),
        ("It weighs 24,000 g.", "24", "weight (kg)", "It weighs 24 kg."),
        ("It costs £450.", "450", "price (£)", "It costs £450."),
        ("At €2,490 it weighs 24 kg.", "24,000 g", "", "At €2,490 it weighs 24,000 g."),
    ],
)  # fmt: skip
def test_a_value_is_read_as_the_evidence_writes_it(
    sentence: str, held: str, label: str, expected: str
) -> None:
    assert read(sentence, (held, label)) == expected


@pytest.mark.parametrize(
    ("sentence", "held"),
    [
        ("It costs €2,190.", "2490 euros"),
        ("It takes one hour.", "90 minutes"),
        ("It has 284,000 seats.", "284,316"),
        ("It rides 8.1 km.", "5 miles"),
        ("It opened in March 2014.", "2014-03-09"),
        ("It shuts at half past six.", "18:30"),
        ("It costs €12 per day.", "12 euros per month"),
    ],
)
def test_another_value_or_a_rounding_stays(sentence: str, held: str) -> None:
    assert read(sentence, (held, "")) == sentence


def test_what_a_statement_writes_so_stays() -> None:
    assert read("It rides 110 km.", ("110,000 m", "range"), ("110 km", "reach")) == (
        "It rides 110 km."
    )


def test_what_is_said_of_the_words_holds_for_those_of_the_sentence() -> None:
    sentence = "In all €2,490 for six red ones."
    notation = notation_of(
        find_values(sentence), [(value, "") for value in find_values("2490 euros for 6")]
    )
    shown = with_notation(sentence, notation)
    assert shown == "In all 2490 euros for 6 red ones."
    words = ["In", "2490", "euros", "for", "6", "red", "ones"]
    places = [(shown.index(word), shown.index(word) + len(word)) for word in words]
    grounding = Grounding(
        supported=0.1,
        unsupported=0.9,
        contradicted=0.0,
        no_claim=0.0,
        words=tuple(
            WordScore(start=start, end=end, missing=0.5, contradicted=0.0) for start, end in places
        ),
        unread=((shown.index("red"), len(shown)),),
    )
    result = restored(grounding, notation)
    assert [sentence[word.start : word.end] for word in result.words] == [
        "In", "€2,490", "€2,490", "for", "six", "red", "ones",
    ]  # fmt: skip
    assert [sentence[slice(*span)] for span in result.unread] == ["red ones."]
    assert restored(grounding, ()) is grounding
