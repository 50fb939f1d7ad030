"""Factual phrases: the parts of a sentence that a fact must stand behind.

Names, dates and numbers are hard facts. Terms (roles, occupations, kinds, qualities) and
relations (verbs with an object) are soft: prose wraps facts in words that state nothing new, so
they weigh less when support is sought for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from guardrail.text.sentences import Stretch
from guardrail.text.tagging import load_english, run_pipeline
from guardrail.text.values import find_dates, tokenise, word_set
from guardrail.vocabulary import STOP_WORDS

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as ParsedSpan
    from spacy.tokens import Token as ParsedToken

__all__ = ["Phrase", "PhraseKind", "factual_phrases", "parse"]

VALUE_TYPES = frozenset({"DATE", "TIME", "CARDINAL", "ORDINAL", "QUANTITY", "MONEY", "PERCENT"})
"""Entity types of the tagger that are no names."""

LIGHT_TERMS = word_set(
    "who name names person people man woman life time times year years day days way thing things "
    "part parts role number information question answer example fact facts place case result "
    "member lot kind kinds type types sort sorts series group world century age evidence knowledge "
    "graph list "
    "following first last known many several various other new early late great famous notable "
    "renowned important significant such same more most best popular prominent located based full "
    "own certain different main major small large called named due well also however"
)
"""Nouns and adjectives that state nothing a graph could hold."""

LIGHT_VERBS = word_set(
    "be have do know call name become make take give get go come include see say state find use "
    "show tell provide consider remember regard remain continue begin start feature describe note "
    "mention offer serve locate base hold contain belong can could may might will would shall "
    "should must let appear seem help need want follow allow be's 's is was were are been being "
    "has had did does known called named remembered regarded became made took gave got went came "
    "includes included made saw says said served serves located based held belongs contains"
)

ROLES = word_set(
    "lord mayor president king queen prince princess emperor empress pope minister prime governor "
    "chancellor duke duchess count countess baron sir dame lady professor doctor captain general "
    "colonel major senator judge bishop archbishop cardinal ceo director chairman manager coach"
)
"""Titles written in capitals are roles, not names, when no name is with them."""

QUOTED = re.compile(r"[\"“”]([^\"“”\n]{2,120})[\"“”]")

LINK = re.compile(r"(?<=\])\([^\s()]*\)|(?:https?://|www\.)[^\s()\[\]]+")
"""Where a link leads: its words state nothing."""

NO_PROSE = re.compile(r"[^\w\s]{20,}|\S{400,}")
"""Runs of signs, and words, longer than any in prose; a URL stays below."""

FIGURES = re.compile(r"[+\-−–]?[.,]?\d")
"""How a number in figures begins: *12*, *-97.75*, *+1.03*, *.5*."""

EMPHASIS = re.compile(r"(?<!\w)[*_~`]{1,3}(?=\w)|(?<=\w)[*_~`]{1,3}(?!\w)")
"""Marks before and behind emphasised words."""

LEMMAS = "lemmatizer"
"""The part of the pipeline that nothing here reads."""


class PhraseKind(StrEnum):
    """What a phrase tells."""

    NAME = "name"
    DATE = "date"
    NUMBER = "number"
    TERM = "term"
    QUALITY = "quality"
    RELATION = "relation"

    @property
    def hard(self) -> bool:
        """Whether the phrase is a fact on its own, whatever words surround it."""
        return self in (PhraseKind.NAME, PhraseKind.DATE, PhraseKind.NUMBER)


class Phrase(NamedTuple):
    """A factual phrase, with its place in the text that was parsed."""

    text: str
    start: int
    end: int
    kind: PhraseKind


def parse(texts: Sequence[str], *, names: bool = True) -> list[Doc]:
    """Tag and parse n texts in one batch; the pipeline is loaded once.

    Marks of emphasis and what is no prose are blanked before, offsets kept: the tokeniser's time
    grows with the square of a run of signs without a space.

    Args:
        texts: The texts.
        names: Whether names are recognised as well; to leave that out is faster.
    """
    if not texts:
        return []
    skipped = [] if names else ["ner"]
    clean = [EMPHASIS.sub(_blank, NO_PROSE.sub(_blank, text)) for text in texts]
    return run_pipeline(load_english(LEMMAS), clean, disable=skipped)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def factual_phrases(doc: Doc, stretch: Stretch) -> list[Phrase]:
    """The factual phrases of one sentence, in order, not overlapping.

    Args:
        doc: The parsed text; only the sentence's part of it is read.
        stretch: The sentence.
    """
    text, start, end = stretch
    span = doc.char_span(start, end, alignment_mode="expand")
    if span is None:
        return []
    taken = bytearray(end - start)
    for link in LINK.finditer(text):
        taken[link.start() : link.end()] = b"\1" * len(link.group())
    phrases: list[Phrase] = []

    def add(first: int, last: int, kind: PhraseKind) -> None:
        first, last = max(first, start), min(last, end)
        if first < last and not any(taken[first - start : last - start]):
            taken[first - start : last - start] = b"\1" * (last - first)
            phrases.append(Phrase(text[first - start : last - start], first, last, kind))

    for date in find_dates(text, start):
        add(date.start, date.end, PhraseKind.DATE)
    for match in QUOTED.finditer(text):
        if match.group(1)[0].isupper() and len(match.group(1).split()) <= 12:
            add(start + match.start(1), start + match.end(1), PhraseKind.NAME)
    for entity in _entities(span):
        if entity[0].ent_type_ not in VALUE_TYPES:
            named = entity[1:] if entity[0].lower_ in STOP_WORDS and len(entity) > 1 else entity
            title = all(token.lower_ in ROLES for token in named)
            add(
                named.start_char,
                named.end_char,
                PhraseKind.TERM if title else PhraseKind.NAME,
            )
    for first, last in _proper_runs(list(span)):
        words = tokenise(text[max(0, first - start) : last - start])
        title = all(word.folded in ROLES for word in words)
        add(first, last, PhraseKind.TERM if title else PhraseKind.NAME)
    for token in span:
        kind = _kind(token)
        if kind is not None:
            add(token.idx, token.idx + len(token.text), kind)
    return sorted(phrases, key=lambda phrase: phrase.start)


def _entities(sentence: ParsedSpan) -> Iterator[ParsedSpan]:
    """The named entities of a sentence; spaCy's own property reads those of the whole text."""
    first: int | None = None
    for place, token in enumerate(sentence):
        if first is not None and token.ent_iob_ != "I":
            yield sentence[first:place]
            first = None
        if token.ent_iob_ == "B":
            first = place
    if first is not None:
        yield sentence[first:]


def _proper_runs(tokens: Sequence[ParsedToken]) -> Iterator[tuple[int, int]]:
    run: list[ParsedToken] = []
    for token in [*tokens, None]:
        if token is not None and token.pos_ == "PROPN" and token.text[:1].isalnum():
            run.append(token)
            continue
        if run:
            yield run[0].idx, run[-1].idx + len(run[-1].text)
        run = []


def _kind(token: ParsedToken) -> PhraseKind | None:
    word = token.lower_
    if token.is_punct or token.is_space or word in STOP_WORDS:
        return None
    figures = FIGURES.match(token.text) is not None
    if token.pos_ == "NUM" or figures:
        if word == "one":
            return None
        compound = token.doc[token.i + 1 : token.i + 2].text == "-"  # a *five*-star hotel
        return PhraseKind.NUMBER if figures or compound else PhraseKind.QUALITY
    if len(word) < 3 or not word[0].isalpha():
        return None
    if token.pos_ == "NOUN":
        return None if word in LIGHT_TERMS else PhraseKind.TERM
    if token.pos_ == "ADJ":
        return None if word in LIGHT_TERMS else PhraseKind.QUALITY
    if token.pos_ == "VERB" and word not in LIGHT_VERBS:
        return PhraseKind.RELATION
    return None
