"""Nouns for relations and roles, and who they are said of."""

import pytest

from tests.guardrail.test_stated import told

ADA, BYRON, EVE, MARIE = "Ada Lovelace", "Lord Byron", "Ève Curie", "Marie Curie"
FATHER = (ADA, "father", BYRON)
CHILD = (BYRON, "child", ADA)
WIFE = ("Carl Dahl", "spouse", "Anna Berg")
MAN = ("Carl Dahl", "sex or gender", "male")
DAUGHTER = (MARIE, "child", EVE)
WOMAN = (EVE, "sex or gender", "female")

Fact = tuple[str, str, str]


@pytest.mark.parametrize(
    ("text", "facts", "stated"),
    [
        ("Ada Lovelace's father was Lord Byron.", (FATHER, CHILD), {FATHER, CHILD}),
        ("Ada Lovelace's mother was Lord Byron.", (FATHER, CHILD), set()),
        ("Ada Lovelace loved her mother Lord Byron.", (FATHER, CHILD), set()),
        ("Lord Byron was the mother of Ada Lovelace.", (FATHER, CHILD), set()),
        ("Carl Dahl was the husband of Anna Berg.", (WIFE, MAN), {WIFE}),
        ("Carl Dahl was the wife of Anna Berg.", (WIFE, MAN), set()),
        ("Anna Berg was the wife of Carl Dahl.", (WIFE, MAN), {WIFE}),
        ("Carl Dahl's wife was Anna Berg.", (WIFE, MAN), {WIFE}),
        ("Marie Curie's daughter was Ève Curie.", (DAUGHTER, WOMAN), {DAUGHTER}),
        ("Marie Curie's son was Ève Curie.", (DAUGHTER, WOMAN), set()),
        ("Marie Curie had a son, Ève Curie.", (DAUGHTER, WOMAN), set()),
        ("Marie Curie had a son, Ève Curie.", (DAUGHTER,), {DAUGHTER}),
    ],
)
def test_a_noun_for_the_other_gender_tells_no_tie(
    text: str, facts: tuple[Fact, ...], stated: set[Fact]
) -> None:
    assert told(text, *facts) == stated


ENGINEER = ("Anna Berg", "occupation", "engineer")
POET = ("Carl Dahl", "occupation", "poet")
MARRIED = ("Anna Berg", "spouse", "Carl Dahl")


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Anna Berg, whose husband was an engineer, lived in Bergen.", set()),
        ("Carl Dahl, whose wife was a poet, lived in Bergen.", set()),
        ("Anna Berg, who was an engineer, lived in Bergen.", {ENGINEER}),
        ("The poet Anna Berg married Carl Dahl.", {MARRIED}),
        ("The engineer Anna Berg lived in Bergen.", {ENGINEER}),
        ("The poet Anna Berg met Carl Dahl.", set()),
        ("The poet Carl Dahl met Anna Berg.", {POET}),
        ("Anna Berg met the poet Carl Dahl.", {POET}),
        ("Anna Berg married the engineer Carl Dahl.", {MARRIED}),
    ],
)
def test_what_somebody_is_called_is_told_of_who_bears_it(text: str, stated: set[Fact]) -> None:
    assert told(text, ENGINEER, POET, MARRIED) == stated
