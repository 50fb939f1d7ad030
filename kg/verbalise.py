"""Values of triples as a person would write them."""

from __future__ import annotations

import re

from guardrail.core.text.lexicon import lexicon

__all__ = ["DATE_FORMS", "surface"]

_ISO = re.compile(r"([+-]?)(\d{4})-(\d\d)-(\d\d)(?:T[\d:.]+Z?)?")
_WRITTEN = re.compile(r"(\d{1,2}) ([A-Z][a-z]+) (\d{4})")

DATE_FORMS = 4
"""Number of ways a full date is written: 27 January 1756, January 27, 1756, 1756-01-27,
the 27th of January 1756."""


def surface(value: str, form: int = 0) -> str:
    """A value as a person would write it; dates in one of ``DATE_FORMS`` forms.

    The first of January stands for a year alone, as graphs write a date that is known to the
    year; years below zero become BC.
    """
    months: list[str] = lexicon("calendar")["months"]
    if match := _ISO.fullmatch(value):
        sign, year, month, day = match[1], int(match[2]), int(match[3]), int(match[4])
    elif (match := _WRITTEN.fullmatch(value)) and match[2].lower() in months:
        sign, year, day = "", int(match[3]), int(match[1])
        month = months.index(match[2].lower()) + 1
    else:
        return value
    if not 1 <= month <= 12 or (month, day) == (1, 1):
        return f"{year} BC" if sign == "-" else str(year)
    era = " BC" if sign == "-" else ""
    name = months[month - 1].title()
    return (
        f"{day} {name} {year}{era}",
        f"{name} {day}, {year}{era}",
        f"{day} {name} {year}{era}" if era else f"{year:04}-{month:02}-{day:02}",
        f"the {day}{_ordinal(day)} of {name} {year}{era}",
    )[form % DATE_FORMS]


def _ordinal(day: int) -> str:
    return "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
