"""Validity in time: from when until when a statement says that it holds."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from typing import NamedTuple

from guardrail.core.text.dates import Date, find_dates
from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.words import plain

__all__ = ["Validity", "timeless", "validity_of"]


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

    Returns:
        None if the statement gives no span, or has other dates: the span may be of a part of it.
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
def _through() -> re.Pattern[str]:
    """What stands between the first and the last date of a span."""
    words = "|".join(map(re.escape, lexicon("calendar")["days_through"]))
    return re.compile(rf"\s*(?:{words})\s*", re.IGNORECASE)


def _spans(text: str) -> list[tuple[Validity, int, int]]:
    """The spans of a plain text, each with the offsets of its words and brackets."""
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
        if following and opened and _through().fullmatch(text[when.end : following.start]):
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
