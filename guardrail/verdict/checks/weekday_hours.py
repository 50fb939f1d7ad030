"""Hours by weekday: when something is open or runs on a day, and on which days it is closed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.clock_times import ClockTime, find_times
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.weekdays import Days, find_days
from guardrail.core.text.words import content_stems, plain, tokenise
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["Hours", "WeekdayHours", "closings_in", "hours_in", "hours_of"]


class Hours(NamedTuple):
    """Times of some days; none where they are told to be closed."""

    days: frozenset[int]
    times: tuple[ClockTime, ...]
    start: int
    end: int


class WeekdayHours:
    """Compares the hours that a sentence tells of a weekday with those of the same days."""

    name = "weekday_hours"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the days whose hours are told rightly, and those whose hours are others."""
        told = hours_in(plain(claim.text))
        if not told:
            return ()
        known = [
            (number, statement, hours)
            for number, statement in evidence.chosen
            if evidence.speaks_of(statement)
            for hours in hours_of(statement)
        ]
        return [found for hours in told for found in self._of(hours, known, claim, evidence)]

    def _of(
        self,
        told: Hours,
        known: Sequence[tuple[int, Statement, Hours]],
        claim: Claim,
        evidence: Premises,
    ) -> Iterator[Finding]:
        aligned = [item for item in known if told.days <= item[2].days]
        span = told.start, told.end
        for number, statement, hours in aligned:
            if _agree(told, hours):
                because = f"agrees with {statement.text}"
                yield finding(self.name, Effect.CARRIES, claim, span, because, (number,))
                return
        sure = [item for item in aligned if _opening(item[1], claim)]
        if len(sure) == 1 and len(evidence.subjects) == 1:
            number, statement, _ = sure[0]
            because = f"{claim.text[slice(*span)]} differs from {statement.text}"
            instead = statement.value_text
            yield finding(
                self.name, Effect.CONTRADICTS, claim, span, because, (number,), instead=instead
            )


def _agree(told: Hours, known: Hours) -> bool:
    """Whether each time that is told is one of those held; closed days have none."""
    if not told.times or not known.times:
        return not told.times and not known.times
    return all(any(time.same(other) for other in known.times) for time in told.times)


def _opening(statement: Statement, claim: Claim) -> bool:
    """Whether statement and sentence both tell of being open, or the statement's own words."""
    fact = statement.fact
    words = tokenise(fact.property if fact else statement.text)
    hours = lexicon_set("calendar", "hours") | lexicon_set("calendar", "closed")
    opens = any(token.folded in hours for token in words)
    told = any(token.folded in hours for token in claim.tokens)
    named = content_stems(fact.property) if fact else frozenset()
    return (opens and told) or (bool(named) and named <= claim.stems)


def hours_of(statement: Statement) -> list[Hours]:
    """The hours that a statement tells, the days of which its property may name."""
    fact = statement.fact
    if fact is None:
        return hours_in(plain(statement.text))
    named = find_days(fact.property)
    value = plain(fact.value)
    if not named:
        return hours_in(value)
    days = frozenset[int]().union(*(item.days for item in named))
    times = tuple(find_times(value))
    return [Hours(days, times, 0, len(value))] if times or closings_in(value) else []


def hours_in(text: str) -> list[Hours]:
    """The hours of a text by the days that they are told of.

    Where a text begins with a day, times belong to the day before them, else to the next.
    """
    days = find_days(text)
    if not days:
        return []
    times: dict[Days, list[ClockTime]] = {day: [] for day in days}
    shut: dict[Days, tuple[int, int]] = {}
    told, closings = find_times(text), closings_in(text)
    first = min([time.start for time in told] + [start for start, _ in closings], default=0)
    ahead = first < days[0].start
    for time in told:
        times[_day_of(time.start, days, ahead=ahead)].append(time)
    for start, end in closings:
        shut[_day_of(start, days, ahead=ahead)] = (start, end)
    found = []
    for day in days:
        places = [(time.start, time.end) for time in times[day]]
        places += [shut[day]] if day in shut else []
        if not places or (times[day] and day in shut):
            continue
        start = min(day.start, *(place[0] for place in places))
        end = max(day.end, *(place[1] for place in places))
        found.append(Hours(day.days, tuple(times[day]), start, end))
    return found


def _day_of(place: int, days: Sequence[Days], *, ahead: bool) -> Days:
    """The day that stands next to a place, before it or ahead of it."""
    if ahead:
        return next((day for day in days if day.start > place), days[-1])
    return next((day for day in reversed(days) if day.start < place), days[0])


def closings_in(text: str) -> list[tuple[int, int]]:
    """Where a text says that something is closed, and does not deny it."""
    tokens = tokenise(text)
    closed = lexicon_set("calendar", "closed")
    denied = lexicon_set("function_words", "negations")
    return [
        (token.start, token.end)
        for place, token in enumerate(tokens)
        if token.folded in closed
        and not any(item.folded in denied for item in tokens[max(0, place - 3) : place])
    ]
