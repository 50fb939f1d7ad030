"""Verbs of which the object is somebody else's, and words that set a value aside."""

import pytest

from guardrail.types import Triple
from tests.guardrail.test_attribution import Credulous, attribute
from tests.guardrail.test_stated import told

MARIE = "Marie Curie"
CHEMIST = (MARIE, "occupation", "chemist")
POST = (MARIE, "employer", "University of Paris")
STUDIES = (MARIE, "educated at", "University of Paris")
PRIZE = (MARIE, "award received", "Nobel Prize in Physics")
WARSAW = (MARIE, "place of birth", "Warsaw")
BERLIN = ("Germany", "capital", "Berlin")
FACTS = (CHEMIST, POST, STUDIES, PRIZE, WARSAW, BERLIN)

Fact = tuple[str, str, str]


def cited(text: str) -> set[Fact]:
    return told(text, *FACTS)


@pytest.mark.parametrize(
    "text",
    [
        "Marie Curie was a chemist.",
        "Marie Curie became a chemist.",
        "Marie Curie worked as a chemist.",
        "Marie Curie has the occupation chemist.",
        "Marie Curie, a chemist, hired Otto Lund.",
        "The chemist Marie Curie hired Otto Lund.",
    ],
)
def test_who_is_called_a_chemist_is_one(text: str) -> None:
    assert CHEMIST in cited(text)


@pytest.mark.parametrize(
    "text",
    [
        "Marie Curie hired a chemist.",
        "Marie Curie disliked chemists.",
        "Marie Curie hired a physicist and a chemist.",
        "Marie Curie was taught by a chemist.",
        "A chemist hired Marie Curie.",
        "Marie Curie, who met a chemist, was born in Rome.",
        "Marie Curie was hardly a chemist.",
        "Marie Curie was anything but a chemist.",
        "Marie Curie was a failed chemist.",
        "Marie Curie was a fictional chemist.",
        "Marie Curie was a would-be chemist.",
        "Marie Curie stopped being a chemist.",
        "Marie Curie was a poet rather than a chemist.",
        "Marie Curie was less a chemist than a poet.",
    ],
)
def test_who_had_to_do_with_chemists_or_only_seemed_one_is_none(text: str) -> None:
    assert CHEMIST not in cited(text)


def test_a_noun_for_persons_tells_no_field_of_whoever_met_them() -> None:
    fact = (MARIE, "field of work", "mathematics")
    assert told("Marie Curie hired a mathematician.", fact) == set()
    assert told("Marie Curie was a mathematician.", fact) == {fact}


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Marie Curie taught at the University of Paris.", {POST}),
        ("Marie Curie attended the University of Paris.", {STUDIES}),
        ("Marie Curie founded the University of Paris.", set()),
        ("Marie Curie sued the University of Paris.", set()),
        ("Marie Curie was expelled from the University of Paris.", set()),
    ],
)
def test_where_somebody_worked_or_studied_is_told_by_few_verbs(text: str, facts: set[Fact]) -> None:
    found = cited(text)
    assert facts <= found
    assert facts or not found


@pytest.mark.parametrize(
    ("verb", "had"),
    [
        ("received", True),
        ("won", True),
        ("shared", True),
        ("was awarded", True),
        ("was presented with", True),
        ("was honoured with", True),
        ("presented", False),
        ("was denied", False),
        ("lost", False),
        ("criticised", False),
    ],
)
def test_an_award_is_had_by_who_won_it(verb: str, had: bool) -> None:
    found = cited(f"Marie Curie {verb} the Nobel Prize in Physics.")
    assert found == ({PRIZE} if had else set())
    assert told("Marie Curie's work brought her the Nobel Prize in Physics.", PRIZE) == {PRIZE}


@pytest.mark.parametrize(
    ("where", "there"),
    [
        ("in Warsaw", True),
        ("in the north of Warsaw", True),
        ("outside Warsaw", False),
        ("just outside Warsaw", False),
        ("outside of Warsaw", False),
        ("near Warsaw", False),
        ("south of Warsaw", False),
        ("far from Warsaw", False),
        ("10 miles from Warsaw", False),
        ("close to Warsaw", False),
        ("in Passy instead of Warsaw", False),
        ("in Passy rather than in Warsaw", False),
    ],
)
def test_who_was_born_elsewhere_was_not_born_in_a_place(where: str, there: bool) -> None:
    assert cited(f"Marie Curie was born {where}.") == ({WARSAW} if there else set())


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("The capital of Germany is Berlin, not Paris.", True),
        ("Germany's capital is Berlin rather than Paris.", True),
        ("The capital of Germany is Paris, not Berlin.", False),
        ("Germany's capital is Paris, not Berlin.", False),
        ("Germany's capital is Paris rather than Berlin.", False),
        ("Germany's capital is Paris instead of Berlin.", False),
    ],
)
def test_a_name_set_aside_is_not_told_of_whatever(text: str, stated: bool) -> None:
    assert cited(text) == ({BERLIN} if stated else set())


def test_who_never_stopped_being_a_chemist_is_one() -> None:
    triple = Triple(subject=MARIE, property="occupation", value="chemist")
    (one,) = attribute(
        "Marie Curie never stopped being a chemist.", (triple,), Credulous()
    ).sentences
    assert one.citations == (triple.citation,)


def test_who_declared_herself_king_was_one_and_who_was_appointed_by_him_was_not() -> None:
    fact = (MARIE, "position held", "king")
    assert told("Marie Curie declared herself king.", fact) == {fact}
    assert told("Marie Curie was appointed governor by the king.", fact) == set()
