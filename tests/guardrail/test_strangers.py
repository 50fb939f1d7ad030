"""Whom a passage speaks of, and which sentence of it is cited: with the shipped judge."""

import pytest

from guardrail import Guardrail, Passage
from guardrail.types import Category

BRIDGE = Passage(
    title="Sydney Harbour Bridge",
    text="The Sydney Harbour Bridge was opened on 19 March 1932 by Premier Jack Lang.",
)
KELLER = Passage(
    text="Anna Keller was born in Bonn in 1901. She taught chemistry in Ulm until 1935. "
    "Her brother Max Keller founded a brewery in Kiel in 1922."
)


@pytest.mark.parametrize(
    ("passage", "answer"),
    [
        (BRIDGE, "Tower Bridge was opened on 19 March 1932."),
        (KELLER, "Otto Keller was born in Bonn in 1901."),
        (KELLER, "Max Keller was born in Bonn."),
        (KELLER, "Anna Keller was born in Ulm."),
        (KELLER, "Anna Keller founded a brewery in Kiel."),
    ],
)
def test_what_is_told_of_another_is_not_cited(
    guard: Guardrail, passage: Passage, answer: str
) -> None:
    (sentence,) = guard.check(question="Is it so?", answer=answer, evidence=[passage]).sentences
    assert sentence.category is Category.IRRELEVANT
    assert not sentence.citations


@pytest.mark.parametrize(
    ("passage", "answer"),
    [
        (BRIDGE, "The Harbour Bridge opened in 1932."),
        (KELLER, "Anna Keller was born in Bonn in 1901."),
        (KELLER, "Keller taught chemistry until 1935."),
        (KELLER, "Max Keller founded a brewery in Kiel."),
    ],
)
def test_other_forms_of_a_name_are_no_strangers(
    guard: Guardrail, passage: Passage, answer: str
) -> None:
    (sentence,) = guard.check(question="Is it so?", answer=answer, evidence=[passage]).sentences
    assert sentence.category is Category.SUPPORTIVE
    assert sentence.citations


def test_a_passage_is_cited_by_the_sentence_that_tells_most(guard: Guardrail) -> None:
    life = Passage(
        id="life",
        text="Ada was a mathematician. She was born in London in 1815. She worked with Babbage.",
    )
    (sentence,) = guard.check(
        question="Who was Ada?", answer="Ada was born in London in 1815.", evidence=[life]
    ).sentences
    assert [one.value for one in sentence.citations] == ["She was born in London in 1815."]
