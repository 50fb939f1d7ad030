"""Citations in a host's text: three styles, offsets into what is returned."""

import json

import pytest

from chains.rendering import MarkerStyle, details, render
from guardrail import STRICT
from tests.chains.conftest import ANSWER, CANARY, QUESTION

WRITER = "[Q47152, occupation: writer]"
MOTHER = "[Q47152, mother: Mary Wollstonecraft]"
NOTES = "[1] Mary Shelley, occupation: writer  \n[2] Mary Shelley, mother: Mary Wollstonecraft"


@pytest.fixture(scope="module")
def answer(guard):
    return guard.check(question=QUESTION, answer=ANSWER, policy=STRICT)


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (
            MarkerStyle.KALMA,
            f"Mary Shelley was a writer {WRITER}. Her mother was Mary Wollstonecraft {MOTHER}.",
        ),
        (
            MarkerStyle.FOOTNOTES,
            f"Mary Shelley was a writer [1]. Her mother was Mary Wollstonecraft [2].\n\n{NOTES}",
        ),
        (
            MarkerStyle.NONE,
            "Mary Shelley was a writer. Her mother was Mary Wollstonecraft.",
        ),
    ],
)
def test_styles(answer, style, expected):
    rendition = render(answer, style)
    assert rendition.text == expected
    assert [rendition.text[citation.start : citation.end] for citation in rendition.citations] == [
        "writer",
        "Mary Wollstonecraft",
    ]


def test_details_are_json_without_what_was_removed(answer):
    [removed] = answer.removed
    assert CANARY in removed.text
    text = json.dumps(details(answer))
    assert CANARY not in text
    assert json.loads(text)["action"] == "filter"


def test_details_of_an_answer_left_whole_say_why(guard):
    kept = guard.check(question=QUESTION, answer="She was born in Peru.", policy="annotate")
    assert "Peru" in details(kept)["reasons"][0]
