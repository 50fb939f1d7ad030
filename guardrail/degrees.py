"""Degrees: prices and ratings told to be high, low or average, by their words alone.

*Highly rated* tells a rating of 5 out of 5 and speaks against one of 1 out of 5; *pricey* tells a
price range that is *high*; a rating that is *high* makes no price so.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache
from typing import Final, NamedTuple

from guardrail.naming import SentenceTokens, Span
from guardrail.text.values import stem, tokenise, word_set
from guardrail.types import Triple
from guardrail.vocabulary import cues, property_words

__all__ = [
    "ATTRIBUTES",
    "DEGREES",
    "PRICED",
    "Attribute",
    "attribute_of",
    "grades_another",
    "is_opposite",
    "told_by_degree",
    "topics_of",
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


class Attribute(NamedTuple):
    """What is told to be high or low.

    Attributes:
        words: Words for it.
        stems: Stems of the words by which properties and values name it.
        own: Stems of the words that a property's label for it has.
        beside: Those that may stand beside them there; any for None.
        joined: How labels are spelt that join the words.
    """

    words: frozenset[str]
    stems: frozenset[str]
    own: frozenset[str]
    beside: frozenset[str] | None
    joined: re.Pattern[str]


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


PRICE_WORDS: Final = word_set("price prices priced pricing cost costs") | PRICED
RATING_WORDS: Final = word_set("rating ratings rated rate rates review reviews reviewed star stars")

PRICE: Final = Attribute(
    words=PRICE_WORDS,
    stems=cues("price range") | frozenset(map(stem, PRICE_WORDS)),
    own=_stems("price prices cost costs"),
    beside=None,
    joined=re.compile("price", re.IGNORECASE),
)
RATING: Final = Attribute(
    words=RATING_WORDS,
    stems=cues("customer rating") | frozenset(map(stem, RATING_WORDS)),
    own=_stems("rating ratings review reviews"),
    beside=_stems("customer user guest star stars overall average aggregate value score review"),
    joined=re.compile("(customer|user|guest|star|average|overall)_?ratings?$", re.IGNORECASE),
)
ATTRIBUTES: Final = (PRICE, RATING)

GRADED: Final = PRICE_WORDS | RATING_WORDS

CURRENCIES: Final = frozenset("$€£¥")

SCALE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:out of|of|/)\s*(\d+)(?:\s*stars?)?", re.IGNORECASE)
"""A rating on a scale: *4 out of 5*, *3/5 stars*."""

LEVELS: Final = (
    (0.4, word_set("low poor poorly bad terrible")),
    (0.7, word_set("average moderate moderately mediocre middling decent")),
    (1.0, word_set("high highly good great excellent outstanding superb top")),
)
"""Highest share of a scale, and the words for what is rated so: on five stars two are few, three
the middle, and four many."""

PRICE_LEVELS: Final = (
    (
        word_set("low lower cheap inexpensive affordable"),
        word_set("cheap cheaply inexpensive affordable affordably"),
    ),
    (
        word_set("moderate moderately average medium mid middling reasonable reasonably"),
        frozenset[str](),
    ),
    (word_set("high highly higher expensive"), word_set("expensive pricey costly overpriced")),
)
"""Degrees of a price, and the words that tell such a price by themselves."""

FILLING: Final = word_set("is are was were as of be being very quite rather customer customers by")
"""Words that may part a rating from its degree: *the rating is quite high*."""

REACH: Final = 2
"""A degree stands at most this many words before what it grades: *high customer rating*."""

ASIDE: Final = 1
"""Signs, a blank or hyphen, between the words of one phrase; a comma makes it more."""


@lru_cache(maxsize=16_384)
def attribute_of(label: str) -> Attribute | None:
    """What a property tells of ``ATTRIBUTES``; *safety rating* is none, *pricerange* a price."""
    words = {stem(word) for word in property_words(label).split()}
    for one in ATTRIBUTES:
        named = not one.own.isdisjoint(words)
        if named and (one.beside is None or words <= one.own | one.beside):
            return one
        if one.joined.search(label):
            return one
    return None


@lru_cache(maxsize=65_536)
def topics_of(label: str, value: str) -> frozenset[str]:
    """Stems of the words by which a triple tells what it is about; *£20* is a price.

    Args:
        label: Its property.
        value: Its value.
    """
    told = attribute_of(label)
    words = cues(label) | {token.stem for token in tokenise(value)}
    if told is not None:
        words |= told.stems
    return words | {stem("price")} if CURRENCIES & set(value) else words


def told_by_degree(sentence: SentenceTokens, triple: Triple) -> tuple[Span, ...]:
    """Where a sentence tells a rating or price by another degree of its level, or the opposite.

    Args:
        sentence: The prepared sentence.
        triple: What the graph holds; any other property or value is told nowhere so.
    """
    told = attribute_of(triple.property)
    level = _level(triple, told)
    if told is None or level is None:
        return ()
    degrees = _degrees(told, level) | _degrees(told, _other_end(level))
    alone = _alone(told, level) | _alone(told, _other_end(level))
    return tuple(
        (token.start, token.end)
        for place, token in enumerate(sentence.tokens)
        if token.folded in alone
        or (token.folded in degrees and _grades(sentence, place, told.words))
    )


def is_opposite(word: str, triple: Triple) -> bool:
    """Whether a degree tells the other end of a rating's or price's scale.

    Args:
        word: A word at which ``told_by_degree`` found one.
        triple: What the graph holds.
    """
    told = attribute_of(triple.property)
    level = _level(triple, told)
    if told is None or level is None:
        return False
    other = _other_end(level)
    return word in _degrees(told, other) | _alone(told, other)


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
    own = attribute_of(label)
    return any(one is not own and _grades(sentence, place, one.words) for one in ATTRIBUTES)


def _level(triple: Triple, told: Attribute | None) -> int | None:
    """Which of the levels a rating or price has; None for any other property or value."""
    value = triple.value.strip().lower()
    if told is PRICE:
        return next((n for n, (words, _) in enumerate(PRICE_LEVELS) if value in words), None)
    if told is not RATING:
        return None
    rating = SCALE.fullmatch(value)
    if rating is None or not float(rating[2]):
        return next((n for n, (_, words) in enumerate(LEVELS) if value in words), None)
    share = float(rating[1]) / float(rating[2])
    return next((n for n, (most, _) in enumerate(LEVELS) if share <= most), None)


def _other_end(level: int) -> int | None:
    """The level opposite to the lowest or highest one."""
    return {0: len(LEVELS) - 1, len(LEVELS) - 1: 0}.get(level)


def _degrees(told: Attribute, level: int | None) -> frozenset[str]:
    """The words that tell a level beside a word for the attribute."""
    if level is None:
        return frozenset()
    return PRICE_LEVELS[level][0] if told is PRICE else LEVELS[level][1]


def _alone(told: Attribute, level: int | None) -> frozenset[str]:
    """The words that tell a level by themselves."""
    return PRICE_LEVELS[level][1] if told is PRICE and level is not None else frozenset()


def _grades(sentence: SentenceTokens, place: int, graded: Container[str]) -> bool:
    """Whether a degree stands before a word for an attribute, or behind one."""
    tokens = sentence.tokens
    for n in range(place + 1, min(place + 1 + REACH, len(tokens))):
        if tokens[n].start - tokens[n - 1].end > ASIDE:
            break
        if tokens[n].folded in GRADED:
            return tokens[n].folded in graded
    before = place - 1
    while before >= 0 and tokens[before].folded in FILLING:
        before -= 1
    return before >= 0 and tokens[before].folded in graded
