"""Days of the week that a text tells: *Mon-Fri*, *Saturdays*, *at the weekend*, *daily*."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.words import plain

__all__ = ["Days", "find_days"]


class Days(NamedTuple):
    """Days that are told together.

    Attributes:
        days: 0 for Monday to 6 for Sunday.
        start: Offset of the first character.
        end: Offset past the last.
    """

    days: frozenset[int]
    start: int
    end: int


@cache
def _names() -> dict[str, frozenset[int]]:
    calendar = lexicon("calendar")
    week = calendar["weekdays"]
    found = {day: frozenset({place}) for place, day in enumerate(week)}
    found |= {f"{day}s": days for day, days in found.items()}
    found |= {form: found[day] for form, day in calendar["weekday_forms"].items()}
    groups = calendar["day_groups"]
    return found | {name: frozenset(days) for name, days in groups.items()}


@cache
def _form() -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name in sorted(_names(), key=len, reverse=True))
    return re.compile(rf"(?<![\w'])(?:{names})(?![\w'])", re.IGNORECASE)


@cache
def _between(key: str) -> re.Pattern[str]:
    words = "|".join(re.escape(word) for word in lexicon("calendar")[key])
    return re.compile(rf"\s?(?:{words})\s?(?:and )?(?:on )?", re.IGNORECASE)


def find_days(text: str) -> list[Days]:
    """The days of a text, ranges and lists of them as one, in order."""
    text = plain(text)
    short = lexicon("calendar")["weekday_forms"]
    found: list[Days] = []
    for match in _form().finditer(text):
        word = match.group()
        if word.lower() in short and word.islower() and word != text.strip().split()[0]:
            continue  # "sat" and "sun" are words
        days = _names()[word.lower()]
        last = found[-1] if found else None
        between = text[last.end : match.start()] if last else ""
        if last and _between("days_through").fullmatch(between) and len(days) == 1:
            days = last.days | _through(max(last.days), min(days))
        elif last and _between("days_with").fullmatch(between):
            days |= last.days
        else:
            last = None
        if last:
            found.pop()
        found.append(Days(days, last.start if last else match.start(), match.end()))
    return found


def _through(first: int, last: int) -> frozenset[int]:
    """The days from one to another, over the end of the week where it comes first."""
    length = (last - first) % 7
    return frozenset((first + step) % 7 for step in range(length + 1))
