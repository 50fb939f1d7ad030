"""Typed values of a text, and whether two of them agree.

A value has a kind: a date, a time of day, a version, a contact or code, or a quantity of what its
unit measures. Two values compare only if their kinds do. A rounding, *about* and a converted unit
agree; a bound agrees with what keeps to it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from guardrail.core.text.dates import Agreement as Agreement
from guardrail.core.text.dates import ClockTime, Date, agreement, find_dates, find_times
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.quantities import Quantity, find_fractions, find_quantities
from guardrail.core.text.units import MONEY, Bound, Head, Unit, head_of, period
from guardrail.core.text.words import CODE, outside, plain

PHONE, MAIL, WEB = "phone number", "e-mail address", "web address"
IBAN, ISBN, COLOUR = "bank account", "book number", "colour"

CODES = {
    IBAN: re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){3,7}(?:[ ]?[A-Z0-9]{1,3})?(?!\w)"),
    ISBN: re.compile(r"(?<![\w-])97[89](?:[- ]?\d){9}[- ]?[\dX](?![\w-])"),
    COLOUR: re.compile(r"(?<!\w)#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?!\w)"),
}
"""Codes that are written with or without gaps, or in either case."""

MAIL_FORM = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
WEB_FORM = re.compile(
    r"(?<![\w@])(?:https?://|www\.|(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}/)"
    r"[^\s<>\"'|(){}\[\]]*[^\s<>\"'|(){}\[\].,;:!?]",
    re.IGNORECASE,
)
ABROAD = re.compile(r"(?<![\w+])\+\d[\d ()./-]{6,24}(?<=\d)")
AT_HOME = re.compile(
    r"(?<![\w.,:+/-])(?!\d{4} ?- ?\d{4}(?!\d)|[12]\d{3}-)"  # hours, such as 0900-1700, and years
    r"(?!\d{1,2}([ /-])\d{1,2}\1\d{2}(?:\d{2})?(?!\d))"  # days
    r"(?:\(?0\d{1,5}\)?(?:[ /-]{1,3}\d{2,}){1,5}|\(\d{3}\) ?\d{3}-\d{4}|\d{1,5}(?:-\d+){2,5})"
    r"(?![\w/-]|[.,]\d)"
)
"""Groups of figures that write no number: the first begins with 0 or is in brackets, or three
and more are joined by hyphens, as in numbers of books as well."""

ABROAD_DIGITS, HOME_DIGITS, MOST_DIGITS = 9, 7, 15
"""Fewest figures with a code of a country and without; most figures (ITU-T E.164)."""


class Contact(NamedTuple):
    """A phone number, an address or a code.

    Attributes:
        form: ``PHONE``, ``MAIL``, ``WEB``, or one of ``CODES``.
        groups: The figures of a phone number, group by group; an address or code alone, written
            plainly.
        start: Offset of its first character.
        end: Offset past its last.
    """

    form: str
    groups: tuple[str, ...]
    start: int
    end: int

    def same(self, known: Contact) -> bool | None:
        """Whether this names the same as another; None where one may be a part of the other."""
        if self.form != known.form:
            return None
        mine, theirs = "".join(self.groups), "".join(known.groups)
        if self.form == PHONE:
            return any(_ends_alike(text, theirs) for text in self._beginnings()) or any(
                _ends_alike(text, mine) for text in known._beginnings()
            )
        if self.form in CODES:
            return mine == theirs
        within = mine.startswith(f"{theirs}/") or theirs.startswith(f"{mine}/")
        return None if within else mine == theirs

    def _beginnings(self) -> Iterator[str]:
        """The number, and what it is where its last groups count something else: *24 hours*."""
        for place in range(len(self.groups), 0, -1):
            yield "".join(self.groups[:place])


def find_contacts(text: str) -> Iterator[Contact]:
    """The phone numbers and addresses of a plain text, those of one form after another's."""
    for form, pattern in ((MAIL, MAIL_FORM), (WEB, WEB_FORM)):
        for match in pattern.finditer(text):
            plain = re.sub(r"^https?://|^www\.", "", match.group().lower())
            yield Contact(form, (plain.removeprefix("www.").rstrip("/"),), *match.span())
    for form, pattern in CODES.items():
        for match in pattern.finditer(text):
            code = re.sub(r"[ -]", "", match.group()).upper()
            if form == COLOUR and len(code) == 4:
                code = "#" + "".join(sign * 2 for sign in code[1:])
            yield Contact(form, (code,), *match.span())
    for pattern, least in ((ABROAD, ABROAD_DIGITS), (AT_HOME, HOME_DIGITS)):
        for match in pattern.finditer(text):
            groups = tuple(re.findall(r"\d+", match.group()))
            if least <= len("".join(groups)) <= MOST_DIGITS:
                yield Contact(PHONE, groups, *match.span())


def _ends_alike(one: str, other: str) -> bool:
    """Whether two numbers are the same, one of them perhaps without the code of its country."""
    short, long = sorted((one.lstrip("0"), other.lstrip("0")), key=len)
    return short == long or (len(short) >= HOME_DIGITS and long.endswith(short))


VERSION = re.compile(
    r"(?<![\w.,])(?![0-3]?\d\.[01]?\d\.(?:19|20)\d\d(?![\w.]))(?!\d{1,3}(?:\.\d{3}){2,}(?![\w.]))v?\d+\.\d+\.\d+(?:[.-]\w+)*(?![\w.]{0,40}\d)"
    r"|(?<![\w.,])v\d+(?:\.\d+)*\b"
)
VERSION_WORD = re.compile(
    r"(?:\b(?:version|release|v)\s?|[<>≥≤]=?\s?)(\d+(?:\.\d+)+)"
    r"|(?<![\w.])(\d+(?:\.\d+)+)(?= or (?:newer|later|older|earlier)\b)",
    re.IGNORECASE,
)


CONVERTED = 0.012
"""Relative tolerance between units: 330 metres are 1,083 feet."""


CALENDAR = 0.025
"""The same between units of time, as months and years differ in length."""


class Version(NamedTuple):
    """A version number, its parts as written."""

    parts: tuple[str, ...]
    start: int
    end: int


_Value = Date | ClockTime | Version | Quantity | Contact


class TypedValue(NamedTuple):
    """A value with its kind and its place in the text.

    Attributes:
        kind: ``date``, ``time of day``, ``version``, ``number``, what its unit measures, or the
            form of a phone number or address.
        text: As written.
        start: Offset of its first character.
        end: Offset past its last.
        value: What it is.
    """

    kind: str
    text: str
    start: int
    end: int
    value: _Value


def find_values(text: str, unit: Unit | None = None) -> list[TypedValue]:
    """All typed values of a text, in order, not overlapping.

    Numbers without a unit have ``unit``, which the label of a property may tell.
    """
    if not re.search(r"\w", text):
        return []
    text = plain(text)
    found: list[TypedValue] = []
    measured = unit is not None and text.strip().isdigit()  # 1790 euros are no year
    codes = [match.span() for match in CODE.finditer(text)]
    values: list[tuple[str, Iterable[_Value]]] = [
        ("contact", find_contacts(text)),
        ("version", _versions(text)),
        ("date", () if measured else outside(find_dates(text, yearless=True), codes)),
        ("time of day", find_times(text)),
        ("percent", find_fractions(text)),
    ]
    _add(found, text, values)
    quantities = find_quantities(text, [*((item.start, item.end) for item in found), *codes])
    if unit is not None:
        quantities = [item._replace(unit=item.unit or unit) for item in quantities]
    _add(found, text, [("number", quantities)])
    return found


def _add(
    found: list[TypedValue], text: str, values: Iterable[tuple[str, Iterable[_Value]]]
) -> None:
    """Add the values that overlap none found before, in the order of the text."""
    for name, some in values:
        for value in some:
            start, end = value.start, value.end
            place = bisect_left(found, end, key=attrgetter("start"))
            if place and found[place - 1].end > start:
                continue
            kind = name
            if isinstance(value, Contact):
                kind = value.form
            elif name == "number" and isinstance(value, Quantity) and value.unit:
                kind = value.unit.measure
            found.insert(place, TypedValue(kind, text[start:end], start, end, value))


def _versions(text: str) -> Iterator[Version]:
    for match in VERSION.finditer(text):
        yield Version(tuple(match.group().lstrip("v").split(".")), *match.span())
    for match in VERSION_WORD.finditer(text):
        group = 1 if match[1] else 2
        yield Version(tuple(match[group].split(".")), *match.span(group))


def values_of(written: str, label: str) -> list[TypedValue]:
    """The typed values of a fact or cell, read with the label of its property or column.

    The label may give unit and scale (*revenue (in thousands of EUR)*), a bound (*passengers
    (max)*) and what the value is a rate of (*price_ct_per_kwh*).
    """
    head = head_of(label)
    cell = _plain_cell(written)
    found = find_values(cell, head.unit)
    if cell != written.strip():
        found = [item._replace(text=written, start=0, end=len(written)) for item in found]
    return [_headed(item, head) for item in found]


def _headed(item: TypedValue, head: Head) -> TypedValue:
    quantity = item.value
    if not isinstance(quantity, Quantity):
        return item
    if head.scale != 1.0 and quantity.unit == head.unit and not any(map(str.isalpha, item.text)):
        sizes = {name: getattr(quantity, name) * head.scale for name in ("low", "high", "step")}
        quantity = quantity._replace(**sizes)
    if quantity.bound is Bound.EXACT:
        quantity = quantity._replace(bound=head.limit)
    if not lexicon_set("numbers", "changes").isdisjoint(head.name.split()):
        quantity = quantity._replace(change=True)
    return item._replace(value=quantity._replace(per=quantity.per or head.per))


def _plain_cell(written: str) -> str:
    """A cell in the notation of prose; empty if it holds no value."""
    cell = written.strip()
    if cell.casefold() in lexicon_set("numbers", "missing"):
        return ""
    if re.fullmatch(r"\(\d[\d.,' ]*\)", cell):
        return f"-{cell[1:-1]}"
    span = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", cell)
    if span and any(span.groups()):
        parts = zip(span.groups(), ("days", "hours", "minutes", "seconds"), strict=True)
        return " ".join(f"{size} {unit}" for size, unit in parts if size)
    return cell


def compare(claimed: TypedValue, known: TypedValue) -> Agreement:
    """Whether a stated value agrees with one of the evidence.

    ``OPEN`` where they do not compare: other kinds, one a bound that leaves room, a difference, or
    stated more precisely than the evidence.
    """
    if isinstance(claimed.value, Date) and isinstance(known.value, Date):
        return agreement(claimed.value, known.value)
    if isinstance(claimed.value, ClockTime) and isinstance(known.value, ClockTime):
        return claimed.value.agreement(known.value)
    if isinstance(claimed.value, Version) and isinstance(known.value, Version):
        return _same(_begins(claimed.value.parts, known.value.parts))
    if isinstance(claimed.value, Contact) and isinstance(known.value, Contact):
        same = claimed.value.same(known.value)
        return Agreement.OPEN if same is None else _same(same)
    if isinstance(claimed.value, Quantity) and isinstance(known.value, Quantity):
        found = _compare_quantities(claimed.value, known.value)
        change = claimed.value.change and not known.value.change
        apart = is_case(claimed, known) or change or _has_thousands(claimed, known)
        return Agreement.OPEN if found is not Agreement.SAME and apart else found
    return _across(claimed, known)


def _has_thousands(*amounts: TypedValue) -> bool:
    """Whether one amount is the other if its full stop separates thousands: *2.490 euros*."""
    values = [item.value for item in amounts if isinstance(item.value, Quantity)]
    small, large = sorted(max(map(abs, value.ends)) for value in values)
    dotted = any(re.search(r"(?<![\d.,])\d{1,3}\.\d{3}(?![\d.,])", item.text) for item in amounts)
    dotted = dotted and amounts[0].kind.startswith(MONEY)
    return dotted and abs(large - 1_000 * small) <= 1e-9 * large


def is_case(claimed: TypedValue, known: TypedValue) -> bool:
    """Whether a value describes what a range or bound decides on: *a 5-tonne van*, *over 3.5 t*."""
    held = known.value
    written = "-" in claimed.text and re.fullmatch(r"\d[\d.,]*-[a-z]+", claimed.text)
    if not written or not isinstance(held, Quantity):
        return False
    bound = held.low != held.high or held.bound not in (Bound.EXACT, Bound.ABOUT)
    return bound and (
        known.kind == claimed.kind or (claimed.kind, known.kind) == ("time", "number")
    )


def is_one(claimed: TypedValue, known: TypedValue) -> bool:
    """Whether two values are one in two notations, apart from what each is put as.

    A rounding is another value, and so are a part of a date and a time whose half is open.
    """
    if claimed.kind != known.kind:
        return False
    mine, held = claimed.value, known.value
    if isinstance(mine, ClockTime) and isinstance(held, ClockTime):
        return mine._replace(half=True).agreement(held._replace(half=True)) is Agreement.SAME
    if isinstance(mine, Date) and isinstance(held, Date):
        return mine == held._replace(
            start=mine.start, end=mine.end, weekday=mine.weekday, bound=mine.bound
        )
    if not isinstance(mine, Quantity) or not isinstance(held, Quantity) or mine.per != held.per:
        return False
    (low, high), (least, most) = held.ends, mine.ends
    size = max(abs(most), abs(high))
    off = 1e-9 * size if mine.unit == held.unit else min(_half_digit(mine), CONVERTED * size)
    return abs(least - low) <= off and abs(most - high) <= off


def _same(agrees: bool) -> Agreement:
    return Agreement.SAME if agrees else Agreement.CONFLICT


def _begins(claimed: tuple[str, ...], known: tuple[str, ...]) -> bool:
    size = min(len(claimed), len(known))
    return claimed[:size] == known[:size]


def _across(claimed: TypedValue, known: TypedValue) -> Agreement:
    """Values of two kinds: equal figures agree, such as a year and a number; else open."""
    if any(isinstance(item.value, Contact) and item.kind != PHONE for item in (claimed, known)):
        return Agreement.OPEN  # figures of an address are none of their own
    spans = {type(item.value): item.value for item in (claimed, known)}
    length, clock = spans.get(Quantity), spans.get(ClockTime)
    if isinstance(length, Quantity) and isinstance(clock, ClockTime) and length.unit:
        timed = length.unit.measure == "time" and length.ends[0] == 60 * clock.minutes
        return Agreement.SAME if timed else Agreement.OPEN  # 2:30 is written for 2.5 hours
    version = next(
        (item.value for item in (claimed, known) if isinstance(item.value, Version)), None
    )
    if version is not None:
        parts = [tuple(re.findall(r"\w+", item.text.lstrip("v"))) for item in (claimed, known)]
        return Agreement.SAME if _begins(*parts) else Agreement.OPEN
    figures = [re.sub(r"[^\d.]", "", item.text).strip(".") for item in (claimed, known)]
    return Agreement.SAME if figures[0] and figures[0] == figures[1] else Agreement.OPEN


def _compare_quantities(claimed: Quantity, known: Quantity) -> Agreement:
    mine_of = claimed.unit.measure if claimed.unit else ""
    held_of = known.unit.measure if known.unit else ""
    shared = bool(claimed.unit and claimed.unit.shared) or bool(known.unit and known.unit.shared)
    money = shared and mine_of.startswith(MONEY) and held_of.startswith(MONEY)
    if mine_of != held_of and not money:
        # A number without a unit may be of any measure; a share is written 0.35 or 35 %.
        sizes, bare = {mine_of: claimed, held_of: known}, "" in (mine_of, held_of)
        if {*sizes} == {"", "percent"} and 0 < abs(sizes[""].low) < 1 <= abs(sizes["percent"].low):
            off = abs(100 * sizes[""].low - sizes["percent"].low)
            return Agreement.SAME if off <= 50 * sizes[""].step else Agreement.OPEN
        if bare and claimed.low == -known.low != 0:
            return Agreement.CONFLICT
        same = bare and (claimed.low, claimed.high) == (known.low, known.high)
        return Agreement.SAME if same else Agreement.OPEN
    if claimed.per and known.per and claimed.per != known.per:
        periods = period(claimed.per), period(known.per)
        if periods[0] is None or periods[1] is None:
            return Agreement.OPEN
        factor = periods[0].factor / periods[1].factor
        low, high = known.low * factor, known.high * factor
        same = abs(claimed.low - low) <= CALENDAR * abs(low) and claimed.high <= high * (
            1.0 + CALENDAR
        )
        return _same(same)
    (low, high), mine = known.ends, claimed.ends
    if (claimed.worded or known.worded) and low == high and low * mine[0] < 0:
        low = high = -low  # a loss of 2.4 million is -2.4 million
    slack = _slack(claimed, known)
    if claimed.low != claimed.high:
        if low == high and known.bound not in (Bound.EXACT, Bound.ABOUT):
            return _compare_quantities(known, claimed)
        close = abs(mine[0] - low) <= slack and abs(mine[1] - high) <= slack
        if known.low == known.high:
            inside = mine[0] - slack <= low <= mine[1] + slack
            return Agreement.SAME if inside else Agreement.CONFLICT
        return _same(close)
    value = mine[0]
    limits = (Bound.AT_MOST, Bound.AT_LEAST)
    if low == high and claimed.bound is known.bound not in (Bound.EXACT, Bound.ABOUT):
        return _same(abs(value - low) <= slack)
    if low == high and value == -low != 0:
        return Agreement.CONFLICT
    if low == high and claimed.bound in (Bound.EXACT, Bound.ABOUT) and known.bound in limits:
        if abs(value - low) <= slack:
            return Agreement.SAME
        beyond = value > high if known.bound is Bound.AT_MOST else value < low
        return Agreement.CONFLICT if beyond else Agreement.OPEN
    if claimed.bound in (Bound.AT_LEAST, Bound.ABOVE):
        if known.bound in (Bound.AT_MOST, Bound.BELOW):
            return Agreement.OPEN
        reached = claimed.bound is Bound.AT_LEAST or known.bound is Bound.ABOVE
        kept = high >= value - slack if reached and low == high else high > value
        near = high <= 3 * max(value, 1e-9) and low >= value - slack  # all of a range is above
        return (Agreement.SAME if near else Agreement.OPEN) if kept else Agreement.CONFLICT
    if claimed.bound in (Bound.AT_MOST, Bound.BELOW):
        if known.bound in (Bound.AT_LEAST, Bound.ABOVE):
            return Agreement.OPEN
        reached = claimed.bound is Bound.AT_MOST or known.bound is Bound.BELOW
        kept = low <= value + slack if reached and low == high else low < value
        near = low >= value / 3 and high <= value + slack
        return (Agreement.SAME if near else Agreement.OPEN) if kept else Agreement.CONFLICT
    if low - slack <= value <= high + slack:
        return Agreement.SAME if low == high or value in (low, high) else Agreement.OPEN
    if known.bound not in (Bound.EXACT, Bound.ABOUT):
        return Agreement.OPEN
    return Agreement.CONFLICT


def _slack(claimed: Quantity, known: Quantity) -> float:
    """By how much two numbers may differ, in the first unit of their measure."""
    factor = claimed.unit.factor if claimed.unit else 1.0
    held_factor = known.unit.factor if known.unit else 1.0
    size = max(abs(claimed.high * factor), abs(known.high * held_factor))
    digits = len(f"{abs(claimed.high):.10g}".replace(".", "").strip("0"))
    rounded = 0.5 * claimed.step * factor if digits >= 2 or claimed.step < 1.0 else 0.0
    # Relative rounding at most of figures with closing zeros: 546,000 for 546,321. 1,900 euros is
    # no rounding of 1,850, unless it says about.
    plausible = claimed.scaled or claimed.step <= 1.0 or rounded <= 0.0025 * size
    coarser = claimed.step * factor > known.step * held_factor
    slack = rounded if coarser and plausible else 1e-9 * size
    if claimed.unit != known.unit and claimed.unit and known.unit:
        share = CALENDAR if claimed.unit.measure == "time" else CONVERTED
        # The same at most for a rounding to whole units: one hour is no round figure for 90 minutes
        slack = max(slack, share * size, min(_half_digit(claimed), 0.05 * size))
        if claimed.unit.offset or known.unit.offset:
            slack = max(slack, 0.6 * max(claimed.step * factor, known.step * held_factor))
    if Bound.ABOUT in (claimed.bound, known.bound):
        slack = max(slack, 0.1 * size, rounded)
    return slack


def _half_digit(quantity: Quantity) -> float:
    """Half of the last written digit, in the first unit of its measure."""
    digit = 10.0 ** -len(f"{quantity.high:.10g}".partition(".")[2])
    return 0.5 * digit * (quantity.unit.factor if quantity.unit else 1.0)
