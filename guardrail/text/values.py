"""Exact evidence: the tokens, dates and numbers of a text, in any written form.

Everything here is free of models. Tokens keep their place in the text, so that a value found in
a sentence can be marked there; their folded form and stem make "Gérard" meet "Gerard" and
"painters" meet "painter".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "Agreement",
    "Date",
    "Token",
    "agreement",
    "find_dates",
    "fold",
    "number_of",
    "parse_date",
    "same_number",
    "stem",
    "tokenise",
    "word_set",
    "words",
]


def words(text: str) -> list[str]:
    """A word list written as one string."""
    return text.split()


def word_set(text: str) -> frozenset[str]:
    """A set of words written as one string."""
    return frozenset(text.split())


GLUED_UNITS = "km|cm|mm|ft|mi|kg|g|lbs?|ha|mph|hrs?|min"
"""Units that stand right behind a number."""

GLUED_METRES = (
    r"m(?=\s*(?:$|[.,;:)]|(?:long|tall|high|deep|wide|above|below|away|from|and|or|to)\b|a\.))"
)
"""Metres; before another noun, and with a currency, *5m* are five million."""

TOKEN = re.compile(
    rf"(?<![$€£¥\w.,])(?<![$€£¥] )\d+(?:[.,]\d+)*(?=(?:{GLUED_UNITS})\b|{GLUED_METRES})"
    r"|\d+(?:[.,]\d+)*(?:st|nd|rd|th)?(?![\w])"
    r"|(?:[^\W\d_]\. ?){2,}|[^\W_]+(?:['’][^\W\d_]+)*"
)

SUFFIXES = (
    "ships", "ship", "ments", "ment", "ities", "ity", "ians", "ian", "ists", "ist", "ances",
    "ence", "ance", "ings", "ing", "ions", "ion", "ers", "ors", "er", "or", "ies", "ied", "ish",
    "ese", "ren", "als", "al", "ics", "ic", "ans", "an", "es", "ed", "ly", "s", "e", "y", "a",
)  # fmt: skip
MIN_STEM = 4

UNITS = {
    word: value
    for value, word in enumerate(
        words(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen "
            "fourteen fifteen sixteen seventeen eighteen nineteen twenty"
        )
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
ORDINALS = {
    word: value
    for value, word in enumerate(
        words(
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
            "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
            "twentieth"
        ),
        start=1,
    )
}
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}

MONTHS = words(
    "january february march april may june july august september october november december"
)
MONTH = "|".join(f"{month}|{month[:3]}\\.?" for month in MONTHS) + "|sept\\.?"
DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
YEAR = r"(?P<year>\d{3,4})(?!\d)(?![.,]\d)"
PART = r"(?:\b(?P<part>early|mid|late)[\s-]+)?"
ERA = r"(?:\s*(?P<era>BCE?|B\.C\.|CE|AD|A\.D\.))?"
DATE_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?<![\d-])(?P<sign>-?)(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?!\d)(?:T[\d:.]+Z?)?",
        rf"(?<!\d){DAY}\s+(?:of\s+)?(?P<name>{MONTH})\b,?\s+(?:of\s+)?{YEAR}{ERA}",
        rf"\b(?P<name>{MONTH})\s+{DAY}\s*,?\s+{YEAR}{ERA}",
        r"(?<![\d/.])(?P<a>[0-3]?\d)[/.](?P<b>[0-3]?\d)[/.](?P<year>\d{4})(?![\d/])",
        rf"\b(?P<name>{MONTH})\b,?\s+(?:of\s+)?{YEAR}{ERA}",
        rf"{PART}(?<!\d)(?P<decade>\d{{3}}0)['’]?s\b",
        rf"{PART}(?P<century>\d{{1,2}})(?:st|nd|rd|th)[\s-]+century\b(?:\s*(?P<era>BCE?))?",
        r"(?<!\d)(?P<year>\d{1,4})\s*(?P<era>BCE?|B\.C\.)",
        r"(?<![\d.,/:$£€#-])(?P<year>1[0-9]\d\d|20\d\d)(?![\d/:%]|[.,-]\d|\s*(?:km|m|people|m²)\b)",
    )
)


PARTS = {"early": (0.0, 0.5), "mid": (0.3, 0.5), "late": (0.5, 0.5)}
"""Where in a decade or century a part of it begins, and its length, as shares of the whole."""


class Token(NamedTuple):
    """A word or number of a text, with its place in it.

    Attributes:
        text: As written.
        folded: Without case and accents.
        stem: The folded form without derivational endings, for soft comparison; a number's
            value, so that ``5``, ``5.0`` and ``five`` are equal.
        start: Offset of the first character.
        end: Offset past the last character.
    """

    text: str
    folded: str
    stem: str
    start: int
    end: int


class Date(NamedTuple):
    """A point or period in time; ``month`` and ``day`` are None where they are not told.

    Attributes:
        year: Astronomical year; 1 BC is 0.
        month: 1 to 12.
        day: 1 to 31.
        span: Years covered, 1 for a year, 10 for a decade, 100 for a century.
        start: Offset in the text it was found in.
        end: Offset past its end.
        swapped: The other reading of a date such as 07/08/1593, as (month, day).
    """

    year: int
    month: int | None = None
    day: int | None = None
    span: int = 1
    start: int = 0
    end: int = 0
    swapped: tuple[int, int] | None = None


class Agreement(StrEnum):
    """How a date told in a text relates to a date held as evidence."""

    SAME = "same"
    FINER = "finer"
    CONFLICT = "conflict"


def fold(text: str) -> str:
    """Casefold and drop accents, so that ``Gérard`` equals ``gerard``."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


@lru_cache(maxsize=65_536)
def stem(folded: str) -> str:
    """Strip derivational endings while at least four letters stay: painters, painting → paint."""
    word = folded.removesuffix("'s")
    stripped = True
    while stripped and not word[-1:].isdigit():
        stripped = False
        for suffix in SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= MIN_STEM:
                word, stripped = word[: -len(suffix)], True
                break
    return word


def tokenise(text: str, offset: int = 0) -> list[Token]:
    """Split a text into words and numbers; punctuation is dropped, hyphenated words come apart.

    Args:
        text: Any text.
        offset: Added to every token's place.
    """
    tokens = []
    for match in TOKEN.finditer(text):
        word = match.group().rstrip()
        end = match.start() + len(word)
        if word[-2:] in ("'s", "’s"):
            word, end = word[:-2], end - 2
        folded = fold(word).replace("’", "'")
        if word[-1] == ".":
            folded = folded.replace(".", "").replace(" ", "")  # U.S., F.C., T. S.
        tokens.append(Token(word, folded, _key(folded), offset + match.start(), offset + end))
    return tokens


@lru_cache(maxsize=65_536)
def _key(folded: str) -> str:
    """The stem of a word; numbers in figures and words share one key: 5, 5.0, 5th, five."""
    value = _digits(folded)
    if value is None:
        value = UNITS.get(folded, ORDINALS.get(folded))
    return stem(folded) if value is None or folded == "second" else f"{value:.10g}"


def number_of(tokens: Sequence[Token]) -> float | None:
    """The number that a run of tokens writes: ``5,457,831``, ``twenty one``, ``half a million``."""
    total: float | None = None
    figures = False
    if len(tokens) == 3 and [one.folded for one in tokens[:2]] == ["half", "a"]:
        scale = SCALES.get(tokens[2].folded)
        return None if scale is None else scale / 2
    for token in tokens:
        word = token.folded
        value = _digits(word)
        if value is not None:
            if total is not None:
                return None  # "20-25" is a range, not a sum
            total, figures = value, True
        elif word in SCALES:
            total = (1.0 if total is None else total) * SCALES[word]
        elif (value := UNITS.get(word, ORDINALS.get(word))) is not None and not figures:
            total = value if total is None else total + value
        elif word != "and":
            return None
    return total


def _digits(word: str) -> float | None:
    if not word[:1].isdigit():
        return None
    if word[-2:] in ("st", "nd", "rd", "th"):
        word = word[:-2]
    groups = word.split(",")
    if len(groups) > 1 and not all(len(group.split(".")[0]) == 3 for group in groups[1:]):
        return None
    try:
        return float("".join(groups))
    except ValueError:
        return None


def same_number(told: float, held: float, *, about: bool = False) -> bool:
    """Whether two numbers agree: equal, or within 5 % where the text says "about"."""
    if told == held:
        return True
    tolerance = 0.05 if about else 1e-9
    return abs(told - held) <= tolerance * max(abs(told), abs(held))


def find_dates(text: str, offset: int = 0) -> list[Date]:
    """All dates of a text, in order, not overlapping; the fullest reading of each.

    Args:
        text: Any text.
        offset: Added to every date's place.
    """
    found: list[Date] = []
    for form in DATE_FORMS:
        for match in form.finditer(text):
            if any(match.start() < one.end and one.start < match.end() for one in found):
                continue
            date = _read(match)
            if date is not None:
                found.append(date)
    return [
        date._replace(start=date.start + offset, end=date.end + offset)
        for date in sorted(found, key=lambda one: one.start)
    ]


def parse_date(value: str) -> Date | None:
    """The date that a value consists of, None where it is more or something else.

    A first of January counts as its year alone: Wikidata writes dates known to the year so.
    """
    text = value.strip()
    dates = find_dates(text)
    if len(dates) != 1 or dates[0].start != 0 or dates[0].end != len(text):
        return None
    date = dates[0]
    if (date.month, date.day) == (1, 1) and text[:1].isdigit() and "-" in text:
        return date._replace(month=None, day=None)
    return date


def _read(match: re.Match[str]) -> Date | None:
    parts = match.groupdict()
    start, end = match.span()
    before_christ = (parts.get("era") or "").upper().startswith("B")
    first, length = PARTS.get((parts.get("part") or "").lower(), (0.0, 1.0))
    if parts.get("decade"):
        year = int(parts["decade"]) + int(first * 10)
        return Date(year, span=int(length * 10), start=start, end=end)
    if parts.get("century"):
        century = int(parts["century"])
        year = 1 - century * 100 if before_christ else (century - 1) * 100 + 1
        return Date(year + int(first * 100), span=int(length * 100), start=start, end=end)
    year = int(parts["year"])
    if before_christ:
        year = 1 - year
    elif parts.get("sign") == "-":
        year = -year
    month, day, swapped = None, None, None
    if parts.get("name"):
        month = next(n for n, name in enumerate(MONTHS, 1) if name[:3] == parts["name"].lower()[:3])
    elif parts.get("month"):
        month = int(parts["month"])
    if parts.get("day"):
        day = int(parts["day"])
    if parts.get("a"):
        day, month = int(parts["a"]), int(parts["b"])
        if month > 12:
            day, month = month, day
        elif day <= 12:
            swapped = (day, month)
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return None if year == 0 else Date(year, start=start, end=end)
    return Date(year, month, day, swapped=swapped, start=start, end=end)


def agreement(told: Date, held: Date) -> Agreement:
    """Compare a date told in a text with a date held as evidence.

    Returns:
        ``SAME`` where the text tells no more than the evidence holds, ``FINER`` where it tells
        more (a day where only the year is held), ``CONFLICT`` where both cannot be true.
    """
    if told.span > 1 or held.span > 1:
        inside = told.year < held.year + held.span and held.year < told.year + told.span
        if not inside:
            return Agreement.CONFLICT
        return Agreement.SAME if told.span >= held.span else Agreement.FINER
    # Before Christ, vocabularies disagree on whether there is a year 0.
    shift = abs(told.year - held.year)
    if shift > 1 or (shift == 1 and max(told.year, held.year) > 0):
        return Agreement.CONFLICT
    if told.swapped and (held.month, held.day) == told.swapped:
        return Agreement.SAME
    for mine, theirs in ((told.month, held.month), (told.day, held.day)):
        if mine is None:
            return Agreement.SAME
        if theirs is None:
            return Agreement.FINER
        if mine != theirs:
            return Agreement.CONFLICT
    return Agreement.SAME
