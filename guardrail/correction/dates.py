"""Dates, times of day and versions written as another one is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from guardrail.core.text.clock_times import ClockTime
from guardrail.core.text.dates import Date
from guardrail.core.text.lexicon import lexicon

__all__ = ["dates_like", "times_like", "versions_like"]

DAY = re.compile(r"(?<!\d)(\d{1,2})(st|nd|rd|th)?(?!\d)")
YEAR = re.compile(r"(?<!\d)\d{3,4}(?!\d)")
CENTURY = 100
NOON = 12 * 60


def dates_like(written: str, told: Date, held: Date) -> Iterator[str]:
    """Ways to write a held date as a told one is written, to the same part where it is known."""
    held = held.real
    if held.year is not None and held.year < 1:
        return
    if told.span == CENTURY and held.year is not None:
        yield re.sub(r"\d+(?:st|nd|rd|th)", _ordinal((held.year - 1) // CENTURY + 1), written)
    if told.span == 10 and held.year is not None:
        yield re.sub(r"\d{3}0", str(held.year // 10 * 10), written)
    if told.span > 1 or held.span > 1 or told.months > 1 or held.months > 1:
        return
    if held.year is None and told.year is not None:
        return
    if told.month is None:
        yield str(held.year)
        return
    month = re.search(r"[^\W\d_]{3,}\.?", written)
    if month is None:
        yield from _in_figures(written, told, held)
        return
    if held.month is None:
        yield str(held.year)
        return
    name = _month(held.month, month.group())
    text = written[: month.start()] + name + written[month.end() :]
    if told.year is not None:
        text = YEAR.sub(str(held.year), text, count=1)
    if told.day is not None and held.day is not None:
        day = held.day
        yield DAY.sub(lambda found: _ordinal(day) if found[2] else str(day), text, count=1)
    elif told.day is not None:
        yield name if told.year is None else f"{name} {held.year}"
    else:
        yield text


def _in_figures(written: str, told: Date, held: Date) -> Iterator[str]:
    """A date in figures, in the order of the other where that is sure."""
    if held.month is None:
        yield str(held.year)
        return
    signs = re.findall(r"\D", written)
    if re.match(r"\d{4}-", written):
        parts = [f"{held.year:04}", f"{held.month:02}"]
        parts += [f"{held.day:02}"] if held.day is not None else []
        yield "-".join(parts)
    elif held.day is not None and told.swapped is None and len(signs) == 2:
        first = int(re.match(r"\d+", written)[0])  # type: ignore[index]
        order = [held.day, held.month] if first == told.day else [held.month, held.day]
        wide = 2 if written.startswith("0") else 1
        yield signs[0].join([*(f"{part:0{wide}}" for part in order), str(held.year)])


def _month(number: int, like: str) -> str:
    """The name of a month, short where the other one is."""
    name: str = lexicon("calendar")["months"][number - 1].capitalize()
    bare = like.rstrip(".")
    if bare.lower() in lexicon("calendar")["months"] and len(bare) > 3:
        return name
    short = len(bare) <= 4 and bare.lower() != "may"
    return name[:3] + ("." if like.endswith(".") and len(name) > 3 else "") if short else name


def _ordinal(number: int) -> str:
    teens = 10 <= number % 100 <= 20
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def times_like(written: str, held: ClockTime, held_written: str) -> Iterator[str]:
    """Ways to write a held time of day as a told one is written."""
    hours, minutes = divmod(held.minutes, 60)
    half = re.search(r"(?P<gap>\s?)(?P<sign>[ap])(?P<rest>\.?m\.?)", written, re.IGNORECASE)
    morning = held.minutes < NOON
    if half is not None and (held.half or not morning or half["sign"].lower() == "a"):
        sign = "a" if morning else "p"
        sign = sign.upper() if half["sign"].isupper() else sign
        told = f"{hours % 12 or 12}"
        if minutes or re.match(r"\d+[:.]", written):
            told += f"{'.' if re.match(r'[0-9]+[.]', written) else ':'}{minutes:02}"
        yield f"{told}{half['gap']}{sign}{half['rest']}"
    elif re.match(r"\d{1,2}[:.]\d\d", written):
        wide = 2 if len(re.match(r"\d+", written)[0]) == 2 else 1  # type: ignore[index]
        yield f"{hours:0{wide}}{written[len(re.match(r'[0-9]+', written)[0])]}{minutes:02}"  # type: ignore[index]
    yield held_written


def versions_like(written: str, held_written: str) -> Iterator[str]:
    """A held version with or without the sign of one, as the told one."""
    sign = re.match(r"[vV]?", written)
    assert sign is not None
    yield sign.group() + held_written.lstrip("vV")
