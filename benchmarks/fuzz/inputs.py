"""Draws of text and JSON that is almost right, and of what fills memory or time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

__all__ = [
    "ANY_TEXT",
    "ODD",
    "Target",
    "almost",
    "almost_json",
    "json_values",
    "odd_bodies",
    "repeated",
]

ANY_TEXT = st.text(st.characters(categories=None), max_size=200)
"""Text of all there is, halves of characters among it."""
ODD: tuple[Any, ...] = (
    None, True, 3, 1.5, "", "odd", "{", "\ud800", [], [3], [None], [[]], {}, {"a": 1}, [{}],
    {"id": []}, {"text": {}}, {"name": ["a"]},
)  # fmt: skip
"""Values of every kind of JSON."""
NUMBERS: tuple[Any, ...] = (
    10**400,
    -(10**400),
    1e308,
    float("inf"),
    float("nan"),
    -0.0,
    2**63,
    "9" * 400,
)
MOST_CHANGES = 6
MOST_CUT = 40


class Target(NamedTuple):
    """Something that reads what others wrote.

    Attributes:
        given: What it is given.
        run: Reads it; raises whatever is a fault of ours.
        of_size: Hostile inputs of about so many characters, by name.
    """

    given: SearchStrategy[Any]
    run: Callable[[Any], None]
    of_size: Callable[[int], Mapping[str, Any]]


@st.composite
def almost(draw: st.DrawFn, whole: Sequence[str], tokens: Sequence[str]) -> str:
    """A text that is right but for some changes.

    Args:
        draw: Hypothesis's own.
        whole: Texts that are right.
        tokens: What the format gives a meaning to.
    """
    text = draw(st.sampled_from(whole))
    for _ in range(draw(st.integers(0, MOST_CHANGES))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, MOST_CUT))
        put = draw(st.sampled_from(tokens) | st.text(st.characters(categories=None), max_size=5))
        times = draw(st.sampled_from((0, 1, 1, 2, 50)))
        text = text[:at] + put * times + text[at + cut :]
    return text


def json_values(keys: Sequence[str], words: Sequence[str] = ()) -> SearchStrategy[Any]:
    """Any JSON.

    Args:
        keys: Of its objects.
        words: Texts that the protocol gives a meaning to.
    """
    # Libraries built for speed take subnormal numbers for 0 in the whole of their process.
    numbers = st.integers() | st.floats(allow_subnormal=False)
    leaves = st.none() | st.booleans() | numbers | st.text(max_size=8)
    leaves |= st.sampled_from(NUMBERS)
    if words:
        leaves |= st.sampled_from(words)
    names = st.sampled_from(sorted(keys))
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
        max_leaves=20,
    )


@st.composite
def almost_json(draw: st.DrawFn, bodies: Sequence[Any], values: SearchStrategy[Any]) -> Any:
    """JSON that is right but for some of its values.

    Args:
        draw: Hypothesis's own.
        bodies: What is right.
        values: Replacements for some of its values.
    """
    body = deepcopy(draw(st.sampled_from(bodies)))
    for _ in range(draw(st.integers(0, 3))):
        places = list(_paths(body))
        if places:
            value = draw(st.sampled_from(ODD) | values)
            _put(body, draw(st.sampled_from(places)), deepcopy(value))  # others stay as they are
    return body


def odd_bodies(body: Any) -> Iterator[Any]:
    """A body, once for each of its values and each odd one in its place."""
    for path in _paths(body):
        for odd in ODD:
            changed = deepcopy(body)
            _put(changed, path, odd)
            yield changed


def repeated(tokens: Sequence[str], size: int, begin: str = "", end: str = "") -> Mapping[str, str]:
    """Each token again and again, until a text is as long as asked.

    Args:
        tokens: The tokens.
        size: Characters.
        begin: What stands before them.
        end: What stands behind.
    """
    return {token[:30]: begin + token * (size // len(token)) + end for token in tokens}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each value of a body stands, the body itself left out."""
    if not isinstance(value, dict | list):
        return
    for key, held in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        yield from _paths(held, (*path, key))


def _put(body: Any, path: tuple[Any, ...], value: Any) -> None:
    *outer, last = path
    for key in outer:
        body = body[key]
    body[last] = value
