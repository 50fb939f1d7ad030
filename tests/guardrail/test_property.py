"""A value told under the words of another property of its subject is not supported."""

from collections.abc import Sequence

import pytest

from guardrail.attribution import AttributionRequest, Attributor
from guardrail.markers.grammar import parse
from guardrail.types import NLIScores, Sentence, Triple
from judges.base import Pair

FILM = (
    ("Inception", "director", "Christopher Nolan"),
    ("Inception", "cast member", "Leonardo DiCaprio"),
)
FIRM = (
    ("Apple", "founder", "Steve Jobs"),
    ("Apple", "chief executive officer", "Tim Cook"),
)
COUNTRY = (
    ("Spain", "LEADER_NAME", "Felipe VI"),
    ("Spain", "ETHNIC_GROUP", "Spaniards"),
    ("Spain", "LANGUAGE", "Spanish language"),
)
PERSON = (
    ("Alan Shepard", "BIRTH_PLACE", "New Hampshire"),
    ("Alan Shepard", "DEATH_PLACE", "California"),
)

PARENTS = (
    ("Anna Berg", "father", "Otto Berg"),
    ("Anna Berg", "mother", "Eva Lund"),
    ("Anna Berg", "residence", "Bergen"),
)
BRIDGE = (("Tyne Bridge", "opened by", "George Stone"), ("Tyne Bridge", "creator", "Ralph Mott"))


class Blind:
    """A judge that takes a value beside its subject for enough, as small ones do."""

    name = "blind"

    def warm_up(self) -> None:
        """Nothing to load."""

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        return [NLIScores(entailment=0.9, neutral=0.1, contradiction=0.0) for _ in pairs]


def first(text: str, facts: Sequence[tuple[str, str, str]]) -> Sentence:
    triples = tuple(Triple(subject=s, property=p, value=v) for s, p, v in facts)
    request = AttributionRequest(f"Tell me of {facts[0][0]}.", parse(text, triples), triples)
    (answer,), problems = Attributor(Blind(), None).attribute([request])
    assert problems == []
    return answer.sentences[0]


def cited(one: Sentence) -> set[str]:
    return {citation.property for citation in one.citations}


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Leonardo DiCaprio directed Inception.", FILM),
        ("Inception is a film directed by Leonardo DiCaprio.", FILM),
        ("Tim Cook founded Apple.", FIRM),
        ("The founder of Apple is Tim Cook.", FIRM),
        ("The death place of Alan Shepard is New Hampshire.", PERSON),
        ("The leader name of Spain is Spaniards.", COUNTRY),
        ("The leader name of Spain is Spanish language.", COUNTRY),
        ("Anna Berg was born to the mother Otto Berg.", PARENTS[:1]),
        ("Anna Berg was fathered by Eva Lund.", PARENTS[1:]),
        ("Anna Berg had Bergen as birthplace.", PARENTS),
        ("Anna Berg was laid to rest in Bergen.", PARENTS),
        ("Leonardo DiCaprio directed Inception.", FILM[1:]),
        ("Inception was written by Christopher Nolan.", FILM),
        ("Tyne Bridge was designed by George Stone.", BRIDGE),
        ("The headquarters of Apple is Tim Cook.", FIRM[1:]),
        ("Apple's parent company is Steve Jobs.", FIRM[:1]),
        ("Christopher Nolan is the distributor of Inception.", FILM),
        ("Inception has a budget of Christopher Nolan.", FILM),
    ],
)
def test_a_value_of_another_property_is_not_cited(
    text: str, facts: Sequence[tuple[str, str, str]]
) -> None:
    only = first(text, facts)
    assert cited(only) == set()
    assert only.na


@pytest.mark.parametrize(
    ("text", "facts", "properties"),
    [
        ("Christopher Nolan directed Inception.", FILM, {"director"}),
        ("Inception has Leonardo DiCaprio in it.", FILM, {"cast member"}),
        ("Steve Jobs founded Apple.", FIRM, {"founder"}),
        ("Tim Cook runs Apple.", FIRM, {"chief executive officer"}),
        ("Apple, run by Tim Cook, was founded in a garage.", FIRM, {"chief executive officer"}),
        (
            "Apple was founded by Steve Jobs and is run by Tim Cook.",
            FIRM,
            {"founder", "chief executive officer"},
        ),
        ("The birth place of Alan Shepard is New Hampshire.", PERSON, {"BIRTH_PLACE"}),
        ("The ethnic group of Spain is Spaniards.", COUNTRY, {"ETHNIC_GROUP"}),
        (
            "Her father was Otto Berg and her mother was Eva Lund.",
            PARENTS,
            {"father", "mother"},
        ),
        ("Anna Berg was born in 1900 and lived in Bergen.", PARENTS, {"residence"}),
        ("Tyne Bridge was designed by Ralph Mott.", BRIDGE, {"creator"}),
        ("The director of Inception is Christopher Nolan.", FILM, {"director"}),
        ("The boss of Apple is Tim Cook.", FIRM[1:], {"chief executive officer"}),
        ("The CEO of Apple is Tim Cook.", FIRM[1:], {"chief executive officer"}),
        ("Inception's director is Christopher Nolan.", FILM, {"director"}),
        ("One example of its cast is Leonardo DiCaprio in Inception.", FILM[1:], {"cast member"}),
        ("Inception was written and directed by Christopher Nolan.", FILM, {"director"}),
    ],
)
def test_a_value_is_cited_for_its_own_property_in_any_words(
    text: str, facts: Sequence[tuple[str, str, str]], properties: set[str]
) -> None:
    assert cited(first(text, facts)) == properties
