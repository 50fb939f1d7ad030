"""Near misses: a date, number or name that is almost the right one."""

from __future__ import annotations

import calendar
import random
import re

__all__ = ["mentions", "near_miss", "same_value"]

_DATE = re.compile(r"([+-]?)(\d{4})-(\d\d)-(\d\d)")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_MONTHS = tuple(calendar.month_name)[1:]


def near_miss(value: str, rng: random.Random) -> str | None:
    """Change a date or number a little; None for a value without one.

    A year moves by one to thirty or has two digits swapped; month or day change; a number moves
    by a small or a round amount.
    """
    if match := _DATE.fullmatch(value):
        return _other_date(match, rng)
    for month in rng.sample(_MONTHS, len(_MONTHS)):
        if month in value and rng.random() < 0.3:
            return value.replace(month, rng.choice([m for m in _MONTHS if m != month]))
    numbers = list(_NUMBER.finditer(value))
    if not numbers:
        return None
    match = max(numbers, key=lambda m: len(m[0]))
    changed = _other_number(match[0], rng)
    return value[: match.start()] + changed + value[match.end() :]


def _other_date(match: re.Match[str], rng: random.Random) -> str:
    sign, year, month, day = match[1], match[2], match[3], match[4]
    kind = rng.random()
    if kind < 0.55 or (month, day) == ("01", "01"):
        year = f"{_moved_year(int(year), rng):04}"
    elif kind < 0.8:
        month = rng.choice([f"{m:02}" for m in range(1, 13) if f"{m:02}" != month])
        day = f"{min(int(day), 28):02}"
        if (month, day) == ("01", "01"):  # stands for the year alone, which would still be right
            month = "02" if match[3] != "02" else "03"
    else:
        day = rng.choice([f"{d:02}" for d in range(2, 29) if f"{d:02}" != day])
    return f"{sign}{year}-{month}-{day}"


def _moved_year(year: int, rng: random.Random) -> int:
    digits = list(str(year))
    if rng.random() < 0.2 and len(digits) == 4 and digits[2] != digits[3]:
        digits[2], digits[3] = digits[3], digits[2]
        return int("".join(digits))
    moved = year + rng.choice((-1, 1)) * rng.choice((1, 1, 2, 3, 5, 10, 20, 30, 100))
    return moved if 0 < moved < 2100 else year - 1 if year > 1 else year + 1


def _other_number(text: str, rng: random.Random) -> str:
    whole, dot, part = text.partition(".")
    number = int(whole.replace(",", "") or "0")
    if len(whole) == 4 and "," not in whole and 1000 <= number <= 2100:
        moved = _moved_year(number, rng)
    else:
        step = rng.choice(
            (1, 1, 2, 10 ** max(0, len(str(number)) - 2), 10 ** (len(str(number)) - 1))
        )
        moved = number + step if number <= step or rng.random() < 0.5 else number - step
    written = f"{moved:,}" if "," in whole else str(moved)
    return written + dot + part


def mentions(text: str, value: str) -> bool:
    """Tell whether a text names a value: all words of the value occur in it."""
    words = set(_words(text))
    return all(word in words for word in _words(value)) and bool(_words(value))


def same_value(text: str, other: str) -> bool:
    """Tell whether two values may mean the same: one's words are among the other's."""
    return mentions(text, other) or mentions(other, text)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
