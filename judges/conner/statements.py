"""Sentences that the evidence contains word for word with the same meaning."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache

from guardrail.core.text.dates import calendar_words
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.sentences import split_sentences

__all__ = ["refers_back", "stated"]

WORD = re.compile(r"[^\W_]+")


def stated(sentences: Sequence[str], evidence: Sequence[str]) -> list[str | None]:
    """For each of m sentences the first piece of evidence that states it, or None.

    A piece states its own sentences, whatever the spacing, but not a part of one, which "it is
    false that …" may precede. A sentence that refers back is stated only if the evidence also
    states the sentence before it, directly before it: *He was born in 1950* may be about someone
    else. A passage may be cut into consecutive pieces.
    """
    found: list[str | None] = []
    text, places = "", frozenset[int]()
    for sentence in map(_spaced, sentences):
        where = {place for place, piece in enumerate(evidence) if sentence in _statements(piece)}
        if refers_back(sentence):
            after = {place for place in places if (text, sentence) in _neighbours(evidence[place])}
            where &= after | {
                place + 1
                for place in places
                if _parts(evidence[place])[-1:] == (text,)
                and place + 1 < len(evidence)
                and _parts(evidence[place + 1])[:1] == (sentence,)
            }
        found.append(evidence[min(where)] if where else None)
        text, places = sentence, frozenset(where)
    return found


def refers_back(sentence: str) -> bool:
    """True if a sentence seems to be about something that only the text before it names.

    It opens with a demonstrative, has a personal pronoun before any name, or has no name and
    opens with "the" and a common noun. A name is a capitalised word that is not the first.
    """
    pointers = lexicon_set("function_words", "pointers")
    pronouns = lexicon_set("function_words", "third_persons") - pointers
    nameless = calendar_words() | lexicon_set("function_words", "speakers")
    connectives = lexicon_set("function_words", "connectives")
    words = WORD.findall(sentence)
    folded = [word.casefold() for word in words]
    names = [
        place
        for place, word in enumerate(words)
        if place and word[0].isupper() and folded[place] not in nameless
    ]
    leading = folded[: names[0]] if names else folded
    if not pronouns.isdisjoint(leading):
        return True
    opening = next((place for place, item in enumerate(folded) if item not in connectives), None)
    if opening is None:
        return False
    article = folded[opening] == "the"
    if article and not names:
        return True
    return any(item in pointers for item in folded[opening : opening + 1 + article])


def _spaced(text: str) -> str:
    return " ".join(text.split())


@lru_cache(maxsize=256)
def _parts(text: str) -> tuple[str, ...]:
    """The sentences of a text in order."""
    return tuple(_spaced(stretch.text) for stretch in split_sentences(text))


@lru_cache(maxsize=256)
def _statements(text: str) -> frozenset[str]:
    """The sentences of a text, and the text itself."""
    return frozenset((_spaced(text), *_parts(text))) - {""}


@lru_cache(maxsize=256)
def _neighbours(text: str) -> frozenset[tuple[str, str]]:
    """The sentences of a text with those after them."""
    parts = _parts(text)
    return frozenset(itertools.pairwise(parts))
