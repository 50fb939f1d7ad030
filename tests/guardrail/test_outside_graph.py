"""Persons whom the graph knows only as a value of others' facts."""

import pytest

from guardrail import Category, Guardrail, SpanKind


@pytest.fixture(scope="module")
def guard():
    with Guardrail() as guard:
        yield guard


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where was Marie Curie born?", "She was born in Warsaw."),
        ("When did Marie Curie die?", "She died in 2007 in New York City."),
        ("When was Johann Sebastian Bach born?", "He was born in 1685."),
    ],
)
def test_a_pronoun_does_not_stand_for_a_relative_whom_the_graph_knows(guard, question, answer):
    (sentence,) = guard.check(question=question, answer=answer).sentences
    assert sentence.category is Category.IRRELEVANT
    assert not any(span.kind is SpanKind.CONTRADICTED for span in sentence.spans)


def test_what_others_facts_tell_of_them_is_cited(guard):
    told = "She was the mother of Ève Curie."
    (sentence,) = guard.check(question="Who was Marie Curie?", answer=told).sentences
    assert [(one.property, one.value) for one in sentence.citations] == [("mother", "Marie Curie")]
