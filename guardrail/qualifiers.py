"""Words right before a value that keep it from being told: *outside London*, *anything but a poet*.

What is set aside for something else is denied; what somebody failed, or only seemed, to be is left
open; and what lies south of a place need not lie in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.syntax import COMPLEMENTS
from guardrail.text.values import fold, word_set

if TYPE_CHECKING:
    from spacy.tokens import Token as ParsedToken

__all__ = ["is_mock", "is_outside", "is_set_aside"]

ASIDE = frozenset({("rather", "than"), ("instead", "of"), ("opposed", "to"), ("anything", "but")})
"""Two words that deny what follows them."""

PASSED_OVER = word_set("in at from to as by for on with a an the")
"""Words that may stand between those and a value: *rather than in Rome*."""

HARDLY = word_set("hardly scarcely barely")

MOCK = word_set(
    "failed fictional fictitious imaginary fake pretend aspiring wannabe supposed alleged purported"
)
"""Adjectives of somebody who is not, or may not be, what they are called."""

STOPPING = word_set("stop stops stopped cease ceases ceased")

BESIDE = word_set("outside near beyond nearby")
"""Prepositions of what lies elsewhere than in a place."""

DIRECTIONS = word_set(
    "north south east west northeast northwest southeast southwest northwards southwards outside"
)
"""Words before the *of* of what lies elsewhere, but for *in the north of London*."""

DISTANT = word_set("far away miles mile kilometres kilometers km hours")

CLOSE = word_set("close next adjacent")


def _before(value: ParsedToken, number: int) -> tuple[str, ...]:
    """The last words, in lower case, before a value and what specifies it."""
    doc, first = value.doc, value.left_edge.i
    start = value.sent.start
    while first > start and doc[first - 1].lower_ in ("the", "a", "an"):
        first -= 1
    return tuple(one.lower_ for one in doc[max(start, first - number) : first])


def is_set_aside(value: ParsedToken) -> bool:
    """Whether something else is told instead of a value: *rather than Berlin*, *hardly a poet*."""
    words = _before(value, 3)
    if words[-2:] in ASIDE or (words[-1:] and words[-1] in PASSED_OVER and words[:-1] in ASIDE):
        return True
    if not HARDLY.isdisjoint(words[-1:]) and value.dep_ in COMPLEMENTS:
        return True
    beside = {child.lower_ for child in value.children}
    return value.pos_ == "NOUN" and {"less", "than"} <= beside  # *less a poet than a painter*


def is_mock(value: ParsedToken) -> bool:
    """Whether a noun is told of somebody who never was, or is no longer, what it says.

    So is a *would-be painter*, and who *stopped being a painter*.
    """
    if any(child.dep_ == "amod" and child.lower_ in MOCK for child in value.children):
        return True
    doc, place = value.doc, value.i
    if place >= 3 and [one.lower_ for one in doc[place - 3 : place]] == ["would", "-", "be"]:
        return True
    verb = value.head
    return (
        value.dep_ in COMPLEMENTS
        and verb.lower_ == "being"
        and verb.dep_ == "xcomp"
        and verb.head.lower_ in STOPPING
        and not any(child.dep_ == "neg" for child in verb.head.children)
    )


def is_outside(place: ParsedToken) -> bool:
    """Whether words before a place tell what lies elsewhere: *far from London*, *near London*."""
    words = tuple(fold(word) for word in _before(place, 3))
    if not words:
        return False
    last, second, third = words[-1], words[-2:-1], words[-3:-2]
    if last in BESIDE:
        return True
    if last == "of" and second:
        return second[0] in DIRECTIONS and third != ("the",)
    if last == "from" and second:
        return second[0] in DISTANT
    return last == "to" and bool(second) and second[0] in CLOSE
