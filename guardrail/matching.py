"""Exact evidence for one sentence: which triples' values, subjects and relations stand in it.

No model takes part. What is found here decides the easy cases, proposes the pairs that the NLI
judge is asked about, and tells which words of the sentence a cited triple covers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from guardrail.types import Triple
from guardrail.values import (
    Agreement,
    Date,
    Token,
    agreement,
    find_dates,
    number_of,
    parse_date,
    same_number,
    tokenise,
    word_set,
)
from guardrail.vocabulary import RECORDS, STOP_WORDS, cues, inverse_cues, nation, property_words

__all__ = ["EvidenceIndex", "Match", "SentenceTokens", "Span", "names_in"]

Span = tuple[int, int]

ABOUT = word_set("about around approximately nearly almost over circa roughly some ca c")
NEGATIONS = word_set("not no non never neither nor without isnt arent wasnt doesnt")
YES = frozenset({"yes", "true"})
NO = frozenset({"no", "false"})

QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
FIRST_SURE_YEAR = 1000
"""Smaller numbers are read as years only where a held date and the word before them say so."""

BEFORE_YEARS = frozenset({"in", "c", "ca", "around", "about", "circa", "year", "ad", "of", "since"})
BIRTH = frozenset({"date of birth", "birth date", "birth year", "born"})
DEATH = frozenset({"date of death", "death date", "death year", "died"})
NUMERAL = re.compile(r"[A-Z]|[IVXL]+")
LIFETIME = re.compile(
    r"\(([^()]{0,60}?\d[^()]{0,60}?)\s*(?:[–—-]|\bto\b)\s*([^()]{0,60}?\d[^()]{0,20})\)"
)

MIN_VALUE_SHARE = 0.5
"""Share of a value's content words that must stand in a sentence for the value to count."""


class SentenceTokens(NamedTuple):
    """A sentence made ready for matching.

    Attributes:
        tokens: Its words, with offsets in the whole answer.
        dates: Its dates, likewise.
        by_stem: Places of each stem among the tokens.
        by_folded: Places of each folded form.
        negated: Whether a negation stands in it.
        birth: Where a life span in brackets, ``(1593 – 1656)``, gives the birth.
        death: Where it gives the death.
    """

    tokens: tuple[Token, ...]
    dates: tuple[Date, ...]
    by_stem: dict[str, list[int]]
    by_folded: dict[str, list[int]]
    negated: bool
    birth: Span | None = None
    death: Span | None = None

    def lifetime(self, words: str) -> Span | None:
        """Where a life span in brackets gives the date that a property, in plain words, asks."""
        return self.birth if words in BIRTH else self.death if words in DEATH else None

    @classmethod
    def of(cls, text: str, offset: int) -> SentenceTokens:
        """Prepare a sentence that starts at ``offset`` in its answer."""
        tokens = tokenise(text, offset)
        by_stem: dict[str, list[int]] = defaultdict(list)
        by_folded: dict[str, list[int]] = defaultdict(list)
        for place, token in enumerate(tokens):
            by_stem[token.stem].append(place)
            by_folded[token.folded].append(place)
        negated = any(token.folded in NEGATIONS or token.folded.endswith("n't") for token in tokens)
        life = LIFETIME.search(text)
        birth, death = (
            ((offset + life.start(part), offset + life.end(part)) for part in (1, 2))
            if life
            else (None, None)
        )
        return cls(
            tuple(tokens),
            tuple(find_dates(text, offset)),
            dict(by_stem),
            dict(by_folded),
            negated,
            birth,
            death,
        )


class Match(NamedTuple):
    """How a triple stands in a sentence.

    Attributes:
        triple: The triple.
        number: Its place in the evidence.
        value_share: Share of the value's content words found, 1.0 for a full or equivalent value.
        value_spans: Where they stand.
        finer: A date that the sentence tells more precisely than the triple holds.
        cue_spans: Where words stand that name the property.
        subject: ``explicit``, ``antecedent`` (a pronoun or the answer's topic), ``open`` (the
            sentence names no subject) or ``foreign`` (it speaks of something else).
        subject_spans: Where the subject stands.
        inverse: The sentence speaks of the value and names the subject.
    """

    triple: Triple
    number: int
    value_share: float
    value_spans: tuple[Span, ...]
    finer: Date | None
    cue_spans: tuple[Span, ...]
    subject: str
    subject_spans: tuple[Span, ...]
    inverse: bool = False

    @property
    def spans(self) -> tuple[Span, ...]:
        """All places in the sentence that the triple accounts for."""
        return self.value_spans + self.cue_spans + self.subject_spans


class _Name(NamedTuple):
    """The forms of a label: content tokens, and other words that stand for all of them."""

    tokens: tuple[Token, ...]
    others: frozenset[str]
    other_stems: frozenset[str]
    date: Date | None
    number: float | None


class EvidenceIndex:
    """Triples made ready to be looked for in sentences.

    Args:
        triples: The evidence, in the caller's order.
    """

    def __init__(self, triples: Sequence[Triple]) -> None:
        self.triples = tuple(triples)
        self._values = [_name(triple.value) for triple in self.triples]
        self._subjects = [_name(triple.subject) for triple in self.triples]
        self._by_word: dict[str, set[int]] = defaultdict(set)
        for number, (value, triple) in enumerate(zip(self._values, self.triples, strict=True)):
            words = {token.stem for token in value.tokens} | value.other_stems
            for word in words | cues(triple.property) | _first_stems(self._subjects[number]):
                self._by_word[word].add(number)
        self._dated = {number for number, value in enumerate(self._values) if value.date}

    @property
    def subjects(self) -> dict[str, None]:
        """The labels that triples are about, in order, without repeats."""
        return dict.fromkeys(triple.subject for triple in self.triples)

    def matches(
        self, sentence: SentenceTokens, *, topic: str | None, foreign: bool = False
    ) -> list[Match]:
        """Look for every triple in a sentence.

        Args:
            sentence: The prepared sentence.
            topic: Label of the entity that a pronoun or an unnamed subject stands for.
            foreign: The sentence's own subject is none of the evidence's entities.

        Returns:
            Triples with at least a value or a property word in the sentence, in evidence order.
        """
        near: set[int] = set(self._dated) if sentence.dates else set()
        for word in sentence.by_stem:
            near |= self._by_word.get(word, set())
        named: dict[str, tuple[Span, ...]] = {}
        found = []
        for number in sorted(near):
            triple = self.triples[number]
            if triple.subject not in named:
                named[triple.subject] = names_in(sentence, triple.subject)
            match = self._match(sentence, number, topic, foreign, named)
            if match is not None:
                found.append(match)
        if any(named.values()):
            return found
        return [
            match._replace(subject="open")
            if match.subject == "other" and self._near_topic(match.triple, topic)
            else match
            for match in found
        ]

    def _near_topic(self, triple: Triple, topic: str | None) -> bool:
        """Whether a fact of an unnamed subject may be meant where the sentence has a topic.

        A fact of an entity that no fact joins to the topic speaks of somebody else who happens
        to share a value.
        """
        if topic is None or topic not in self.subjects:
            return True
        return triple.value == topic or any(
            one.value == triple.subject for one in self.triples if one.subject == topic
        )

    def _match(
        self,
        sentence: SentenceTokens,
        number: int,
        topic: str | None,
        foreign: bool,
        named: dict[str, tuple[Span, ...]],
    ) -> Match | None:
        triple, value = self.triples[number], self._values[number]
        subject_spans = named[triple.subject]
        subject = "explicit" if subject_spans else "other"
        if not subject_spans:
            if topic == triple.subject:
                subject = "antecedent"
            elif foreign:
                subject = "foreign"
        itself = triple.value == triple.subject or property_words(triple.property) in RECORDS
        share, spans, finer = _find_value(sentence, value, triple, () if itself else subject_spans)
        inverse = False
        if share < 1.0 and subject == "explicit" and topic is not None and triple.value == topic:
            share, spans, inverse = 1.0, (), True
        wanted = cues(triple.property) | inverse_cues(triple.property)
        period = sentence.lifetime(property_words(triple.property))
        cue_spans: tuple[Span, ...] = ((period[0], period[0]),) if period else ()
        cue_spans += tuple(
            (sentence.tokens[place].start, sentence.tokens[place].end)
            for word in sorted(wanted)
            for place in sentence.by_stem.get(word, ())
            if not _inside(sentence.tokens[place], subject_spans)
        )
        if share < MIN_VALUE_SHARE:
            share, spans = 0.0, ()
        if share == 0.0 and not cue_spans:
            return None
        return Match(
            triple, number, share, spans, finer, cue_spans, subject, subject_spans, inverse
        )


def names_in(sentence: SentenceTokens, label: str) -> tuple[Span, ...]:
    """Where a sentence names an entity: by its whole label, or by a capitalised part of it."""
    name = _name(label)
    if not name.tokens:
        return ()
    whole = _runs(sentence, name.tokens) or _initials(sentence, name.tokens)
    if whole:
        return whole
    parts = [
        (token.start, token.end)
        for part in name.tokens
        for place in sentence.by_folded.get(part.folded, ())
        if (token := sentence.tokens[place]).text[:1].isupper() or len(name.tokens) == 1
    ]
    surname = name.tokens[-1].folded in sentence.by_folded
    needed = 1 if surname or len(name.tokens) <= 2 else len(name.tokens) / 2
    if len(set(parts)) < needed:
        return ()
    return tuple(sorted(set(parts)))


def _initials(sentence: SentenceTokens, parts: Sequence[Token]) -> tuple[Span, ...]:
    """Where the initials of a name of three words or more stand for it: ``USAF``."""
    if len(parts) < 3:
        return ()
    short = "".join(part.folded[0] for part in parts)
    return tuple(
        (token.start, token.end)
        for place in sentence.by_folded.get(short, ())
        if (token := sentence.tokens[place]).text.isupper()
    )


@lru_cache(maxsize=65_536)
def _name(label: str) -> _Name:
    # "Paris (mythology)" is told apart from others by its brackets; prose names Paris.
    tokens = tokenise(QUALIFIER.sub("", label)) or tokenise(label)
    content = tuple(
        token
        for place, token in enumerate(tokens)
        if token.folded not in STOP_WORDS or _numeral(token, place)
    ) or tuple(tokens)
    others = nation(label)
    stems = frozenset(token.stem for word in others for token in tokenise(word))
    figures = number_of(tokens) if len(tokens) <= 4 else None
    return _Name(content, frozenset(others), stems, parse_date(label), figures)


def _numeral(token: Token, place: int) -> bool:
    """Whether a word is a letter or numeral of a name: the ``I`` of *Bahram I*."""
    return place > 0 and NUMERAL.fullmatch(token.text) is not None


def _first_stems(name: _Name) -> frozenset[str]:
    return frozenset(token.stem for token in name.tokens)


def _find_value(
    sentence: SentenceTokens, value: _Name, triple: Triple, subject_spans: tuple[Span, ...]
) -> tuple[float, tuple[Span, ...], Date | None]:
    """How much of a value stands in a sentence: share, places, finer date."""
    if value.date is not None:
        dated = _find_date(sentence, value.date)
        if dated[1] or value.number is None:
            return dated
        return _find_number(sentence, value.number)
    word = triple.value.strip().lower()
    if word in YES or word in NO:
        return _find_truth(sentence, triple, word in YES)
    if not value.tokens:
        return 0.0, (), None
    whole = tuple(
        span
        for span in _runs(sentence, value.tokens) or _initials(sentence, value.tokens)
        if not _within(span, subject_spans)
    )
    if whole:
        return 1.0, whole, None
    if value.number is not None:
        return _find_number(sentence, value.number)
    other = tuple(
        (token.start, token.end)
        for name in value.others
        for place in sentence.by_folded.get(name, ())
        if not _inside(token := sentence.tokens[place], subject_spans)
        and (name != "us" or token.text.isupper())
        and not _opens_name(sentence, place)
    )
    if other:
        return 1.0, other, None
    part_of_name = _name_part(sentence, value, subject_spans)
    if part_of_name:
        return 1.0, part_of_name, None
    spans: list[Span] = []
    hits = 0.0
    for number, part in enumerate(value.tokens):
        places = [
            place
            for place in sentence.by_stem.get(part.stem, ())
            if not _inside(sentence.tokens[place], subject_spans)
            and not (
                len(value.tokens) == 1
                and sentence.tokens[place].folded != part.folded
                and _opens_name(sentence, place)
            )
        ]
        if not places and _numeral(part, number):
            return 0.0, (), None  # Bahram III is not Bahram I in part
        if places:
            hits += 1.0
            found = [sentence.tokens[place] for place in places]
            spans += [(token.start, token.end) for token in found]
    return hits / len(value.tokens), tuple(sorted(set(spans))), None


def _opens_name(sentence: SentenceTokens, place: int) -> bool:
    """Whether a capitalised word follows: the *Italian Socialist Party* makes nobody Italian."""
    here, after = sentence.tokens[place], sentence.tokens[place + 1 : place + 2]
    return bool(after) and after[0].start - here.end == 1 and after[0].text[:1].isupper()


def _name_part(
    sentence: SentenceTokens, value: _Name, subject_spans: tuple[Span, ...]
) -> tuple[Span, ...]:
    """Where the first or last name of a person stands alone: ``Orazio`` or ``Gentileschi``."""
    if not 2 <= len(value.tokens) <= 4 or not all(part.text[:1].isupper() for part in value.tokens):
        return ()
    names = {part.folded for part in value.tokens}
    spans = []
    for part in (value.tokens[-1], value.tokens[0]):
        if _numeral(part, value.tokens.index(part)):
            continue
        for place in sentence.by_folded.get(part.folded, ()):
            token = sentence.tokens[place]
            beside = sentence.tokens[max(0, place - 1) : place + 2]
            alone = all(
                one.folded in names or one.folded in STOP_WORDS or not one.text[:1].isupper()
                for one in beside
            )
            if token.text[:1].isupper() and alone and not _inside(token, subject_spans):
                spans.append((token.start, token.end))
    return tuple(spans)


def _find_date(sentence: SentenceTokens, held: Date) -> tuple[float, tuple[Span, ...], Date | None]:
    for date in sentence.dates:
        relation = agreement(date, held)
        if relation is not Agreement.CONFLICT:
            finer = date if relation is Agreement.FINER else None
            return 1.0, ((date.start, date.end),), finer
    if 0 < held.year < FIRST_SURE_YEAR:
        for place in sentence.by_folded.get(str(held.year), ()):
            if place and sentence.tokens[place - 1].folded in BEFORE_YEARS:
                token = sentence.tokens[place]
                return 1.0, ((token.start, token.end),), None
    return 0.0, (), None


def _find_number(
    sentence: SentenceTokens, held: float
) -> tuple[float, tuple[Span, ...], Date | None]:
    for place, token in enumerate(sentence.tokens):
        for length in (3, 2, 1):
            run = sentence.tokens[place : place + length]
            told = number_of(run)
            if told is None:
                continue
            before = sentence.tokens[max(0, place - 2) : place]
            about = any(word.folded in ABOUT for word in before)
            if same_number(told, held, about=about):
                return 1.0, ((token.start, run[-1].end),), None
    return 0.0, (), None


def _find_truth(
    sentence: SentenceTokens, triple: Triple, holds: bool
) -> tuple[float, tuple[Span, ...], Date | None]:
    spans = tuple(
        (sentence.tokens[place].start, sentence.tokens[place].end)
        for word in sorted(cues(triple.property))
        for place in sentence.by_stem.get(word, ())
    )
    if spans and sentence.negated != holds:
        return 1.0, spans, None
    return 0.0, (), None


def _runs(sentence: SentenceTokens, parts: Sequence[Token]) -> tuple[Span, ...]:
    """Where the parts stand one after the other, stop words between them allowed."""
    runs = []
    for first in sentence.by_folded.get(parts[0].folded, ()):
        place = first
        for part in parts[1:]:
            place += 1
            while place < len(sentence.tokens) and (
                sentence.tokens[place].folded in STOP_WORDS
                and sentence.tokens[place].folded != part.folded
            ):
                place += 1
            if place >= len(sentence.tokens) or sentence.tokens[place].folded != part.folded:
                break
        else:
            runs.append((sentence.tokens[first].start, sentence.tokens[place].end))
    return tuple(runs)


def _inside(token: Token, spans: Iterable[Span]) -> bool:
    return any(start <= token.start and token.end <= end for start, end in spans)


def _within(span: Span, spans: Iterable[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in spans)
