"""The canonical form of a text: its numbers, dates, times, money and weekdays in one writing.

A small judge reads *9,750* and *9750*, *10 am* and *10:00*, or *€48* and *48 euros* as two things.
Evidence and sentence are both put into this form before it reads them, each without a look at the
other. Nothing else is rewritten: no word for another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from guardrail.core.text.clock_times import ClockTime
from guardrail.core.text.dates import Date
from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.quantities import Quantity, find_measures
from guardrail.core.text.units import canonical_unit, unit_of_label
from guardrail.core.text.values import TypedValue, find_values
from guardrail.core.text.words import digits_of, plain

__all__ = ["Canonical", "canonical"]

FIGURES = re.compile(r"-?\d(?:[\d,.' ]*\d)?")
"""A number in figures, its thousands apart or not."""

CODE = re.compile(r"0\d")
"""How figures begin that count nothing: the *0012* of an invoice."""

LABELLED = re.compile(r"[^:]*, ([^,:]+): (-?\d[\d.,' ]*?)\.?")
"""A triple as a statement whose value is a bare number: its label may tell the unit, as in
*Cask Kettle, price_gbp: 64.99.*"""

MINUTES_OF_HOUR = 60


BESIDE_DAY = re.compile(r"[:,]? ?\d|:")
"""What follows a weekday that hours are told of."""


class _Edit(NamedTuple):
    """Characters of a text, and what is written in their place."""

    start: int
    end: int
    text: str


class Canonical(NamedTuple):
    """A text in canonical form.

    Attributes:
        text: The text.
        edits: What was rewritten, as (start, end) in the original and (start, end) here, in order.
    """

    text: str
    edits: tuple[tuple[int, int, int, int], ...] = ()

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Offsets of a stretch in the text as it was; a stretch of what was rewritten is its whole.

        Args:
            start: Offset of its first character in ``text``.
            end: Offset past its last.
        """
        return self._back(start, last=False), self._back(end, last=True)

    def _back(self, place: int, *, last: bool) -> int:
        moved = 0
        for start, end, here, stop in self.edits:
            if place < here or (last and place == here):
                break
            if place < stop or (last and place == stop):
                return end if last else start
            moved = end - stop
        return place + moved


@lru_cache(maxsize=16_384)
def canonical(text: str) -> Canonical:
    """Put a text into canonical form; the same text always gives the same form.

    Thousands stand together and numbers in figures (*nine thousand seven hundred and fifty*,
    *9,750* → ``9750``); dates are ``14 March 1996``, times ``18:30``, money ``48 euros``; units
    stand behind a space, percents do not; weekdays are written out.

    Args:
        text: Any text: an answer's sentence or a statement of evidence.
    """
    signs = plain(text)
    edits: list[_Edit] = []
    for edit in _edits(signs):
        if edits and edit.start < edits[-1].end:
            continue
        if signs[edit.start : edit.end] != edit.text:
            edits.append(edit)
    pieces: list[str] = []
    moves: list[tuple[int, int, int, int]] = []
    read = written = 0
    for start, end, new in edits:
        here = written + start - read
        pieces += (signs[read:start], new)
        moves.append((start, end, here, here + len(new)))
        read, written = end, here + len(new)
    return Canonical("".join([*pieces, signs[read:]]), tuple(moves))


def _edits(text: str) -> list[_Edit]:
    """All that may be rewritten, by place."""
    found = [*_weekdays(text)]
    if any(sign.isalnum() for sign in text):
        values = find_values(text)
        found += _ranges_of_times(text, values)
        taken = [(item.start, item.end) for item in values if not isinstance(item.value, Quantity)]
        for value in values:
            written = _written(text, value)
            if written is not None:
                found.append(_Edit(value.start, value.end, written))
        found += _measures(text, taken)
    return sorted(found)


def _written(text: str, value: TypedValue) -> str | None:
    """A date or time as it is written here; None to leave it."""
    if isinstance(value.value, Date):
        return _date(value.value, text[value.start : value.end])
    if isinstance(value.value, ClockTime):
        return _time(value.value, text[value.start : value.end])
    return None


def _date(date: Date, written: str) -> str | None:
    """Days and months, where they are sure; years, seasons and longer periods stay."""
    if date.month is None or date.months > 1 or date.swapped is not None or date.span > 1:
        return None
    if date.year is not None and date.year < 1:
        return None
    month = lexicon("calendar")["months"][date.month - 1].capitalize()
    parts = [str(date.day) if date.day else "", month, str(date.year) if date.year else ""]
    told = " ".join(part for part in parts if part)
    clock = re.search(r"T(\d\d:\d\d)", written)
    return told if clock is None or clock[1] == "00:00" else f"{told} {clock[1]}"


def _time(time: ClockTime, written: str) -> str | None:
    """Hours to 24, where the half of the day is told or the figures are those of a clock."""
    named = written[:1].isupper() and written.isalpha()
    if named or not (time.half or re.match(r"\d{1,2}:\d\d", written)):
        return None
    hours, minutes = divmod(time.minutes, MINUTES_OF_HOUR)
    return f"{hours:02}:{minutes:02}"


def _ranges_of_times(text: str, values: list[TypedValue]) -> Iterator[_Edit]:
    times = [item for item in values if isinstance(item.value, ClockTime)]
    for first, second in pairwise(times):
        if re.fullmatch(r" ?- ?", text[first.end : second.start]):
            yield _Edit(first.end, second.start, " to ")


def _measures(text: str, taken: list[tuple[int, int]]) -> Iterator[_Edit]:
    """Numbers with their units, each by itself."""
    statement = LABELLED.fullmatch(text)
    labelled = {statement.start(2): unit_of_label(statement[1])} if statement else {}
    for item in find_measures(text, taken):
        stretch = text[item.start : item.end]
        figures = FIGURES.search(stretch)
        if (item.words and _is_name(text, item)) or CODE.match(stretch):
            continue
        number = _number(item, figures.group() if figures else None, stretch)
        unit = item.unit or labelled.get(item.start)
        if unit is None:
            yield _Edit(item.start, item.end, number)
            continue
        behind = text[item.number_end : item.end].strip(" -(")
        name = canonical_unit(unit, behind, one=number == "1")
        gap = "" if name[:1] in "%°′″" else " "
        yield _Edit(item.start, item.end, f"{number}{gap}{name}")


def _number(item: Quantity, figures: str | None, stretch: str) -> str:
    """The number in figures; decimals stay as they are written unless they are all zeros."""
    value = digits_of(figures) if figures else None
    if figures and value is not None and abs(abs(item.low) - abs(value)) < 1e-9:
        places = len(figures.partition(".")[2]) if figures.count(".") == 1 else 0
        if places and value == int(value) and item.unit is not None:
            places = 0
        sign = "-" if item.low < 0 else ""
        return f"{sign}{abs(value):.{places}f}"
    return f"{item.low:.6f}".rstrip("0").rstrip(".")


def _is_name(text: str, item: Quantity) -> bool:
    """Whether a number in words begins a name: *Seven Sisters*."""
    return text[item.start].isupper() and re.match(r"\s[A-Z]", text[item.end :]) is not None


@cache
def _between_days() -> re.Pattern[str]:
    """What stands between two weekdays of a range or list."""
    calendar = lexicon("calendar")
    words = (*calendar["days_through"], *calendar["days_with"])
    return re.compile(rf" ?(?:{'|'.join(re.escape(word) for word in words)}) ?(?:and )?")


@cache
def _weekday_form() -> re.Pattern[str]:
    days = "|".join(sorted(_weekday_names(), key=len, reverse=True))
    return re.compile(rf"\b({days})\b(?!['’])\.?")


@cache
def _weekday_names() -> dict[str, str]:
    """The days of the week and what they are shortened to."""
    calendar = lexicon("calendar")
    short = calendar["weekday_forms"].items()
    found = {day.capitalize(): day.capitalize() for day in calendar["weekdays"]}
    return found | {form.capitalize(): day.capitalize() for form, day in short}


def _weekdays(text: str) -> Iterator[_Edit]:
    """Shortened weekdays beside another one, hours or a colon; *Sun* alone may be anything."""
    found = list(_weekday_form().finditer(text))
    for place, match in enumerate(found):
        ahead = found[place + 1] if place + 1 < len(found) else None
        behind = found[place - 1] if place else None
        joined = ahead is not None and _between_days().fullmatch(text, match.end(), ahead.start())
        after = behind is not None and _between_days().fullmatch(text, behind.end(), match.start())
        if joined or after or BESIDE_DAY.match(text, match.end()):
            stop = "." if match.group().endswith(".") and match.end() == len(text) else ""
            yield _Edit(match.start(), match.end(), _weekday_names()[match[1]] + stop)
        if ahead is not None and joined and text[match.end() : ahead.start()].strip() == "-":
            yield _Edit(match.end(), ahead.start(), " to ")
