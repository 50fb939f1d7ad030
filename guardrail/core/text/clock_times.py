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
        half: True if the half of the day is known; otherwise twelve hours later is meant as well.
        start: Offset of its first character.
        end: Offset past its last.
        zone: Minutes ahead of UTC; None if no time zone is given.
    """

    minutes: int
    half: bool
    start: int
    end: int
    zone: int | None = None

    def same(self, other: ClockTime) -> bool:
        """True if both may be the same time."""
        apart = abs(self.minutes - other.minutes)
        if self.zone is not None and other.zone is not None:
            apart = abs(self.minutes - self.zone - other.minutes + other.zone) % 1440
        return apart == 0 or (apart == 720 and not (self.half and other.half))


@cache
def _forms() -> tuple[re.Pattern[str], ...]:
    hours = "|".join(list(lexicon("numbers")["units"])[1:13])
    named = "|".join(lexicon("calendar")["times"])
    stamp = (
        r"(?<=\d\d-\d\d)[T ](?P<hour>[012]\d):(?P<minute>[0-5]\d)(?::\d\d(?:\.\d+)?)?"
        r"(?P<zone>Z|[+-]\d\d:?\d\d)?(?![\d:])"
    )
    zone = (
        r"(?:\s?(?:local time )?\(?"
        r"(?P<zone>Z(?!\w)|(?:UTC|GMT)(?:\s?[+-]\s?\d{1,2}(?::?\d\d)?)?)\)?)?(?![\d:])"
    )
    half = r"\s?(?P<half>[ap]\.m\.|[ap]\.?m\b)"
    return tuple(
        re.compile(form, re.IGNORECASE)
        for form in (
            stamp,
            rf"(?<![\d.:])(?P<hour>[012]?\d)[:.](?P<minute>[0-5]\d)(?::[0-5]\d)?{half}",
            rf"(?<![\d.:])(?P<hour>[01]?\d){half}",
            rf"\b(?P<word>{hours}){half}",
            rf"(?<![\d.:])(?P<hour>[012]?\d):(?P<minute>[0-5]\d)(?::[0-5]\d)?{zone}",
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
    word = parts.get("word") or parts["hour"]
    hour = int(lexicon("numbers")["units"].get(word.lower(), word))
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
    stamp = match.group()[0] in "T "
    certain = bool(half) or hour > 12 or stamp or (parts.get("hour") or "").startswith("0")
    return ClockTime(minutes % 1440, certain, start + stamp, end, _zone(parts.get("zone")))


def _zone(written: str | None) -> int | None:
    """Minutes ahead of UTC of a zone as it is written: *Z*, *+02:00*, *UTC+2*."""
    if not written:
        return None
    shift = re.search(r"([+-])\s?(\d\d?):?(\d\d)?", written)
    if shift is None:
        return 0
    minutes = 60 * int(shift[2]) + int(shift[3] or 0)
    return -minutes if shift[1] == "-" else minutes
