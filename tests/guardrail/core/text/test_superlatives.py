"""Which end of which measure a word tells."""

import pytest

from guardrail.core.text.superlatives import superlative_at
from guardrail.core.text.words import tokenise


def read(text, word):
    tokens = tokenise(text)
    place = next(n for n, token in enumerate(tokens) if token.text == word)
    return superlative_at(tokens, place)


@pytest.mark.parametrize(
    ("text", "word", "end", "says_what"),
    [
        ("the cheapest bike", "cheapest", "least", True),
        ("the highest value", "highest", "greatest", False),
        ("the most expensive bike", "most", "greatest", True),
        ("the least expensive bike", "least", "least", True),
    ],
)
def test_a_superlative_has_an_end(text, word, end, says_what):
    found = read(text, word)
    assert (found.end, found.says_what) == (end, says_what)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("at least three", "least"),
        ("most of the bikes", "most"),
        ("the second cheapest", "cheapest"),
        ("a cheap bike", "cheap"),
    ],
)
def test_what_tells_no_end_is_none(text, word):
    assert read(text, word) is None
