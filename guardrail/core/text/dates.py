"""Dates, times of day, and the time for which a statement holds."""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from enum import StrEnum
from functools import cache
from operator import itemgetter
from typing import NamedTuple, TypeVar

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.units import Bound
from guardrail.core.text.words import plain, remembered

T = TypeVar("T")

DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
YEAR = r"(?P<year>\d{3,4})(?!\d)(?![.,]\d)"
RECENT = r"(?:1[0-9]|20)\d\d"
ERA = r"(?:\s*(?P<era>(?-i:BCE?|B\.C\.|CE|AD|A\.D\.)))?"


GREGORIAN = 1924
"""From here on dates are of the calendar of today everywhere."""

TIME_OF_DAY = re.compile(r"(?:[T ]\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?)?")
"""What may follow the date of a point in time."""


class Date(NamedTuple):
    """A point or period in time; ``month`` and ``day`` are None if not given.

    They are as written, and may be none of the calendar's: *31 June 2024*, *2025-13-01*.

    Attributes:
        year: Astronomical year; 1 BC is 0. None for a day or month of no year.
        month: From 1 to 12; of a season its first.
        day: From 1 to 31.
        span: Years covered, 1 for a year, 10 for a decade, 100 for a century.
        months: Months covered if ``month`` is given, 3 for a season.
        start: Offset in the text it was found in.
        end: Offset past its end.
        swapped: The other reading of a date such as 07/08/1593, as (month, day).
        weekday: The day of the week written before it, from Monday as 0; part of the text.
        bound: What it is put as: *by 30 June* is at most, *before 1 July* is below.
    """

    year: int | None
    month: int | None = None
    day: int | None = None
    span: int = 1
    months: int = 1
    start: int = 0
    end: int = 0
    swapped: tuple[int, int] | None = None
    weekday: int | None = None
    bound: Bound = Bound.EXACT

    @property
    def real(self) -> Date:
        """What of it the calendar has: of 31 June the month, of a month 13 the year."""
        if self.month is None or not 1 <= self.month <= 12:
            return self._replace(month=None, day=None)
        # Of no year: those of a leap year
        days = range(1, monthrange(self.year or 2000, self.month)[1] + 1)
        return self if self.day is None or self.day in days else self._replace(day=None)

    @property
    def falls_on(self) -> int | None:
        """Its day of the week, as written or else by the calendar, from Monday as 0."""
        year, month, day = self.real[:3]
        if self.weekday is not None or not (year and month and day) or year < GREGORIAN:
            return self.weekday
        return date(year, month, day).weekday()


class Agreement(StrEnum):
    """How what a text tells relates to what is held as evidence.

    ``OPEN`` where the two do not compare, or the text tells more than is held.
    """

    SAME = "same"
    OPEN = "open"
    CONFLICT = "conflict"


def _measured() -> str:
    """What stands behind an amount and not behind a year: *1299 dollars*, *1800 kg*."""
    names = [*lexicon("numbers")["scales"], "people"]
    for measured in (*lexicon("units")["measures"].values(), lexicon("currencies")["currencies"]):
        for unit in measured:
            names += [word for word in unit["words"] if word.endswith(("s", "feet"))]
            names += [sign for sign in unit.get("symbols", ()) if sign[0].islower() or sign[1:]]
    joined = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return rf"(?-i:(?:{joined})\b(?! [A-Z]))"


@remembered(4_096)
def names_weekday(text: str) -> bool:
    """True if a text names a day of the week, or a group of them: *Mon*, *Saturdays*, *daily*."""
    return _day_form(cell=False).search(plain(text)) is not None


@cache
def _day_form(*, cell: bool) -> re.Pattern[str]:
    """A day, a range or a group of days; shortened in any case in a cell, else with a capital."""
    calendar = lexicon("calendar")
    parts = (calendar["weekdays"], calendar["day_groups"], calendar["days_through"])
    days, groups, through = map("|".join, parts)
    short = [form.title() for form in calendar["weekday_forms"]]
    if cell:
        short += [day[:2] for day in calendar["weekdays"]]
    name = rf"(?:(?i:{days})s?|{'(?i:' if cell else '(?:'}{'|'.join(short)}))"
    last = rf"(?:\s?(?:{through})\s?(?P<last>{name})\.?)?"
    return re.compile(rf"\b(?:(?P<group>(?i:{groups}))|(?P<first>{name})\.?{last})(?!\w)")


def find_weekdays(text: str, *, cell: bool = False) -> list[tuple[frozenset[int], int, int]]:
    """Days of the week from Monday as 0, each with offsets; a range or group has all its days."""
    calendar, found = lexicon("calendar"), []
    for match in _day_form(cell=cell).finditer(plain(text)):
        days = calendar["day_groups"].get((match["group"] or "").lower())
        if not days:
            starts = [day[:2] for day in calendar["weekdays"]]
            ends = match["first"], match["last"] or match["first"]
            first, last = (starts.index(name[:2].lower()) for name in ends)
            days = [day % 7 for day in range(first, last + 1 + 7 * (last < first))]
        found.append((frozenset(days), *match.span()))
    return found


def weekday_runs(text: str) -> list[tuple[frozenset[int], int, int]]:
    """Days of the week that belong together, with offsets: *Mondays, Tuesdays and Friday*."""
    runs: list[tuple[frozenset[int], int, int]] = []
    for days, start, end in find_weekdays(text):
        if runs and re.fullmatch(r"[\s,/&+]*(?:and )?(?:on )?", text[runs[-1][2] : start]):
            held, first, _ = runs.pop()
            days, start = days | held, first
        runs.append((days, start, end))
    return runs


@remembered(4_096)
def days_of_cell(value: str) -> frozenset[int]:
    """The days of a cell that names nothing else: *Fri*, *mo-fr*; none of *Sun* or *fr, th*."""
    if len(value) > 80 or value in lexicon_set("calendar", "homonyms"):
        return frozenset()
    found, rest = find_weekdays(value, cell=True), value
    several = any(len(days) > 1 for days, *_ in found)
    for _, start, end in reversed(found):
        if not several and not re.search(r"[A-Za-z]{3}", value[start:end]):
            return frozenset()
        rest = rest[:start] + rest[end:]
    alone = re.fullmatch(r"(?:[\s,;/&+]|and)*", rest) is not None
    return frozenset[int]().union(*(days for days, *_ in found)) if alone else frozenset()


def days_in_full(value: str) -> str:
    """A cell of days as a judge reads it best: *Friday*, *Mondays, Tuesdays*; empty of others."""
    days = sorted(days_of_cell(value))
    if not 0 < len(days) < 7:
        return ""
    names = [lexicon("calendar")["weekdays"][day].title() for day in days]
    return names[0] if len(names) == 1 else ", ".join([f"{name}s" for name in names])


@cache
def calendar_words() -> frozenset[str]:
    """Names of months, days and seasons, folded."""
    calendar = lexicon("calendar")
    days = [*calendar["weekdays"], *(f"{day}s" for day in calendar["weekdays"])]
    return frozenset([*calendar["months"], *days, *calendar["seasons"]])


@cache
def _forms(yearless: bool) -> tuple[re.Pattern[str], ...]:
    calendar = lexicon("calendar")
    months = "|".join(f"{month}|{month[:3]}\\.?" for month in calendar["months"]) + "|sept\\.?"
    months = rf"(?!(?-i:may|march)\b(?! \d))(?:{months})"  # under 18 may enter
    seasons = "|".join(calendar["seasons"])
    part = rf"(?:\b(?P<part>{'|'.join(calendar['parts'])})[\s-]+)?"
    iso = (
        r"(?<![\d-])(?P<sign>-?)(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?!\d)"
        r"(?:T00:00(?::00(?:\.0+)?)?Z?(?![\d:]))?"
    )
    compact = (
        r"(?<![\d.,-])(?P<year>(?:19|20)\d\d)(?P<month>0[1-9]|1[0-2])"
        r"(?P<day>0[1-9]|[12]\d|3[01])(?![\d.,-])"
    )
    ordinals = "|".join([*list(lexicon("numbers")["ordinals"])[:4], "1st", "2nd", "3rd", "4th"])
    quarter = (
        rf"(?<!\w)(?:Q(?P<q>[1-4])|(?P<quarter>{ordinals}) quarter)"
        rf"(?:(?:\s+(?:of\s+)?|[-/]){YEAR})?(?!\w)"
    )
    forms: tuple[str, ...] = (
        iso,
        compact,
        quarter,
        rf"(?<!\d){DAY}\s+(?:of\s+)?(?P<name>{months})\b,?\s+(?:of\s+)?{YEAR}{ERA}",
        rf"\b(?P<name>{months})\s+{DAY}(?:\s*,)?\s+{YEAR}{ERA}",
        r"(?<![\d/.])(?P<a>[0-3]?\d)[/.](?P<b>[0-3]?\d)[/.](?P<year>\d{4})(?![\d/])",
        rf"\b(?P<name>{months})\b,?\s+(?:of\s+)?{YEAR}{ERA}",
        r"(?<![\d-])(?P<year>[12]\d{3})-(?P<month>0[1-9]|1[0-2])(?![\d-])",
        rf"\b(?P<season>{seasons})\s+(?:of\s+)?{YEAR}",
        rf"{part}(?<!\d)(?P<decade>\d{{3}}0)'?s\b",
        rf"{part}(?P<century>\d{{1,2}})(?:st|nd|rd|th)[\s-]+century\b(?:\s*(?P<era>(?-i:BCE?)))?",
        r"(?<!\d)(?P<year>\d{1,4})\s*(?P<era>(?-i:BCE?|B\.C\.))",
        rf"(?<![\d.,/:$£€#-])(?P<year>{RECENT})(?=-{RECENT}\b(?!-))",
        rf"(?<=\d{{4}}-)(?<!\d{{5}}-)(?P<year>{RECENT})(?![\d/:%-])",
        rf"(?<![\d.,/:$£€#-])(?<!\bat )(?P<year>{RECENT})(?![\d/:%]|[.,-]\d|\s*{_measured()})",
    )
    if yearless:
        forms = (
            *forms,
            rf"(?<!\d){DAY}\s+(?:of\s+)?(?P<name>{months})\b",
            rf"\b(?P<name>{months})\s+{DAY}(?![\d:.,]\d|\d)",
        )
    return tuple(re.compile(form, re.IGNORECASE) for form in forms)


def find_dates(text: str, *, yearless: bool = False) -> list[Date]:
    """All dates of a text, in order, not overlapping; the fullest reading of each.

    With ``yearless`` a day of a month counts without a year.
    """
    text = plain(text)
    found = _first_matches(text, _forms(yearless), _read) if re.search(r"\d", text) else []
    for n, when in enumerate(found):
        before = text[max(0, when.start - 40) : when.start]
        bounds = (bound for bound, form in _bounds() if form.search(before))
        found[n] = _with_weekday(when, text)._replace(bound=next(bounds, Bound.EXACT))
    return found


def _with_weekday(when: Date, text: str) -> Date:
    """A date with the one day of the week before it; none of several days or a span of dates."""
    before = text[max(0, when.start - 40) : when.start]
    if when.day is None or not before[-1:].isspace() or through().match(text[when.end :]):
        return when
    *others, (days, start, end) = find_weekdays(before) or [(frozenset[int](), 0, 0)]
    apart = not others or start - others[-1][2] > len(" and ")
    close = re.fullmatch(r",?\s(?:the\s)?", before[end:]) and before[end - 1] != "s"
    if len(days) != 1 or not apart or not close:
        return when
    return when._replace(weekday=min(days), start=when.start - len(before) + start)


@cache
def _bounds() -> tuple[tuple[Bound, re.Pattern[str]], ...]:
    """What each bound is put as, right before a date: *no later than*, *before*."""
    form = r"\b(?:{}) (?:the )?(?:\w{{3,6}}day,? )?$"
    bounds = lexicon("calendar")["day_bounds"].items()
    return tuple((Bound(n), re.compile(form.format("|".join(w)), re.I)) for n, w in bounds)


def _first_matches(
    text: str, forms: Iterable[re.Pattern[str]], read: Callable[[re.Match[str]], T | None]
) -> list[T]:
    """What several forms match in a text and ``read`` knows, in its order, not overlapping.

    Each form is looked for in what those before it have left.
    """
    found: list[tuple[int, int, T]] = []
    for form in forms:
        for match in form.finditer(text):
            start, end = match.span()
            place = bisect_left(found, end, key=itemgetter(0))
            apart = place == 0 or found[place - 1][1] <= start
            if apart and (item := read(match)) is not None:
                found.insert(place, (start, end, item))
    return list(map(itemgetter(2), found))


def parse_date(value: str) -> Date | None:
    """The date that a value consists of, None where it is more or something else.

    A first of January counts as its year alone: Wikidata writes dates known to the year so.
    """
    text = value.strip()
    dates = find_dates(text)
    if len(dates) != 1 or dates[0].start != 0 or not TIME_OF_DAY.fullmatch(text, dates[0].end):
        return None
    date = dates[0]
    if (date.month, date.day) == (1, 1) and text[:1].isdigit() and "-" in text:
        return date._replace(month=None, day=None)
    return date


def _read(match: re.Match[str]) -> Date | None:
    calendar = lexicon("calendar")
    parts = match.groupdict()
    start, end = match.span()
    before_christ = (parts.get("era") or "").upper().startswith("B")
    first, length = calendar["parts"].get((parts.get("part") or "").lower(), (0.0, 1.0))
    if parts.get("decade"):
        year = int(parts["decade"]) + int(first * 10)
        return Date(year, span=int(length * 10), start=start, end=end)
    if parts.get("century"):
        century = int(parts["century"])
        year = 1 - century * 100 if before_christ else (century - 1) * 100 + 1
        return Date(year + int(first * 100), span=int(length * 100), start=start, end=end)
    signed = int(parts["year"]) if parts.get("year") else None
    if signed is not None and before_christ:
        signed = 1 - signed
    elif signed is not None and parts.get("sign") == "-":
        signed = -signed
    if parts.get("season"):
        month, last = calendar["seasons"][parts["season"].lower()]
        return Date(signed, month, months=last - month + 1, start=start, end=end)
    if quarter := parts.get("q") or parts.get("quarter"):
        ordinals = lexicon("numbers")["ordinals"]
        number = int(ordinals.get(quarter.lower(), 0) or quarter[:1])
        return Date(signed, 3 * number - 2, months=3, start=start, end=end)
    month, day, swapped = _month_and_day(parts, calendar["months"])
    if signed is None and day not in range(1, 32):
        return None
    return Date(signed, month, day, swapped=swapped, start=start, end=end)


def _month_and_day(
    parts: Mapping[str, str], months: list[str]
) -> tuple[int | None, int | None, tuple[int, int] | None]:
    month = day = None
    if parts.get("name"):
        month = next(n for n, name in enumerate(months, 1) if name[:3] == parts["name"].lower()[:3])
    elif parts.get("month"):
        month = int(parts["month"])
    if parts.get("day"):
        day = int(parts["day"])
    if not parts.get("a"):
        return month, day, None
    day, month = int(parts["a"]), int(parts["b"])
    if month > 12:
        return day, month, None
    return month, day, (day, month) if day <= 12 else None


def agreement(claimed: Date, known: Date) -> Agreement:
    """Compare a date in a text with a date in the evidence; ``OPEN`` where the text tells more.

    Of a date that is held and that no calendar has, only the same agrees to the day.
    """
    found = _agreement(claimed, known)
    days = claimed.weekday, known.falls_on
    if found is not Agreement.CONFLICT and None not in days and days[0] != days[1]:
        # Of no year, it may be an anniversary of what is held.
        anniversary = claimed.year is None and known.weekday is None
        return Agreement.OPEN if anniversary else Agreement.CONFLICT
    if found is Agreement.OPEN or {claimed.bound, known.bound} == {Bound.EXACT}:
        return found
    mine, held = _limit(claimed), _limit(known)
    if mine is None or held is None:
        return found
    if claimed.year is None or known.year is None:
        mine, held = mine.replace(year=2000), held.replace(year=2000)
    ends = [item.bound in (Bound.AT_LEAST, Bound.ABOVE) for item in (claimed, known)]
    if Bound.EXACT in (claimed.bound, known.bound) or ends[0] == ends[1]:
        return Agreement.SAME if mine == held else found
    if mine != held and (mine > held) == ends[0]:
        return Agreement.CONFLICT  # by 30 June, after 30 June
    return found if found is Agreement.SAME else Agreement.OPEN


def _limit(when: Date) -> date | None:
    """The first or last day that a date allows as it is put; None if there is no such day."""
    real = when.real._replace(year=when.year or 2000)
    year, month, day = _last(real)
    try:
        begin, end = date(*_first(real)), date(year, month, min(day, monthrange(year, month)[1]))
        shift = timedelta((when.bound is Bound.ABOVE) - (when.bound is Bound.BELOW))
        if when.bound is Bound.EXACT:
            return begin if begin == end else None
        return (begin if when.bound in (Bound.AT_LEAST, Bound.BELOW) else end) + shift
    except (ValueError, OverflowError):
        return None


def _agreement(claimed: Date, known: Date) -> Agreement:
    if claimed[:3] != known[:3]:
        known = known.real
    if claimed.year is not None and known.year is not None:
        if claimed.span > 1 or known.span > 1:
            inside = (
                claimed.year < known.year + known.span and known.year < claimed.year + claimed.span
            )
            if not inside:
                return Agreement.CONFLICT
            return Agreement.SAME if claimed.span >= known.span else Agreement.OPEN
        # Before Christ, vocabularies disagree on whether there is a year 0.
        shift = abs(claimed.year - known.year)
        if shift > 1 or (shift == 1 and max(claimed.year, known.year) > 0):
            return Agreement.CONFLICT
    finer = claimed.year is not None and known.year is None
    if claimed.swapped and (known.month, known.day) == claimed.swapped:
        return Agreement.SAME
    if known.swapped and (claimed.month, claimed.day) == known.swapped:
        return Agreement.OPEN  # 03/04/2026 has two readings
    if claimed.month is None:
        return Agreement.OPEN if finer else Agreement.SAME
    if known.month is None:
        return Agreement.OPEN
    last = claimed.month + claimed.months
    if not (claimed.month < known.month + known.months and known.month < last):
        return Agreement.CONFLICT
    if claimed.months < known.months:
        return Agreement.OPEN
    if claimed.day is not None and known.day is not None and claimed.day != known.day:
        return Agreement.CONFLICT
    finer = finer or (claimed.day is not None and known.day is None)
    return Agreement.OPEN if finer else Agreement.SAME


class ClockTime(NamedTuple):
    """A time of day.

    Attributes:
        minutes: Minutes since midnight.
        half: True if the half of the day is known; otherwise twelve hours later is meant as well.
        start: Offset of its first character.
        end: Offset past its last.
        zone: Minutes ahead of UTC, or the name of an unknown zone; None if no zone is given.
    """

    minutes: int
    half: bool
    start: int
    end: int
    zone: int | str | None = None

    def agreement(self, other: ClockTime) -> Agreement:
        """``OPEN`` where one zone is unknown, or another time is given with a zone alone."""
        apart = abs(self.minutes - other.minutes)
        open_ = (self.zone is None) != (other.zone is None)
        if isinstance(self.zone, int) and isinstance(other.zone, int):
            apart = abs(self.minutes - self.zone - other.minutes + other.zone) % 1440
        elif self.zone != other.zone and not open_:
            return Agreement.OPEN
        if apart == 0 or (apart == 720 and not (self.half and other.half)):
            return Agreement.SAME
        return Agreement.OPEN if open_ else Agreement.CONFLICT


@cache
def _time_forms() -> tuple[re.Pattern[str], ...]:
    words = "|".join(list(lexicon("numbers")["units"])[1:13])
    named = "|".join(lexicon("calendar")["times"])
    stamp = (
        r"(?<=\d\d-\d\d)[T ](?P<hour>[012]\d):(?P<minute>[0-5]\d)(?::\d\d(?:\.\d+)?)?"
        r"(?P<zone>Z|[+-]\d\d:?\d\d)?(?![\d:])"
    )
    zone = (
        r"(?:\s?(?:local time )?\(?(?P<zone>Z(?!\w)|(?:UTC|GMT)(?:\s?[+-]\s?\d{1,2}(?::?\d\d)?)?"
        r"|(?-i:[ECMP]T|[A-Z]{2,3}T)\b)\)?)?"
    )
    half = r"\s?(?P<half>[ap]\.m\.|[ap]\.?m\b)"
    leads = "|".join(rf"(?<=\b{word} )" for word in lexicon("calendar")["clock_leads"])
    full, minute = r"(?P<hour>[01]\d|2[0-3])", r"(?P<minute>[0-5]\d)"
    hours = r"\s?(?:h|hrs?|hours)\b"
    return tuple(
        re.compile(form, re.IGNORECASE)
        for form in (
            stamp,
            rf"\b(?P<shift>half|quarter) (?P<way>past|to) (?P<word>{words}|\d{{1,2}})(?:{half}|\b)",
            rf"(?<![\d.:])(?P<hour>[012]?\d)[:.]{minute}(?::[0-5]\d)?{half}{zone}",
            rf"(?<![\d.:])(?P<hour>[01]?\d){half}{zone}",
            rf"\b(?P<word>{words}){half}{zone}",
            rf"(?<![\d.:])(?P<hour>[012]?\d):{minute}(?::[0-5]\d)?(?:{hours})?{zone}(?![\d:])",
            rf"(?:{leads}|(?<![\d.,])(?=0\d)){full}[.h]?{minute}{hours}{zone}",
            rf"(?<=\bat ){full}(?P<bare>[.h]?){minute}(?!\d|[:.,]\d){zone}",
            rf"\b(?P<word>{words}|\d{{1,2}}) o'clock",
            rf"\b(?:(?P<shift>half|quarter) (?P<way>past|to) )?(?P<named>{named})\b",
        )
    )


def find_times(text: str) -> list[ClockTime]:
    """All times of day of a text with plain signs, in order, not overlapping."""
    return _first_matches(text, _time_forms(), _read_time)


def _read_time(match: re.Match[str]) -> ClockTime | None:
    parts = match.groupdict()
    start, end = match.span()
    hours, named = lexicon("numbers")["units"] | lexicon("calendar")["times"], parts.get("named")
    word = parts.get("word") or named or parts["hour"]
    hour = int(hours.get(word.lower(), word))
    minutes = hour * 60 + int(parts.get("minute") or 0)
    if parts.get("shift"):
        size = 30 if parts["shift"].lower() == "half" else 15
        minutes += size if parts["way"].lower() == "past" else -size
    half = (parts.get("half") or "").lower()
    if half.startswith("p") and hour < 12:
        minutes += 720
    if half.startswith("a") and hour == 12:
        minutes -= 720
    # At 1715 euros, and not at 1715 on Friday
    behind = parts.get("bare") is not None and re.match(r"[ -]?([^\s.,;:!?)]+)", match.string[end:])
    light = lexicon_set("function_words", "stop_words")
    amount = behind and behind[1].lower() not in light and not names_weekday(behind[1])
    if amount or not (named or 0 <= minutes <= 1440):
        return None
    stamp = match.group()[0] in "T "
    certain = bool(half or named) or hour > 12 or stamp or (parts.get("hour") or "").startswith("0")
    return ClockTime(minutes % 1440, certain, start + stamp, end, _zone(parts.get("zone")))


def _zone(written: str | None) -> int | str | None:
    """Minutes ahead of UTC of a zone: *Z*, *+02:00*, *UTC+2*, *CEST*; an unknown one as written."""
    if not written:
        return None
    shift = re.search(r"([+-])\s?(\d\d?):?(\d\d)?", written)
    if shift is None:
        return lexicon("calendar")["zones"].get(written.upper(), written)  # type: ignore[no-any-return]
    minutes = 60 * int(shift[2]) + int(shift[3] or 0)
    return -minutes if shift[1] == "-" else minutes


class Validity(NamedTuple):
    """A span of time, by its first and last day as (year, month, day); None for an open end."""

    first: tuple[int, int, int] | None
    last: tuple[int, int, int] | None

    def holds(self, when: date) -> bool:
        """True on a day within the span."""
        day = (when.year, when.month, when.day)
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)

    def meets(self, when: Date) -> bool:
        """True if a period of a text overlaps the span."""
        first, last = _first(when), _last(when)
        return (self.first is None or self.first <= last) and (
            self.last is None or first <= self.last
        )


def validity_of(text: str) -> Validity | None:
    """The span of a statement: *from 2017 to 2021*, *(2015-2020)*, *since 2022*, *until May 2024*.

    None if it gives no span, or has other dates: the span may be of a part of it.
    """
    text = plain(text)
    found = _spans(text)
    if len(found) != 1:
        return None
    valid, start, end = found[0]
    apart = any(
        when.year is not None and not start <= when.start < end for when in find_dates(text)
    )
    return None if apart else valid


def timeless(text: str) -> str:
    """A text without the spans of time that it gives; offsets stay."""
    for _, start, end in _spans(plain(text)):
        text = text[:start] + " " * (end - start) + text[end:]
    return text


@cache
def _lead(key: str) -> re.Pattern[str]:
    """What opens or closes a span, right before a date."""
    words = "|".join(map(re.escape, lexicon("calendar")[key]))
    return re.compile(rf"\b(?:{words})\s{{1,3}}$", re.IGNORECASE)


@cache
def through() -> re.Pattern[str]:
    """What stands between the first and the last value of a span."""
    words = "|".join(map(re.escape, lexicon("calendar")["days_through"]))
    return re.compile(rf"\s*(?:{words})\s*", re.IGNORECASE)


def _detailed(match: re.Match[str]) -> tuple[Validity, int, int] | None:
    """The span of qualifiers, such as *(end time: 2022-09-01; start time: 2014-04-01)*."""
    pairs = [item.partition(": ") for item in match.group()[1:-1].split("; ")]
    known = [({*name.lower().split()}, parse_date(value)) for name, _, value in pairs]
    names = [lexicon_set("grammar", key) & lexicon_set("grammar", "span_ends")
             for key in ("first_end", "last_end")]  # fmt: skip
    first, last = (next((d for words, d in known if d and words & ends), None) for ends in names)
    valid = Validity(first and _first(first), last and _last(last))
    return (valid, *match.span()) if any(valid) else None


def _spans(text: str) -> list[tuple[Validity, int, int]]:
    """The spans of a plain text, each with the offsets of its words and brackets."""
    form = r"\((?:[^():;]+: [^():;]+(?:; |(?=\))))+\)"
    if detailed := [span for match in re.finditer(form, text) if (span := _detailed(match))]:
        return detailed
    dates = [item for item in find_dates(text) if item.year is not None]
    found: list[tuple[Validity, int, int]] = []
    place = 0
    while place < len(dates):
        when = dates[place]
        before = text[: when.start]
        following = dates[place + 1] if place + 1 < len(dates) else None
        since, until = _lead("since").search(before), _lead("until").search(before)
        opened = since or before.endswith("(")
        valid, end = None, when.end
        if following and opened and through().fullmatch(text[when.end : following.start]):
            valid, end = Validity(_first(when), _last(following)), following.end
            place += 1
        elif since:
            valid = Validity(_first(when), None)
        elif until:
            valid = Validity(None, _last(when))
        if valid is not None:
            lead = since or until
            start = lead.start() if lead else when.start
            bracketed = text[:start].endswith("(") and text[end : end + 1] == ")"
            found.append((valid, start - bracketed, end + bracketed))
        place += 1
    return found


def _first(when: Date) -> tuple[int, int, int]:
    return when.year or 0, when.month or 1, when.day or 1


def _last(when: Date) -> tuple[int, int, int]:
    year = (when.year or 0) + when.span - 1
    month = when.month + when.months - 1 if when.month else 12
    return year, month, when.day or 31
