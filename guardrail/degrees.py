"""Degrees: what is told to be high, low or average, and whether the evidence speaks of it at all.

Beside much that the evidence holds, a judge of the whole sentence hardly minds *at moderate
prices*: the words are common. Where no triple tells a price they are a fact without support.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from guardrail.leftovers import Leftover
from guardrail.matching import Match
from guardrail.syntax import COMPLEMENTS, SUBJECTS
from guardrail.values import UNITS, stem, tokenise, word_set
from guardrail.vocabulary import cues

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Token as ParsedToken

__all__ = ["with_degrees"]

DEGREES: Final = word_set(
    "high higher highest highly low lower lowest moderate moderately average averagely medium mid "
    "middling good great excellent outstanding superb decent fair reasonable reasonably poor "
    "poorly bad terrible top"
)
"""Words for how much there is of an attribute."""

PRICED: Final = word_set(
    "cheap cheaply cheaper cheapest inexpensive affordable affordably expensive pricey costly "
    "overpriced"
)
"""Words that tell a price with its degree."""

PRICE: Final = word_set("price prices priced pricing cost costs") | PRICED
RATING: Final = word_set(
    "rating ratings rated rate rates review reviews reviewed star stars quality"
)

ATTRIBUTES: Final = (
    (PRICE, cues("price range") | {stem(word) for word in PRICE}),
    (RATING, cues("customer rating") | {stem(word) for word in RATING}),
)
"""Words that tell an attribute, and the stems of those by which properties and values name it."""

CURRENCIES: Final = frozenset("$€£¥")

NEAR: Final = 2
"""A degree stands at most this many words before what it grades: *high customer rating*."""


def with_degrees(left: Sequence[Leftover], doc: Doc, matches: Sequence[Match]) -> list[Leftover]:
    """Tell which left-over phrases grade something of which no evidence speaks.

    Args:
        left: The phrases that no accepted triple accounts for.
        doc: The parsed answer.
        matches: The triples that share a word with the sentence.
    """
    if all(one.kind.hard for one in left):
        return list(left)
    known = {word for match in matches if match.subject != "foreign" for word in _words(match)}
    return [
        one._replace(graded=True) if not one.kind.hard and _unheard(doc, one, known) else one
        for one in left
    ]


def _words(match: Match) -> Iterator[str]:
    """Stems of the words by which a triple tells what it is about."""
    triple = match.triple
    yield from cues(triple.property)
    for token in tokenise(triple.value):
        yield token.stem
    if CURRENCIES & set(triple.value):
        yield stem("price")


def _unheard(doc: Doc, phrase: Leftover, known: set[str]) -> bool:
    span = doc.char_span(phrase.start, phrase.end, alignment_mode="expand")
    return span is not None and any(
        known.isdisjoint(_attribute(token)) for token in span if _is_graded(token)
    )


def _attribute(token: ParsedToken) -> frozenset[str]:
    """Stems of the words that tell what a graded word is about."""
    return next(stems for words, stems in ATTRIBUTES if token.lower_ in words)


def _is_graded(token: ParsedToken) -> bool:
    """Whether a word tells a degree, or one hangs on it: *cheap*, *high-priced*, *prices*."""
    word = token.lower_
    if word in PRICED:
        return True
    return (word in PRICE or word in RATING) and any(
        one.lower_ in DEGREES or one.lower_ in UNITS for one in _degrees(token)
    )


def _degrees(token: ParsedToken) -> Iterator[ParsedToken]:
    """The words that may tell the degree of a graded one."""
    yield from token.children
    if token.dep_ in SUBJECTS:
        yield from (one for one in token.head.children if one.dep_ in COMPLEMENTS)
    sentence = token.doc
    yield from sentence[max(token.sent.start, token.i - NEAR) : token.i]
