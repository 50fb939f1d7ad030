"""Times of day: *18:30*, *6.30 pm*, *half past six*, *noon*."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from guardrail.core.apart import read_apart
from guardrail.core.text.lexicon import lexicon

__all__ = ["ClockTime", "find_times"]


class ClockTime(NamedTuple):
    """A time of day.

    Attributes:
        minutes: Minutes since midnight.
        half: Whether the half of the day is told; else twelve hours later is meant as well.
        start: Offset of its first character.
        end: Offset past its last.
    """

    minutes: int
    half: bool
    start: int
    end: int

    def same(self, other: ClockTime) -> bool:
        """Whether both may be the same time."""
        apart = abs(self.minutes - other.minutes)
        return apart == 0 or (apart == 720 and not (self.half and other.half))


@cache
def _forms() -> tuple[re.Pattern[str], ...]:
    hours = "|".join(list(lexicon("numbers")["units"])[1:13])
    named = "|".join(lexicon("calendar")["times"])
    half = r"\s?(?P<half>[ap]\.m\.|[ap]\.?m\b)"
    return tuple(
        re.compile(form, re.IGNORECASE)
        for form in (
            rf"(?<![\d.:])(?P<hour>[012]?\d)[:.](?P<minute>[0-5]\d)(?::[0-5]\d)?{half}",
            rf"(?<![\d.:])(?P<hour>[01]?\d){half}",
            rf"\b(?P<word>{hours}){half}",
            r"(?<![\d.:])(?P<hour>[012]?\d):(?P<minute>[0-5]\d)(?::[0-5]\d)?(?![\d:])",
            rf"\b(?P<shift>half|quarter) (?P<way>past|to) (?P<word>{hours}|\d{{1,2}})\b",
            rf"\b(?P<word>{hours}|\d{{1,2}}) o'clock",
            rf"\b(?P<named>{named})\b",
        )
    )


def find_times(text: str) -> list[ClockTime]:
    """All times of day of a text with plain signs, in order, not overlapping."""
    return read_apart(text, _forms(), _read)


def _read(match: re.Match[str]) -> ClockTime | None:
    parts = match.groupdict()
    start, end = match.span()
    if parts.get("named"):
        hours = lexicon("calendar")["times"][parts["named"].lower()]
        return ClockTime(int(hours * 60), True, start, end)
    word = (parts.get("word") or parts["hour"]).lower()
    hour = int(word if word.isdigit() else lexicon("numbers")["units"][word])
    minutes = hour * 60 + int(parts.get("minute") or 0)
    if parts.get("shift"):
        size = 30 if parts["shift"].lower() == "half" else 15
        minutes += size if parts["way"].lower() == "past" else -size
    half = (parts.get("half") or "").lower()
    if half.startswith("p") and hour < 12:
        minutes += 720
    if half.startswith("a") and hour == 12:
        minutes -= 720
    if not 0 <= minutes <= 1440:
        return None
    certain = bool(half) or hour > 12 or (parts.get("hour") or "").startswith("0")
    return ClockTime(minutes % 1440, certain, start, end)
