"""Typed values of a text, and whether two of them agree.

A value has a kind: a date, a time of day, a version, or a quantity of what its unit measures. Two
values compare only where their kinds do. A rounding, *about* and a converted unit agree; a bound
agrees with what keeps to it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from guardrail.text import dates
from guardrail.text.clock_times import ClockTime, find_times
from guardrail.text.dates import Date, find_dates
from guardrail.text.quantities import Bound, Quantity, find_quantities
from guardrail.text.units import Unit
from guardrail.text.words import plain

__all__ = ["Agreement", "TypedValue", "Version", "compare", "find_values"]

VERSION = re.compile(
    r"(?<![\w.,])v?\d+\.\d+\.\d+(?:[.-]\w+)*(?![\w.]*\d)|(?<![\w.,])v\d+(?:\.\d+)*\b"
)
VERSION_WORD = re.compile(r"\b(?:version|release|v)\s?(\d+(?:\.\d+)+)", re.IGNORECASE)

CONVERTED = 0.012
"""Share by which a quantity in another unit may differ: 330 metres are 1,083 feet."""

CALENDAR = 0.025
"""The same between units of time, as months and years differ in length."""

BLURRED = 0.1
"""Share by which *about* may be off, beyond the rounding of its digits."""


class Agreement(StrEnum):
    """How a value that is told relates to one that is held."""

    SAME = "same"
    OPEN = "open"
    CONFLICT = "conflict"


class Version(NamedTuple):
    """A version number, its parts as written."""

    parts: tuple[str, ...]
    start: int
    end: int


class TypedValue(NamedTuple):
    """A value with its kind and its place in the text.

    Attributes:
        kind: ``date``, ``time of day``, ``version``, ``number``, or what its unit measures.
        text: As written.
        start: Offset of its first character.
        end: Offset past its last.
        value: What it is.
    """

    kind: str
    text: str
    start: int
    end: int
    value: Date | ClockTime | Version | Quantity


def find_values(text: str, unit: Unit | None = None) -> list[TypedValue]:
    """All typed values of a text, in order, not overlapping.

    Args:
        text: Any text.
        unit: That of numbers without one; the label of a property may tell it.
    """
    if not any(sign.isalnum() for sign in text):
        return []
    text = plain(text)
    found: list[TypedValue] = []

    def add(kind: str, value: Date | ClockTime | Version | Quantity) -> None:
        start, end = value.start, value.end
        if not any(start < one.end and one.start < end for one in found):
            found.append(TypedValue(kind, text[start:end], start, end, value))

    for match in VERSION.finditer(text):
        add("version", Version(tuple(match.group().lstrip("v").split(".")), *match.span()))
    for match in VERSION_WORD.finditer(text):
        add("version", Version(tuple(match[1].split(".")), *match.span(1)))
    for date in find_dates(text, yearless=True):
        add("date", date)
    for time in find_times(text):
        add("time of day", time)
    taken = [(one.start, one.end) for one in found]
    for one in find_quantities(text, taken):
        if one.unit is None and unit is not None:
            one = one._replace(unit=unit)
        add(one.unit.measure if one.unit else "number", one)
    return sorted(found, key=lambda one: one.start)


def compare(told: TypedValue, held: TypedValue) -> Agreement:
    """Whether a value that is told agrees with one that is held.

    Returns:
        ``SAME``, ``CONFLICT``, or ``OPEN`` where they do not compare: other kinds, one a bound
        that leaves room, or told more finely than held.
    """
    if isinstance(told.value, Date) and isinstance(held.value, Date):
        word = dates.agreement(told.value, held.value)
        return {
            dates.Agreement.SAME: Agreement.SAME,
            dates.Agreement.FINER: Agreement.OPEN,
            dates.Agreement.CONFLICT: Agreement.CONFLICT,
        }[word]
    if isinstance(told.value, ClockTime) and isinstance(held.value, ClockTime):
        return Agreement.SAME if told.value.same(held.value) else Agreement.CONFLICT
    if isinstance(told.value, Version) and isinstance(held.value, Version):
        return _same(_begins(told.value.parts, held.value.parts))
    if isinstance(told.value, Quantity) and isinstance(held.value, Quantity):
        return _compare_quantities(told.value, held.value)
    return _across(told, held)


def _same(agrees: bool) -> Agreement:
    return Agreement.SAME if agrees else Agreement.CONFLICT


def _begins(told: tuple[str, ...], held: tuple[str, ...]) -> bool:
    size = min(len(told), len(held))
    return told[:size] == held[:size]


def _across(told: TypedValue, held: TypedValue) -> Agreement:
    """Values of two kinds: equal figures agree, such as a year and a number; else open."""
    version = next((one.value for one in (told, held) if isinstance(one.value, Version)), None)
    if version is not None:
        parts = [tuple(re.findall(r"\w+", one.text.lstrip("v"))) for one in (told, held)]
        return Agreement.SAME if _begins(*parts) else Agreement.OPEN
    figures = [re.sub(r"[^\d.]", "", one.text).strip(".") for one in (told, held)]
    return Agreement.SAME if figures[0] and figures[0] == figures[1] else Agreement.OPEN


def _compare_quantities(told: Quantity, held: Quantity) -> Agreement:
    measures = {one.unit.measure if one.unit else "" for one in (told, held)}
    if len(measures) > 1:
        # A number without a unit may be of any measure.
        same = "" in measures and (told.low, told.high) == (held.low, held.high)
        return Agreement.SAME if same else Agreement.OPEN
    low, high = held.base(held.low), held.base(held.high)
    mine = told.base(told.low), told.base(told.high)
    if low < 0 < mine[0] and low == high:
        low = high = -low  # a loss of 2.4 million is -2.4 million
    slack = _slack(told, held)
    if told.low != told.high:
        close = abs(mine[0] - low) <= slack and abs(mine[1] - high) <= slack
        if held.low == held.high:
            inside = mine[0] - slack <= low <= mine[1] + slack
            return Agreement.SAME if inside else Agreement.CONFLICT
        return _same(close)
    value = mine[0]
    if told.bound in (Bound.AT_LEAST, Bound.ABOVE):
        if held.bound in (Bound.AT_MOST, Bound.BELOW):
            return Agreement.OPEN
        reached = told.bound is Bound.AT_LEAST or held.bound is Bound.ABOVE
        kept = high >= value - slack if reached else high > value
        return (
            Agreement.SAME
            if kept and high <= 3 * max(value, 1e-9)
            else (Agreement.OPEN if kept else Agreement.CONFLICT)
        )
    if told.bound in (Bound.AT_MOST, Bound.BELOW):
        if held.bound in (Bound.AT_LEAST, Bound.ABOVE):
            return Agreement.OPEN
        reached = told.bound is Bound.AT_MOST or held.bound is Bound.BELOW
        kept = low <= value + slack if reached else low < value
        return (
            Agreement.SAME
            if kept and low >= value / 3
            else (Agreement.OPEN if kept else Agreement.CONFLICT)
        )
    if low - slack <= value <= high + slack:
        return Agreement.SAME if low == high or value in (low, high) else Agreement.OPEN
    if held.bound not in (Bound.EXACT, Bound.ABOUT):
        return Agreement.OPEN
    return Agreement.CONFLICT


def _slack(told: Quantity, held: Quantity) -> float:
    """By how much two numbers may differ, in the first unit of their measure.

    A number is as precise as its last written digit; 285,000 is 284,316 in round figures, while
    284,317 is not.
    """
    factor = told.unit.factor if told.unit else 1.0
    held_factor = held.unit.factor if held.unit else 1.0
    size = max(abs(told.high * factor), abs(held.high * held_factor))
    digits = len(f"{abs(told.high):.10g}".replace(".", "").strip("0"))
    rounded = 0.5 * told.step * factor if digits >= 2 or told.step < 1.0 else 0.0
    slack = rounded if told.step * factor > held.step * held_factor else 1e-9 * size
    if told.unit != held.unit and told.unit and held.unit:
        calendar = told.unit.measure == "time"
        digit = 10.0 ** -len(f"{told.high:.10g}".partition(".")[2]) * factor
        slack = max(slack, (CALENDAR if calendar else CONVERTED) * size, 0.5 * digit)
        if told.unit.offset or held.unit.offset:
            slack = max(slack, 0.6 * max(told.step * factor, held.step * held_factor))
    if Bound.ABOUT in (told.bound, held.bound):
        slack = max(slack, BLURRED * size, rounded)
    return slack
