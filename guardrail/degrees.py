"""Degrees: what is told to be high, low or average, as *at moderate prices* and *highly rated*."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Set
from typing import TYPE_CHECKING, Final

from guardrail.naming import SentenceTokens, Span
from guardrail.syntax import COMPLEMENTS, SUBJECTS
from guardrail.types import Triple
from guardrail.values import UNITS, stem, tokenise, word_set
from guardrail.vocabulary import cues, property_words

if TYPE_CHECKING:
    from spacy.tokens import Token as ParsedToken

__all__ = [
    "attribute_of",
    "grades_another",
    "tells_degree",
    "told_against",
    "told_by_degree",
    "words_of",
]

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

LABELS: Final = (
    ({stem(word) for word in ("price", "prices", "cost", "costs")}, re.compile("price", re.I)),
    (
        {stem(word) for word in ("rating", "ratings", "review", "reviews")},
        re.compile(r"(customer|user|star|average|overall)_?ratings?$", re.I),
    ),
)
"""For each of them, stems by which properties are called so, and how other spellings end."""

CURRENCIES: Final = frozenset("$€£¥")

SCALE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:out of|of|/)\s*(\d+)(?:\s*stars?)?", re.IGNORECASE)
"""A rating on a scale: *4 out of 5*, *3/5 stars*."""

LEVELS: Final = (
    (0.4, word_set("low poor poorly bad terrible")),
    (0.7, word_set("average moderate moderately mediocre middling decent")),
    (1.0, word_set("high highly good great excellent outstanding superb top")),
)
"""Highest share of a scale, and the words for what is rated so."""

PRICE_LEVELS: Final = (
    (
        word_set("low lower cheap inexpensive affordable"),
        word_set("cheap cheaply inexpensive affordable affordably"),
    ),
    (
        word_set("moderate moderately average medium mid middling reasonable reasonably"),
        frozenset[str](),
    ),
    (word_set("high highly higher expensive"), word_set("expensive pricey costly")),
)
"""Degrees of a price, and the words that tell such a price by themselves."""

FILLING: Final = word_set("is are was were as of be being very quite rather customer customers by")
"""Words that may part a rating from its degree: *the rating is quite high*."""

NEAR: Final = 2
"""A degree stands at most this many words before what it grades: *high customer rating*."""


def tells_degree(word: ParsedToken) -> bool:
    """Whether a word tells a degree, or one hangs on it: *cheap*, *high-priced*, *prices*."""
    if word.lower_ in PRICED:
        return True
    if word.lower_ not in PRICE and word.lower_ not in RATING:
        return False
    head = word.head if word.dep_ == "compound" else word
    return any(
        one.lower_ in DEGREES or one.lower_ in UNITS
        for graded in (word, head)
        for one in _degrees(graded)
    )


def attribute_of(word: ParsedToken) -> frozenset[str]:
    """Stems of the words by which properties and values name what a word grades."""
    return next(stems for words, stems in ATTRIBUTES if word.lower_ in words)


def words_of(triple: Triple) -> Iterator[str]:
    """Yield the stems of the words by which a triple tells what it is about; *£20* is a price."""
    yield from cues(triple.property)
    for stems in attributes_of(triple.property):
        yield from stems
    for token in tokenise(triple.value):
        yield token.stem
    if CURRENCIES & set(triple.value):
        yield stem("price")


def told_by_degree(sentence: SentenceTokens, triple: Triple) -> tuple[Span, ...]:
    """Where a sentence tells a rating or price by another degree of its level.

    *Low rating* tells *1 out of 5*, and *pricey* tells a price range that is *high*.

    Args:
        sentence: The prepared sentence.
        triple: What the graph holds; any other property or value is told nowhere so.
    """
    told = attributes_of(triple.property)
    if ATTRIBUTES[0][1] in told:
        value = triple.value.strip().lower()
        degrees, alone = next((one for one in PRICE_LEVELS if value in one[0]), ((), ()))
        return _told_as(sentence, degrees, PRICE) + tuple(
            (token.start, token.end) for token in sentence.tokens if token.folded in alone
        )
    level = _level(triple)
    return () if level is None else _told_as(sentence, LEVELS[level][1], RATING)


def told_against(sentence: SentenceTokens, triple: Triple) -> tuple[Span, ...]:
    """Where a sentence tells the other end of a scale: *highly rated* for *1 out of 5*."""
    end = {0: -1, len(LEVELS) - 1: 0}.get(-1 if (level := _level(triple)) is None else level)
    return () if end is None else _told_as(sentence, LEVELS[end][1], RATING)


def grades_another(sentence: SentenceTokens, span: Span, label: str) -> bool:
    """Whether a degree is told of a price or rating that a property does not tell.

    Args:
        sentence: The prepared sentence.
        span: Where a value stands that is a degree.
        label: The property.
    """
    place = next((n for n, one in enumerate(sentence.tokens) if one.start == span[0]), None)
    if place is None or sentence.tokens[place].folded not in DEGREES:
        return False
    told = attributes_of(label)
    return bool(told) and any(
        stems not in told for words, stems in ATTRIBUTES if _grades(sentence, place, words)
    )


def attributes_of(label: str) -> list[frozenset[str]]:
    """The attributes of ``ATTRIBUTES`` that a property tells: that of *pricerange* is a price."""
    words = {stem(word) for word in property_words(label).split()}
    return [
        stems
        for (_, stems), (named, joined) in zip(ATTRIBUTES, LABELS, strict=True)
        if not named.isdisjoint(words) or joined.search(label)
    ]


def _level(triple: Triple) -> int | None:
    """Which of ``LEVELS`` a rating reaches; None for any other property or value."""
    if ATTRIBUTES[1][1] not in attributes_of(triple.property):
        return None
    value = triple.value.strip().lower()
    rating = SCALE.fullmatch(value)
    if rating is None or not float(rating[2]):
        return next((n for n, (_, words) in enumerate(LEVELS) if value in words), None)
    share = float(rating[1]) / float(rating[2])
    return next((n for n, (most, _) in enumerate(LEVELS) if share <= most), None)


def _told_as(
    sentence: SentenceTokens, degrees: Container[str], graded: Set[str]
) -> tuple[Span, ...]:
    return tuple(
        (token.start, token.end)
        for place, token in enumerate(sentence.tokens)
        if token.folded in degrees and _grades(sentence, place, graded)
    )


def _grades(sentence: SentenceTokens, place: int, graded: Set[str]) -> bool:
    """Whether a degree stands before a word for an attribute, or behind one."""
    tokens = sentence.tokens
    after = [one.folded for one in tokens[place + 1 : place + 1 + NEAR]]
    first = next((word for word in after if word in PRICE or word in RATING), None)
    if first is not None:
        return first in graded
    before = place - 1
    while before >= 0 and tokens[before].folded in FILLING:
        before -= 1
    return before >= 0 and tokens[before].folded in graded


def _degrees(word: ParsedToken) -> Iterator[ParsedToken]:
    """Yield the words that may tell the degree of a graded one."""
    for child in word.children:
        yield child
        if child.dep_ == "prep":  # *ratings of average*, *rated as average*
            yield from child.children
    if word.dep_ in SUBJECTS:
        yield from (one for one in word.head.children if one.dep_ in COMPLEMENTS)
    yield from word.doc[max(word.sent.start, word.i - NEAR) : word.i]
