"""The same subject and value under another word: what a sentence tells of them is another fact."""

import pytest

from guardrail import Guardrail
from guardrail.types import Category, Triple

FACTS = {
    "Acme Corp": (
        ("founded by", "Jane Roe"),
        ("inception", "1998"),
        ("headquarters location", "Denver"),
        ("number of employees", "4200"),
        ("chief executive officer", "John Doe"),
        ("revenue", "$2.4 billion"),
        ("stock exchange", "New York Stock Exchange"),
        ("industry", "robotics"),
    ),
    "Mount Kora": (
        ("elevation", "3,210 metres"),
        ("mountain range", "Alps"),
        ("first ascent", "1865"),
    ),
    "Hotel Azul": (("rooms", "84"), ("price per night", "€120"), ("country", "Portugal")),
    "Blue Night": (
        ("director", "Mia Lund"),
        ("publication date", "2014-05-03"),
        ("genre", "thriller film"),
        ("duration", "118 minutes"),
    ),
    "Lisbon": (("population", "545,796"), ("country", "Portugal")),
    "Midnight Sun": (("performer", "Ada Voss"), ("release date", "2014")),
    "Kora Hall": (("capacity", "500"), ("founding date", "1998"), ("owned by", "Ida Voss")),
}


def category(guard: Guardrail, text: str) -> Category | None:
    subject = next(name for name in FACTS if name in text)
    evidence = [Triple(subject=subject, property=p, value=v) for p, v in FACTS[subject]]
    return guard.check(question="", answer=text, evidence=evidence).sentences[0].category


@pytest.mark.parametrize(
    "text",
    [
        "Acme Corp is led by John Doe.",
        "Acme Corp was set up by Jane Roe.",
        "Acme Corp was established in the late 1990s.",
        "Acme Corp employs more than 4,000 people.",
        "Acme Corp has at least 3,000 employees.",
        "Acme Corp had revenue of 2.4 billion dollars.",
        "Acme Corp trades on the NYSE.",
        "Mount Kora was first climbed in 1865.",
        "Mount Kora is 3210 metres tall.",
        "Mount Kora rises to 3,210 m.",
        "Hotel Azul has 84 rooms.",
        "A night at Hotel Azul costs €120.",
        "Blue Night came out in May 2014.",
        "Blue Night is a thriller.",
        "Blue Night is 118 minutes long.",
        "Lisbon has about 546,000 inhabitants.",
        "Lisbon has over half a million residents.",
        "Around 550,000 people live in Lisbon.",
        "Ada Voss recorded Midnight Sun.",
        "Ada Voss released Midnight Sun in 2014.",
        "Kora Hall has 500 places.",
        "Kora Hall belongs to Ida Voss.",
    ],
)
def test_words_of_the_same_sense_tell_a_property(guard: Guardrail, text: str) -> None:
    assert category(guard, text) is Category.SUPPORTIVE


@pytest.mark.parametrize(
    "text",
    [
        "Acme Corp is led by Jane Roe.",
        "Acme Corp was dissolved in 1998.",
        "Acme Corp went public in the late 1990s.",
        "Acme Corp has 4,200 robots.",
        "Acme Corp has roughly 4,000 customers.",
        "Acme Corp has more than 4,000 offices.",
        "Acme Corp lost 2.4 billion dollars.",
        "Mount Kora was discovered in 1865.",
        "Mount Kora has 3,210 visitors.",
        "Mount Kora is the highest peak of the Alps.",
        "Hotel Azul has 84 employees.",
        "Hotel Azul opened 84 years ago.",
        "Blue Night was filmed in May 2014.",
        "Blue Night has about 118 scenes.",
        "Lisbon has more than 4,000 hospitals.",
        "Lisbon has over a million residents.",
        "Midnight Sun was filmed in 2014.",
        "Kora Hall was demolished in 1998.",
        "Kora Hall was photographed by Ida Voss.",
        "Kora Hall was sued by Ida Voss.",
    ],
)
def test_words_of_another_sense_do_not(guard: Guardrail, text: str) -> None:
    assert category(guard, text) is not Category.SUPPORTIVE
