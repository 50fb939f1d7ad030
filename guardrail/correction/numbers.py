"""Numbers written as another number is: words or figures, thousands, decimals, scales, units."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache

from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.units import MONEY
from guardrail.correction.wording import counted_as

__all__ = ["quantities_like"]

FIGURES = re.compile(r"\d(?:[\d,.' ]*\d)?")
THOUSANDS = re.compile(r"\d([,' ])\d{3}(?!\d)")
"""What sets thousands apart."""

FINEST = 3
"""Most decimals of a number that is scaled."""

HUNDRED, TEN_THOUSAND = 100, 10_000

SMALLEST_SHARE = 1e-4
"""Of the scale that a number is told in (*million*), the least that takes its place. Evidence with
a smaller number counts in that scale itself, as a column of millions does, and does not say so."""


def quantities_like(
    written: str, told: Quantity, held: Quantity, held_written: str
) -> Iterator[str]:
    """Ways to write a held quantity as a told one is written, the nearest first.

    Between units only the decimal point may move: 0.75 m is 75 cm, but six weeks are no number of
    months.

    Args:
        written: The told quantity as it stands, with sign of currency and unit.
        told: What it is; offsets are not read.
        held: What the evidence holds.
        held_written: As it stands there.
    """
    if told.per != held.per and told.per and held.per:
        return
    scale = held.unit.factor / told.unit.factor if told.unit and held.unit else 1.0
    moved = math.log10(abs(scale))
    offset = told.unit != held.unit and told.unit and held.unit and told.unit.offset
    if abs(moved - round(moved)) > 1e-9 or offset:
        return
    parts = _number_part(written, told)
    if parts is None:
        return
    start, end = parts
    ends = [round(value * scale, 9) for value in (held.low, held.high)]
    one = told.low == told.high == 1
    many = len(set(ends)) > 1
    behind = counted_as(written[end:], before=one, after=not many and ends[0] == 1)
    if behind is None:
        return
    money = told.unit is not None and told.unit.measure.startswith(MONEY)
    for low in _numbers(ends[0], written[start:end], held_written, money=money):
        if not many:
            yield f"{_signed(written[:start], low)}{behind}"
            continue
        for high in _numbers(ends[1], written[start:end], held_written, money=money):
            yield f"{_signed(written[:start], low)} to {high}{behind}"


def _signed(before: str, number: str) -> str:
    """A number behind what stands before its figures, with its own sign in place of that there."""
    before = before.removeprefix("-")
    return f"-{before}{number[1:]}" if number.startswith("-") else f"{before}{number}"


def _number_part(written: str, told: Quantity) -> tuple[int, int] | None:
    """Where the number of a quantity stands, its scale counted and its unit not."""
    if told.words:
        return 0, told.number_end - told.start
    figures = FIGURES.search(written)
    if figures is None:
        return None
    end = told.number_end - told.start if told.number_end else None
    if end is None:  # a range, or a measure in parts
        last = list(FIGURES.finditer(written))[-1]
        between = written[figures.end() : last.start()]
        if any(sign.isalpha() for sign in between.replace(" to ", "").replace(" and ", "")):
            return None
        end = last.end()
    return figures.start(), end


def _decimals(written: str) -> int:
    figures = FIGURES.search(written)
    return len(figures.group().partition(".")[2]) if figures else 0


def _numbers(value: float, like: str, held: str, *, money: bool) -> Iterator[str]:
    """A number as another is written: in words, with its scale, in figures."""
    if not like[:1].isdigit() and not like.startswith("-"):
        words = _in_words(value)
        if words is not None:
            yield words.capitalize() if like[:1].isupper() else words
        if value == int(value):
            yield _figures(value, held, held, 0)
        return
    figures = FIGURES.search(like)
    assert figures is not None
    scale = like[figures.end() :]
    if scale.strip():
        size = _scale(scale.strip().lower())
        if size is None or abs(value) < SMALLEST_SHARE * size:
            return
        scaled = value / size
        for place in range(FINEST + 1):
            if abs(round(scaled, place) - scaled) < 1e-9 and abs(scaled) >= 0.1:
                yield _figures(scaled, figures.group(), held, place) + scale
                break
        yield _figures(value, held, held, _needed(value))
        return
    needed = _needed(value)
    if money and (needed == 1 or (needed == 0 and _decimals(like) == 2)):
        needed = 2  # cents
    yield _figures(value, like, held, needed)


def _needed(value: float) -> int:
    """Decimals that write a number whole."""
    return next((place for place in range(7) if abs(round(value, place) - value) < 1e-9), 6)


def _figures(value: float, like: str, held: str, places: int) -> str:
    """A number in figures, its thousands set apart as those of another number are."""
    apart = _apart(like)
    if apart is None:
        apart = _apart(held)
    if apart is None:
        apart = "," if abs(value) >= TEN_THOUSAND else ""
    return f"{value:,.{places}f}".replace(",", apart)


def _apart(like: str) -> str | None:
    """What sets the thousands of a number apart; None where it has none."""
    found = THOUSANDS.search(like)
    if found is not None:
        return found[1]
    return "" if re.search(r"\d{4}", like) else None


def _scale(word: str) -> float | None:
    numbers = lexicon("numbers")
    size = numbers["scales"].get(word, numbers["short_scales"].get(word))
    return None if size is None else float(size)


def _in_words(value: float) -> str | None:
    """A whole number below a hundred in words."""
    if value != int(value) or not 0 <= value < HUNDRED:
        return None
    names = _names()
    number = int(value)
    if number in names:
        return names[number]
    tens, rest = number // 10 * 10, number % 10
    return f"{names[tens]}-{names[rest]}" if tens in names and rest in names else None


@cache
def _names() -> dict[int, str]:
    found: dict[int, str] = {}
    for word, value in lexicon("numbers")["units"].items():
        if value == int(value):
            found.setdefault(int(value), word)
    return found
