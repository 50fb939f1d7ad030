"""Absences: left-over phrases of which no evidence speaks at all.

Beside much that the evidence holds, a judge of the whole sentence hardly minds *at moderate
prices* or *a pub*: the words are common. Where no triple tells a price, or what kind of thing it
is, they are facts without support, and so is a number that no triple has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from guardrail.degrees import ATTRIBUTES, DEGREES, PRICED, REACH, topics_of
from guardrail.leftovers import Leftover
from guardrail.matching import Match
from guardrail.phrases import PhraseKind
from guardrail.syntax import COMPLEMENTS, SUBJECTS, possessors
from guardrail.text.values import UNITS as NUMBER_WORDS
from guardrail.text.values import tokenise

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Token as ParsedToken

__all__ = ["with_absences"]

SUPERLATIVES: Final = frozenset({"JJS", "RBS"})
"""Tags of *highest* and *most*: that nothing surpasses something is a fact of its own."""

YEAR = 4
"""Figures of a year."""


def with_absences(left: Sequence[Leftover], doc: Doc, matches: Sequence[Match]) -> list[Leftover]:
    """Tell which left-over phrases no evidence speaks of: numbers, kinds of things, degrees.

    Args:
        left: The phrases that no accepted triple accounts for.
        doc: The parsed answer.
        matches: The triples that share a word with the sentence.
    """
    if all(one.kind in (PhraseKind.NAME, PhraseKind.DATE) for one in left):
        return list(left)
    triples = [match.triple for match in matches if match.subject != "foreign"]
    told: set[str] = set()
    topics: set[str] = set()
    for triple in triples:
        told |= _stems(triple.subject) | _stems(triple.property) | _stems(triple.value)
        topics |= topics_of(triple.property, triple.value)
    return [_seen(one, doc, told, topics) for one in left]


@lru_cache(maxsize=65_536)
def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokenise(text))


def _seen(phrase: Leftover, doc: Doc, told: Set[str], topics: Set[str]) -> Leftover:
    """A phrase with what it is that no evidence has."""
    words = {token.stem for token in tokenise(phrase.text)}
    if phrase.kind is PhraseKind.NUMBER:
        absent = told.isdisjoint(words) and not any(_ends_season(word, told) for word in words)
        return phrase._replace(certain=phrase.certain or absent)
    span = doc.char_span(phrase.start, phrase.end, alignment_mode="expand")
    if span is None or phrase.kind.hard:
        return phrase
    return phrase._replace(
        kind_noun=phrase.kind is PhraseKind.TERM
        and _tells_kind(span.root)
        and told.isdisjoint(words),
        graded=any(topics.isdisjoint(stems) for one in span for stems in _graded(one))
        or (any(one.tag_ in SUPERLATIVES for one in span) and told.isdisjoint(words)),
    )


def _graded(word: ParsedToken) -> Iterator[frozenset[str]]:
    """Yield the stems that name the price or rating of which a word tells a degree.

    *Cheap* does by itself, *priced* and *prices* where a degree stands with them.
    """
    for told in ATTRIBUTES:
        if word.lower_ not in told.words:
            continue
        head = word.head if word.dep_ == "compound" else word
        if word.lower_ in PRICED or any(
            one.lower_ in DEGREES or one.lower_ in NUMBER_WORDS
            for graded in (word, head)
            for one in _with_degree(graded)
        ):
            yield told.stems


def _with_degree(word: ParsedToken) -> Iterator[ParsedToken]:
    """Yield the words that may tell the degree of a graded one."""
    for child in word.children:
        yield child
        if child.dep_ == "prep":  # *ratings of average*, *rated as average*
            yield from child.children
    if word.dep_ in SUBJECTS:
        yield from (one for one in word.head.children if one.dep_ in COMPLEMENTS)
    yield from word.doc[max(0, word.i - REACH) : word.i]


def _ends_season(year: str, told: Set[str]) -> bool:
    """Whether a year is the second of two of which the evidence writes half: *2014–15*."""
    return (
        len(year) == YEAR and year.isdigit() and {str(int(year) - 1), f"{int(year) % 100}"} <= told
    )


def _tells_kind(noun: ParsedToken) -> bool:
    """Whether a noun, or the one that it specifies, says what kind of thing is spoken of.

    *X is a pub*, *X, a pub, serves*, *X pub serves* and *the pub there is X* all do.
    """
    while noun.dep_ == "compound" and noun.head.pos_ == "NOUN":
        noun = noun.head
    while noun.dep_ == "conj" and noun.head.pos_ in ("NOUN", "PROPN"):
        noun = noun.head
    if noun.dep_ in SUBJECTS and noun.head.pos_ == "AUX":
        return not any(possessors(noun))  # *the leader of Dublin is Ada* tells a tie
    if noun.dep_ in SUBJECTS:
        return True
    return noun.dep_ in ("attr", "appos", "oprd")
