"""Days and hours of opening exchanged for those that the evidence tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from guardrail.core.text.clock_times import find_times
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.weekdays import Days, find_days
from guardrail.core.text.words import plain
from guardrail.correction.dates import times_like
from guardrail.correction.edits import Edit
from guardrail.verdict.checks.weekday_hours import Hours, closings_in, hours_in, hours_of

if TYPE_CHECKING:
    from guardrail.core.types import Finding
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["of_closing", "of_days", "of_hours"]

IN_A_ROW = 3
"""From this many days on they are told by their first and last."""


def of_hours(claim: Claim, finding: Finding, evidence: Premises) -> tuple[Edit, ...]:
    """The exchange of hours of a day that differ from those of the same day.

    Args:
        claim: The sentence.
        finding: What ``weekday_hours`` found against it.
        evidence: What it is held against.
    """
    start = finding.start - claim.stretch.start
    told = next((item for item in hours_in(plain(claim.text)) if item.start == start), None)
    if told is None or not finding.statements:
        return ()
    number = finding.statements[0]
    statement = evidence.indexed.statements[number]
    held = [item for item in hours_of(statement) if told.days <= item.days]
    if len(held) != 1:
        return ()
    if not told.times:
        return _opened(claim, told, held[0], statement.value_text, number)
    if not held[0].times:
        return _closed(claim, told, number)
    if len(told.times) != len(held[0].times):
        return ()
    text, source = claim.stretch.text, statement.value_text
    edits = []
    for mine, theirs in zip(told.times, held[0].times, strict=True):
        if mine.same(theirs):
            continue
        written = text[mine.start : mine.end]
        new = next(iter(times_like(written, theirs, source[theirs.start : theirs.end])))
        edits.append(Edit(mine.start, mine.end, new, number))
    return tuple(edits)


def _opened(claim: Claim, told: Hours, held: Hours, source: str, number: int) -> tuple[Edit, ...]:
    """*closed on Mondays* as the hours of that day."""
    text = plain(claim.text)
    for start, end in closings_in(text):
        # Where a state is told, *open* can take the place of *closed*; *it closes* is no state.
        if told.start <= start < told.end and _ends_with("states", text[:start]):
            first, last = (source[item.start : item.end] for item in held.times[:2])
            if len(held.times) == 2:
                return (Edit(start, end, f"open from {first} to {last}", number),)
    return ()


def _closed(claim: Claim, told: Hours, number: int) -> tuple[Edit, ...]:
    """*open on Mondays from 10 to 16* as *closed on Mondays*, where only that stands there."""
    text = plain(claim.text)
    days = [item for item in find_days(text) if told.start <= item.start < told.end]
    opens = [
        token
        for token in claim.tokens
        if token.end <= told.end and token.folded in lexicon_set("grammar", "open")
    ]
    if len(days) != 1 or not opens:
        return ()
    opened = opens[-1]
    between = text[opened.end : told.end]
    marks = [(days[0].start, days[0].end), *((time.start, time.end) for time in told.times)]
    rest = "".join(
        sign
        for place, sign in enumerate(between, start=opened.end)
        if not any(a <= place < b for a, b in marks)
    )
    calendar = lexicon("calendar")
    light = lexicon_set("function_words", "within_claim").union(
        calendar["days_through"], calendar["days_with"]
    )
    if not light.issuperset(re.findall(r"\w+", rest.lower())):
        return ()
    before = _ends_with("before_days", text[: days[0].start])
    named = text[before.start() if before else days[0].start : days[0].end]
    return (Edit(opened.start, told.end, f"closed {named}", number),)


def of_closing(claim: Claim, evidence: Premises, number: int) -> Edit | None:
    """*open on Mondays* as *closed on Mondays*, where the evidence tells that of the day.

    Args:
        claim: The sentence.
        evidence: What it is held against.
        number: The statement that the judge names against it; a neighbour of it may tell.
    """
    text = plain(claim.text)
    told, times = find_days(text), tuple(find_times(text))
    negations = lexicon_set("function_words", "negations")
    if len(told) != 1 or any(token.folded in negations for token in claim.tokens):
        return None
    day = told[0]
    statements = evidence.indexed.statements
    for held in (number, *(other for other, _ in evidence.chosen)):
        if statements[held].place == statements[number].place and any(
            not hours.times and day.days <= hours.days for hours in hours_of(statements[held])
        ):
            end = max([day.end, *(time.end for time in times)])
            mine = Hours(day.days, times, day.start, end)
            return next(iter(_closed(claim, mine, held)), None)
    return None


def of_days(claim: Claim, evidence: Premises, number: int) -> Edit | None:
    """The exchange of the days of a sentence for the only ones that a statement tells.

    Args:
        claim: The sentence.
        evidence: What it is held against.
        number: The statement that the judge names against it.
    """
    text = plain(claim.text)
    told, held = find_days(text), find_days(evidence.indexed.statements[number].value_text)
    if len(told) != 1 or len(held) != 1 or told[0].days == held[0].days:
        return None
    start = told[0].start
    before = _ends_with("before_days", text[:start])
    start = before.start() if before is not None else start
    words = _days_like(text[told[0].start : told[0].end], held[0])
    if before is None:
        words = words.partition(" ")[2]
    elif before.group()[0].isupper():
        words = words[0].upper() + words[1:]
    return Edit(start, told[0].end, words, number)


def _days_like(written: str, held: Days) -> str:
    """Days with their preposition, in the plural where the others are told so."""
    names = [day.capitalize() for day in lexicon("calendar")["weekdays"]]
    days = sorted(held.days)
    row = days == list(range(days[0], days[-1] + 1))
    if row and len(days) >= IN_A_ROW:
        return f"from {names[days[0]]} to {names[days[-1]]}"
    several = "s" if written.endswith("s") else ""
    listed = [f"{names[day]}{several}" for day in days]
    return "on " + " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))


def _ends_with(words: str, text: str) -> re.Match[str] | None:
    """The word of a list that a text ends with, the gap behind it counted."""
    joined = "|".join(map(re.escape, lexicon("grammar")[words]))
    return re.search(rf"\b(?:{joined})\s$", text, re.IGNORECASE)
