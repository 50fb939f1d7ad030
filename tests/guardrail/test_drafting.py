"""Sentences on their way: what is looked for in them, and how long that takes."""

import time

import pytest

from guardrail.attribution import AttributionRequest
from guardrail.drafting import Draft, drafts_of
from guardrail.markers.grammar import parse
from guardrail.phrases import parse as parsed
from guardrail.types import Triple

MARIE = "Marie Curie"
TRIPLES = (
    Triple(subject=MARIE, property="place of birth", value="Warsaw"),
    Triple(subject=MARIE, property="date of birth", value="1867-11-07"),
)


def drafts(answer: str) -> tuple[list[Draft], float]:
    """The sentences of an answer, and the least of three times that they took, in seconds."""
    request = AttributionRequest(f"Who was {MARIE}?", parse(answer), TRIPLES)
    (doc,) = parsed([answer])
    spent = []
    for _ in range(3):
        start = time.thread_time()
        found = drafts_of(0, request, doc)
        spent.append(time.thread_time() - start)
    return found, min(spent)


@pytest.mark.parametrize("line", ["a b\n", "```\n", "b, "])
def test_time_grows_with_the_answer_not_with_its_square(line: str) -> None:
    end = f" {MARIE} was born in Warsaw."
    few, short = drafts(line * 100 + end)
    many, long = drafts(line * 400 + end)
    assert any(one.matches for one in few)
    assert any(one.matches for one in many)
    assert long < 8 * short


def test_nothing_is_looked_for_where_nothing_is_claimed() -> None:
    (asked, told), _ = drafts(f"Was {MARIE} born in Warsaw? {MARIE} was born in Warsaw.")
    assert not asked.claim
    assert asked.matches == ()
    assert told.matches
