"""What a window of a passage holds of a sentence: each phrase in any written form, and its role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from guardrail.naming import NEGATIONS, SentenceTokens, Span, name_of, names_in, runs
from guardrail.occurrences import find_value
from guardrail.phrases import Phrase, PhraseKind
from guardrail.roles import Role, displaced, governor, role, stem_of, swapped
from guardrail.syntax import is_main_subject
from guardrail.text.values import (
    SCALES,
    Agreement,
    Date,
    Token,
    agreement,
    find_dates,
    number_of,
    same_number,
    tokenise,
    word_set,
)
from guardrail.types import Triple
from guardrail.vocabulary import STOP_WORDS

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as ParsedSpan
    from spacy.tokens import Token as ParsedToken

__all__ = [
    "Holding",
    "Reading",
    "Standing",
    "differs",
    "head_of",
    "holdings",
    "is_figure",
    "knows",
    "lacking",
    "main_subject",
    "may_differ",
    "tells_others",
]

SCALE_TOKENS = 3
"""Most words of a number in a window, as in *3.5 hundred thousand*."""


NEAR = 60
"""Characters within which a date or number may belong to a word."""

FAR = float("inf")

COMPARING = word_set(
    "more less fewer over under above below than least most up nearly almost before after until by "
    "since between from about around approximately roughly some circa"
)
"""Words before a number or date that is not told as such."""

TURN_WORDS = 8
"""Most words between a subject and an object that may have changed their parts."""

BACKWARDS = 3
"""How many times nearer a date behind its verb is taken to be than one before it."""


class Standing(StrEnum):
    """How a phrase stands in a window.

    ``astray`` is told of something else there, or denied; ``turned`` has changed parts with the
    sentence's subject; ``named`` is the subject, which the passage names outside the window.
    """

    HELD = "held"
    NAMED = "named"
    MISSING = "missing"
    ASTRAY = "astray"
    TURNED = "turned"


class Holding(NamedTuple):
    """A phrase of a sentence, its head word there, and how it stands in a window."""

    phrase: Phrase
    head: ParsedToken | None
    standing: Standing


class Reading:
    """A window read closely.

    Args:
        doc: The parsed window.
        known: Stems of all words of its passage: a window may call by a pronoun, or by a noun,
            whom the passage names before.
    """

    def __init__(self, doc: Doc, known: Set[str]) -> None:
        self.doc = doc
        self.known = known

    @cached_property
    def tokens(self) -> SentenceTokens:
        """Its words and dates."""
        return SentenceTokens.of(self.doc.text, 0)


def holdings(
    span: ParsedSpan, phrases: Sequence[Phrase], told: SentenceTokens, window: Reading
) -> list[Holding]:
    """Look for the phrases of a sentence in a window.

    Args:
        span: The sentence in the parsed answer.
        phrases: The n factual phrases of the sentence.
        told: The sentence, prepared.
        window: The window.

    Returns:
        n holdings, in order.
    """
    stems = window.tokens.by_stem.keys()
    found = []
    for phrase in phrases:
        places = _places(window.tokens, phrase, told)
        head = head_of(span, (phrase.start, phrase.end))
        standing = Standing.HELD if places else Standing.MISSING
        subject = main_subject(head)
        if head is not None and places and subject is None:
            stated = [one for one in _heads(window, places) if not _denied(one)]
            part = role(head, stated, stems, window.known) if stated else Role.OTHER
            if part is not Role.SAME:
                standing = Standing.TURNED if part is Role.TURNED else Standing.ASTRAY
        elif not places and subject is not None and knows(window.known, phrase):
            standing = Standing.NAMED
        found.append(Holding(phrase, head, standing))
    return found


def may_differ(
    span: ParsedSpan,
    phrases: Sequence[Phrase],
    told: SentenceTokens,
    window: SentenceTokens,
    known: Set[str],
) -> bool:
    """Whether a window that has a sentence's words may tell them of each other otherwise.

    It may where a date or number besides stands as near to the word that the sentence's own hangs
    on, where only the rest of the passage, of whose words ``known`` has stems, has that word, and
    where names stand in another order or in another voice. Only then is the window worth parsing
    for ``differs``.
    """
    if told.negated:
        return False
    if _may_turn(span, phrases, told, window):
        return True
    rivals = _rivals(told, window)
    for phrase in phrases:
        head = head_of(span, (phrase.start, phrase.end)) if is_figure(phrase) else None
        word = governor(head) if head is not None else None
        if word is None:
            continue
        words = [window.tokens[place] for place in window.by_stem.get(word, ())]
        places = _places(window, phrase, told)
        if places and not words and word in known:
            return True
        if not places and _compared(phrase, told):
            continue
        near = min(_distance(words, places), NEAR)
        if _distance(words, rivals) <= near:
            return True
    return False


def _may_turn(
    span: ParsedSpan, phrases: Sequence[Phrase], told: SentenceTokens, window: SentenceTokens
) -> bool:
    """Whether a window has subject and verb, or subject and another name, the other way round."""
    heads = [
        (phrase, head_of(span, (phrase.start, phrase.end)))
        for phrase in phrases
        if phrase.kind is PhraseKind.NAME
    ]
    others = [phrase for phrase, head in heads if main_subject(head) is None]
    for phrase, head in heads:
        subject = main_subject(head)
        if subject is None:
            continue
        names = names_in(window, phrase.text)
        does = stem_of(subject.head) if subject.head.pos_ == "VERB" else ""
        verbs = [window.tokens[place] for place in window.by_stem.get(does, ())]
        if any(verb.end < start for start, _ in names for verb in verbs):
            return True
        for other in others:
            straight = (phrase.start < other.start) is ("by" not in told.by_folded)
            for first in names:
                for second in names_in(window, other.text):
                    words = _between(window, first, second)
                    same = (first < second) is ("by" not in words)
                    if 0 < len(words) <= TURN_WORDS and same is not straight:
                        return True
    return False


def _between(window: SentenceTokens, one: Span, other: Span) -> list[str]:
    start, end = min(one[1], other[1]), max(one[0], other[0])
    return [word.folded for word in window.tokens if start <= word.start and word.end <= end]


def differs(
    span: ParsedSpan, phrases: Sequence[Phrase], told: SentenceTokens, window: Reading
) -> bool:
    """Whether a window tells a name, date or number of a sentence of something else for sure."""
    rivals = _heads(window, _rivals(told, window.tokens))
    stems = told.by_stem.keys()
    elsewhere = window.known - window.tokens.by_stem.keys()
    for phrase in phrases:
        head = head_of(span, (phrase.start, phrase.end))
        if head is None or not (phrase.kind is PhraseKind.NAME or is_figure(phrase)):
            continue
        heads = _heads(window, _places(window.tokens, phrase, told))
        if not is_figure(phrase):
            told_otherwise = swapped(head, heads, (), stems)
        elif heads:
            told_otherwise = swapped(head, heads, rivals, stems, elsewhere)
        else:
            told_otherwise = not _compared(phrase, told) and displaced(head, rivals)
        if told_otherwise:
            return True
    return False


def _compared(phrase: Phrase, told: SentenceTokens) -> bool:
    """Whether a number or date only bounds what a sentence tells: *more than 5*, *until 1950*."""
    before = [one.folded for one in told.tokens if one.end <= phrase.start]
    return not COMPARING.isdisjoint(before[-3:])


def _heads(window: Reading, places: Sequence[Span]) -> list[ParsedToken]:
    return [one for place in places if (one := head_of(window.doc, place)) is not None]


def _rivals(told: SentenceTokens, window: SentenceTokens) -> list[Span]:
    """Where dates and numbers stand in a window that its sentence does not tell."""
    numbers = {number for number, _ in _numbers(told)}
    dates = [(one.start, one.end) for one in window.dates if _conflicts(one, told)]
    return dates + [
        span
        for number, span in _numbers(window)
        if number not in numbers and not any(one.start <= span[0] < one.end for one in window.dates)
    ]


def _conflicts(date: Date, told: SentenceTokens) -> bool:
    return all(agreement(one, date) is Agreement.CONFLICT for one in told.dates)


def _distance(words: Sequence[Token], spans: Sequence[Span]) -> float:
    """Fewest characters between one of several words and one of several stretches."""
    return min(
        (
            start - word.end if word.end <= start else BACKWARDS * max(0, word.start - end)
            for word in words
            for start, end in spans
        ),
        default=FAR,
    )


def tells_others(
    phrases: Sequence[Phrase], told: SentenceTokens, window: SentenceTokens, titled: Set[str]
) -> bool:
    """Whether a window tells names, dates or numbers that may stand for phrases it lacks.

    Args:
        phrases: What the window lacks of a sentence.
        told: The sentence, prepared.
        window: The window, likewise.
        titled: Stems of the words of its passage's title, which contradict nothing.
    """
    if any(map(is_figure, phrases)) and _rivals(told, window):
        return True
    return any(phrase.kind is PhraseKind.NAME for phrase in phrases) and any(
        word.text[:1].isupper()
        and word.folded not in STOP_WORDS
        and word.stem not in titled
        and word.stem not in told.by_stem
        for word in window.tokens
    )


def lacking(
    span: ParsedSpan,
    phrases: Sequence[Phrase],
    told: SentenceTokens,
    window: SentenceTokens,
    known: Set[str],
) -> list[Phrase]:
    """The names, dates and numbers of a sentence that a window does not write.

    The name of its subject may stand anywhere in the passage, of whose words ``known`` has stems.
    """
    return [
        phrase
        for phrase in phrases
        if (phrase.kind.hard or is_figure(phrase))
        and phrase.text.lower() not in SCALES
        and not _places(window, phrase, told)
        and not (
            main_subject(head_of(span, (phrase.start, phrase.end))) is not None
            and knows(known, phrase)
        )
    ]


def head_of(text: Doc | ParsedSpan, place: Span) -> ParsedToken | None:
    """The word of a stretch that the rest of it hangs on."""
    inside = [one for one in text if one.idx < place[1] and place[0] < one.idx + len(one.text)]
    if not inside:
        return None
    doc = inside[0].doc
    return doc[inside[0].i : inside[-1].i + 1].root


def is_figure(phrase: Phrase) -> bool:
    """Whether a phrase is a date or a number, in figures or in words."""
    return phrase.kind is PhraseKind.DATE or number_of(tokenise(phrase.text)) is not None


def _places(tokens: SentenceTokens, phrase: Phrase, told: SentenceTokens) -> tuple[Span, ...]:
    """Where a phrase stands in a window in any written form; a date no coarser than told."""
    if phrase.kind is PhraseKind.DATE:
        return tuple(
            (held.start, held.end)
            for held in tokens.dates
            for date in find_dates(phrase.text)
            if agreement(date, held) is Agreement.SAME
        )
    number = _number(phrase, told)
    if number is not None:
        return tuple(span for other, span in _numbers(tokens) if same_number(number, other))
    name = name_of(phrase.text)
    if phrase.kind is PhraseKind.NAME:
        if any(word.folded in STOP_WORDS for word in tokenise(phrase.text)[1:]):
            return runs(tokens, name.tokens)  # no last word stands for *Republic of Kenya*
        triple = Triple(subject="", property="", value=phrase.text)
        share, spans, _ = find_value(tokens, name, triple, (), ())
        return spans if share >= 1.0 else ()
    parts = [tokens.by_stem.get(part.stem, []) for part in name.tokens]
    if not all(parts):
        return ()
    return tuple(
        (tokens.tokens[place].start, tokens.tokens[place].end) for part in parts for place in part
    )


def _number(phrase: Phrase, told: SentenceTokens) -> float | None:
    """The number that a phrase is part of, its scale included: the *3.5* of *3.5 million*."""
    words = told.tokens
    first = next((n for n, one in enumerate(words) if one.start == phrase.start), None)
    if first is None or number_of(words[first : first + 1]) is None:
        return None
    last = first + 1
    while first and number_of(words[first - 1 : last]) is not None:
        first -= 1
    while last < len(words) and number_of(words[first : last + 1]) is not None:
        last += 1
    return number_of(words[first:last])


def _numbers(window: SentenceTokens) -> Iterator[tuple[float, Span]]:
    for place in range(len(window.tokens)):
        for length in range(1, SCALE_TOKENS + 1):
            run = window.tokens[place : place + length]
            number = number_of(run)
            if number is not None and "and" not in (run[0].folded, run[-1].folded):
                yield number, (run[0].start, run[-1].end)


def _denied(token: ParsedToken) -> bool:
    """Whether a negation stands in a word's sentence."""
    words = {one.folded for one in tokenise(token.sent.text)}
    return not NEGATIONS.isdisjoint(words) or any(word.endswith("n't") for word in words)


def main_subject(head: ParsedToken | None) -> ParsedToken | None:
    """The subject that a word is part of, where it is that of the main clause."""
    above = () if head is None else (head, *head.ancestors)
    return next(filter(is_main_subject, above), None)


def knows(known: Set[str], phrase: Phrase) -> bool:
    """Whether a passage of these words has every word of a phrase."""
    return all(part.stem in known for part in name_of(phrase.text).tokens)
