"""Pronouns that may mean either of two persons: what bears either out is cited, none conflicts."""

import pytest

from guardrail.types import SpanKind, Triple
from judges.base import NLIJudge
from tests.guardrail.test_attribution import Contrary, Credulous, attribute

ANNA, CARL, EVA = "Anna Berg", "Carl Dahl", "Eva Dahl"
MARRIED = (ANNA, "spouse", CARL)
MOTHER = (ANNA, "child", EVA)
BERGEN = (ANNA, "place of birth", "Bergen")
YEAR = (ANNA, "date of birth", "1867-11-07")
OSLO = (CARL, "place of birth", "Oslo")
ROME = (EVA, "place of birth", "Rome")

Fact = tuple[str, str, str]


def last(
    text: str, facts: tuple[Fact, ...], judge: NLIJudge
) -> tuple[set[tuple[str, str, str]], list[str]]:
    """What the last sentence of an answer is cited for, and what of it is contradicted."""
    triples = tuple(Triple(subject=s, property=p, value=v) for s, p, v in facts)
    one = attribute(text, triples, judge).sentences[-1]
    cited = {(fact.entity, fact.property, fact.value) for fact in one.citations}
    return cited, [span.text for span in one.spans if span.kind is SpanKind.CONTRADICTED]


@pytest.mark.parametrize(
    ("text", "facts", "fact"),
    [
        ("Anna Berg married Carl Dahl. He was born in Oslo.", (MARRIED, BERGEN, OSLO), OSLO),
        ("Anna Berg married Carl Dahl. She was born in Bergen.", (MARRIED, BERGEN, OSLO), BERGEN),
        ("Anna Berg had a daughter, Eva Dahl. She was born in Rome.", (MOTHER, BERGEN, ROME), ROME),
        ("Anna Berg had a daughter, Eva Dahl. She grew up. She was born in Rome.",
         (MOTHER, BERGEN, ROME), ROME),
    ],
)  # fmt: skip
def test_either_of_two_persons_bears_a_pronoun_out(
    text: str, facts: tuple[Fact, ...], fact: Fact
) -> None:
    assert last(text, facts, Credulous()) == ({fact}, [])


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Anna Berg married Carl Dahl. He was born in Paris in 1900.", (MARRIED, BERGEN, OSLO)),
        ("Anna Berg married Carl Dahl. He was born in Paris in 1900.", (MARRIED, BERGEN)),
        ("Anna Berg married Carl Dahl, and he was born in Paris in 1900.", (MARRIED, BERGEN)),
        ("Anna Berg had a daughter, Eva Dahl. She was born in Paris in 1900.", (MOTHER, BERGEN)),
        ("Anna Berg had a daughter. She was born in Paris in 1900.", (BERGEN,)),
        ("Anna Berg met Otto Lund. He was born in Paris in 1900.", (BERGEN,)),
        ("Anna Berg lived. Her sister was ill. She was born in Paris in 1900.", (BERGEN,)),
    ],
)
def test_a_pronoun_of_two_persons_contradicts_neither(text: str, facts: tuple[Fact, ...]) -> None:
    assert last(text, (*facts, YEAR), Contrary())[1] == []
    for plain in ("Anna Berg lived. She was born in 1900.", "Anna Berg was born in 1900."):
        assert last(plain, (*facts, YEAR), Contrary())[1] == ["1900"]


def test_a_name_behind_a_doubtful_pronoun_is_contradicted() -> None:
    text = "Eva Dahl had a daughter. She met Anna Berg, who was born in 1900."
    assert last(text, (BERGEN, YEAR, ROME), Contrary())[1] == ["1900"]


def test_what_an_answer_calls_her_is_no_man() -> None:
    facts = (MARRIED, BERGEN, OSLO)
    before = "Anna Berg lived. She married Carl Dahl."
    assert last(f"{before} He was born in Oslo.", facts, Credulous()) == ({OSLO}, [])
    assert last(f"{before} He was born in Bergen.", facts, Credulous())[0] == set()
