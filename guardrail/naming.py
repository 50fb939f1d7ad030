"""Sentences made ready for matching, and the names of entities found in them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from guardrail.nations import nation
from guardrail.text.values import Date, Token, find_dates, number_of, parse_date, tokenise, word_set
from guardrail.vocabulary import STOP_WORDS

__all__ = [
    "KINDS",
    "NO_NAMES",
    "PARTICLES",
    "Name",
    "SentenceTokens",
    "Span",
    "initials",
    "middle_aside",
    "name_of",
    "named_in",
    "names_in",
    "numeral",
    "runs",
]

Span = tuple[int, int]

NO_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({})
"""Where no entity has other names than its label."""

PARTICLES = word_set("von van der den zu de di da la le du del della bin ibn al")
"""Words inside a name that are written small."""

TITLES = word_set(
    "mr mrs ms miss sir dame lord lady dr doctor professor saint king queen prince princess "
    "emperor empress pope president senator general captain colonel major count countess duke "
    "duchess baron baroness earl father mother brother sister aunt uncle"
)
"""Words written with a capital before a name that are no part of it."""

KINDS = word_set(
    "university college school institute academy church party congress senate museum hospital "
    "prize award medal order league cup club army navy force war battle river lake island county "
    "district city street house court minister president king queen prime company society council"
)
"""Words by which a name tells its kind, as no person's does: no part of it stands for the whole."""

UNIONS = word_set("nations union states kingdom")
"""Last words of names of two words that initials stand for; those of others are too many."""

MIDDLE_NAMES = 2
"""Most names told between a first and a last name that an entity's label leaves out."""

NEGATIONS = word_set("not no non never neither nor without isnt arent wasnt doesnt")
QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
BIRTH = frozenset({"date of birth", "birth date", "birth year", "born"})
DEATH = frozenset({"date of death", "death date", "death year", "died"})
NUMERAL = re.compile(r"[A-Z]|[IVXL]+")
CURRENCY = re.compile(r"([$€£¥₹])\s?(?=\d)")
NO_SIGNS: Mapping[int, str] = {}
LIFETIME = re.compile(
    r"\(([^()]{0,60}?\d[^()]{0,60}?)\s*(?:[–—-]|\bto\b)\s*([^()]{0,60}?\d[^()]{0,20})\)"
)


class SentenceTokens(NamedTuple):
    """A sentence made ready for matching.

    Attributes:
        tokens: Its words, with offsets in the whole answer.
        dates: Its dates, likewise, less those that something was before or after.
        by_stem: Places of each stem among the tokens.
        by_folded: Places of each folded form.
        negated: Whether a negation stands in it.
        birth: Where a life span in brackets, ``(1593 – 1656)``, gives the birth.
        death: Where it gives the death.
        signs: Signs of currencies by the place of the number behind them.
    """

    tokens: tuple[Token, ...]
    dates: tuple[Date, ...]
    by_stem: dict[str, list[int]]
    by_folded: dict[str, list[int]]
    negated: bool
    birth: Span | None = None
    death: Span | None = None
    signs: Mapping[int, str] = NO_SIGNS

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
            tuple(date for date in find_dates(text, offset) if not _bounds(tokens, date)),
            dict(by_stem),
            dict(by_folded),
            negated,
            birth,
            death,
            {offset + sign.end(): sign.group(1) for sign in CURRENCY.finditer(text)},
        )


def _bounds(tokens: Sequence[Token], date: Date) -> bool:
    """Whether a date only bounds another one, as in *before 1797*."""
    before = next((one for one in reversed(tokens) if one.end <= date.start), None)
    return before is not None and before.folded in ("before", "after")


class Name(NamedTuple):
    """The forms of a label: content tokens, and other words that stand for all of them."""

    tokens: tuple[Token, ...]
    others: frozenset[str]
    other_stems: frozenset[str]
    date: Date | None
    number: float | None


def named_in(
    sentence: SentenceTokens,
    labels: Iterable[str],
    others: Mapping[str, tuple[str, ...]] = NO_NAMES,
) -> dict[str, tuple[Span, ...]]:
    """Which of several entities a sentence names, and where.

    A word inside a fuller name of another entity names nobody else: the *Shelley* of *Percy
    Shelley* is not Mary Shelley, and *Johann Christian Bach* not Johann Bach.

    Args:
        sentence: The prepared sentence.
        labels: Labels of the entities.
        others: Further names by label; they count where the label does not stand.
    """
    found = {
        label: spans
        for label in labels
        if (spans := names_in(sentence, label) or _by_other(sentence, others.get(label, ())))
    }
    wide = [(label, span) for label, spans in found.items() for span in spans]
    kept = {
        label: tuple(
            (start, end)
            for start, end in spans
            if not any(
                other != label
                and first <= start
                and end <= last
                and (last - first > end - start or _fuller(sentence, other, label, (first, last)))
                for other, (first, last) in wide
            )
        )
        for label, spans in found.items()
    }
    return {label: spans for label, spans in kept.items() if spans}


def _fuller(sentence: SentenceTokens, other: str, label: str, span: Span) -> bool:
    """Whether a stretch is the whole label of another entity, which is longer than this one."""
    parts = name_of(other).tokens
    return len(parts) > len(name_of(label).tokens) and span in runs(sentence, parts)


def names_in(sentence: SentenceTokens, label: str) -> tuple[Span, ...]:
    """Where a sentence names an entity: by its whole label, or by a capitalised part of it."""
    name = name_of(label)
    if not name.tokens:
        return ()
    whole = (
        runs(sentence, name.tokens)
        or middle_aside(sentence, name.tokens)
        or initials(sentence, name.tokens)
    )
    if whole:
        return whole
    known = frozenset(part.folded for part in name.tokens)
    parts = [
        (token.start, token.end)
        for part in name.tokens
        for place in sentence.by_folded.get(part.folded, ())
        if len(name.tokens) == 1
        or (
            (token := sentence.tokens[place]).text[:1].isupper()
            and not _in_other_name(sentence, place, known)
        )
    ]
    surname = name.tokens[-1].folded in sentence.by_folded
    needed = 1 if surname or len(name.tokens) <= 2 else len(name.tokens) / 2
    if len(set(parts)) < needed:
        return ()
    return tuple(sorted(set(parts)))


def _in_other_name(sentence: SentenceTokens, place: int, known: frozenset[str]) -> bool:
    """Whether a piece of a name stands in somebody else's: the *Pearl* of *Ruth Pearl*.

    Args:
        sentence: The sentence.
        place: Of the piece among its tokens.
        known: Folded words of the whole name, and so none of another one.
    """
    tokens = sentence.tokens
    for step in (-1, 1):
        here = place
        while 0 <= here + step < len(tokens):
            first, second = (here - 1, here) if step < 0 else (here, here + 1)
            here += step
            initial = len(tokens[first].text) == 1
            if tokens[second].start - tokens[first].end not in (1, 1 + initial):
                break  # a comma, or the 's of an owner, stands between
            word = tokens[here]
            if word.folded in known or word.folded in PARTICLES or len(word.text) == 1:
                continue
            titled = word.folded in STOP_WORDS | TITLES
            if word.text[:1].isupper() and not titled and not word.text.isupper():
                return True
            break  # a title, or letters such as FC, make no other name
    return False


def middle_aside(sentence: SentenceTokens, parts: Sequence[Token]) -> tuple[Span, ...]:
    """Where a person's first and last name stand with fewer or more names between them.

    So do *Percy Shelley* for Percy Bysshe Shelley, and *Mary Wollstonecraft Shelley* for Mary
    Shelley.
    """
    if len(parts) < 2 or not (parts[0].text[:1].isupper() and parts[-1].text[:1].isupper()):
        return ()
    if len(parts) > 2:
        return _capitalised(sentence, runs(sentence, (parts[0], parts[-1])))
    if numeral(parts[1], 1) or KINDS & {part.folded for part in parts}:
        return ()
    found = []
    for place in sentence.by_folded.get(parts[0].folded, ()):
        run = sentence.tokens[place : place + MIDDLE_NAMES + 2]
        for last in range(1, len(run)):
            initial = len(run[last - 1].text) == 1
            if run[last].start - run[last - 1].end not in (1, 1 + initial):
                break
            if last > 1 and run[last].folded == parts[1].folded:
                found.append((run[0].start, run[last].end))
                break
            if not run[last].text[:1].isupper() or run[last].folded in STOP_WORDS:
                break
    return _capitalised(sentence, found)


def _by_other(sentence: SentenceTokens, names: Iterable[str]) -> tuple[Span, ...]:
    """Where one of an entity's other names stands, whole or without its middle."""
    for name in names:
        parts = name_of(name).tokens
        if parts and len(name) > 2:
            whole = runs(sentence, parts) or middle_aside(sentence, parts)
            if spans := _capitalised(sentence, whole):
                return spans
    return ()


def _capitalised(sentence: SentenceTokens, spans: Sequence[Span]) -> tuple[Span, ...]:
    starts = {token.start for token in sentence.tokens if token.text[:1].isupper()}
    return tuple(span for span in spans if span[0] in starts)


def initials(sentence: SentenceTokens, parts: Sequence[Token]) -> tuple[Span, ...]:
    """Where the initials of a name stand for it: *USAF*, and *the UN* for a union of states."""
    if len(parts) < 2 or (len(parts) == 2 and parts[1].folded not in UNIONS):
        return ()
    short = "".join(part.folded[0] for part in parts)
    return tuple(
        (token.start, token.end)
        for place in sentence.by_folded.get(short, ())
        if (token := sentence.tokens[place]).text.isupper()
    )


@lru_cache(maxsize=65_536)
def name_of(label: str) -> Name:
    """The forms of a label."""
    # "Paris (mythology)" is told apart from others by its brackets; prose names Paris.
    tokens = tokenise(QUALIFIER.sub("", label)) or tokenise(label)
    content = tuple(
        token
        for place, token in enumerate(tokens)
        if token.folded not in STOP_WORDS or numeral(token, place)
    ) or tuple(tokens)
    others = nation(label)
    stems = frozenset(token.stem for word in others for token in tokenise(word))
    date = parse_date(label)
    day = date is not None and date.day is not None  # whose year alone is another number
    figures = None if day or len(tokens) > 4 else number_of(tokens)
    return Name(content, frozenset(others), stems, date, figures)


def numeral(token: Token, place: int) -> bool:
    """Whether a word is a letter or numeral of a name: the ``I`` of *Bahram I*."""
    return place > 0 and NUMERAL.fullmatch(token.text) is not None


def runs(sentence: SentenceTokens, parts: Sequence[Token]) -> tuple[Span, ...]:
    """Where the parts stand one after the other, stop words between them allowed."""
    found = []
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
            found.append((sentence.tokens[first].start, sentence.tokens[place].end))
    return tuple(found)
