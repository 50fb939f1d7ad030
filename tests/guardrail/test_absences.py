"""Left-over phrases of which no evidence speaks at all."""

import pytest

from guardrail.absences import with_absences
from guardrail.leftovers import Leftover
from guardrail.matching import EvidenceIndex, Match
from guardrail.phrases import PhraseKind, parse
from guardrail.types import Triple


def seen(text: str, phrase: str, kind: PhraseKind, *triples: Triple) -> Leftover:
    (doc,) = parse([text])
    start = text.index(phrase)
    matches = [
        Match(triple, number, 0.0, (), None, (), "explicit", ())
        for number, triple in enumerate(EvidenceIndex(triples).triples)
    ]
    left = Leftover(phrase, start, start + len(phrase), kind)
    (found,) = with_absences([left], doc, matches)
    return found


def fact(label: str, value: str) -> Triple:
    return Triple(subject="Loft", property=label, value=value)


@pytest.mark.parametrize(
    ("text", "phrase", "tells"),
    [
        ("Loft is a pub by the river.", "pub", True),
        ("Loft, a pub, serves fish.", "pub", True),
        ("Loft pub serves fish.", "pub", True),
        ("Loft is a coffee shop.", "coffee", True),
        ("The pub by the river is Loft.", "pub", True),
        ("The owner of the house is Loft.", "owner", False),
        ("Loft stands near a pub.", "pub", False),
    ],
)
def test_a_noun_tells_what_kind_of_thing_something_is(text: str, phrase: str, tells: bool) -> None:
    assert seen(text, phrase, PhraseKind.TERM, fact("food", "fish")).kind_noun is tells


def test_a_kind_that_the_evidence_has_is_not_absent() -> None:
    found = seen("Loft is a pub.", "pub", PhraseKind.TERM, fact("type", "pub"))
    assert not found.kind_noun


@pytest.mark.parametrize(
    ("value", "lacks"),
    [("4 rooms", True), ("12 rooms", False), ("twelve", False)],
)
def test_a_number_of_no_evidence_lacks_support_for_certain(value: str, lacks: bool) -> None:
    found = seen("Loft has 12 rooms.", "12", PhraseKind.NUMBER, fact("rooms", value))
    assert found.certain is lacks


def test_a_season_holds_both_of_its_years() -> None:
    held = fact("season", "2014–15 Lega Pro")
    text = "Loft played the 2014-2015 season."
    assert not seen(text, "2015", PhraseKind.NUMBER, held).certain
    assert seen("Loft played in the 2016 season.", "2016", PhraseKind.NUMBER, held).certain


def test_names_and_dates_are_left_as_they_are() -> None:
    left = Leftover("Rome", 0, 4, PhraseKind.NAME)
    (doc,) = parse(["Rome was first."])
    assert with_absences([left], doc, []) == [left]
