"""Opening hours: the days and times of a sentence against those of a fact or of prose.

*On Saturdays we open at 10 am* is read as days with their times, and so are *Mo-Fr 09:00-18:00; Sa
10:00-16:00*, a column *Sunday hours* and *open Monday to Friday from 9:00 to 18:00*. What is not
read to its last word is left to the judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.dates import ClockTime, find_weekdays, through
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.units import property_name
from guardrail.core.text.values import Agreement, TypedValue, compare
from guardrail.core.text.words import content_stems, plain, tokenise
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.base import applies, finding
from guardrail.verdict.checks.roles import end_of, is_between

if TYPE_CHECKING:
    from guardrail.verdict.checks.base import Context, Premises
    from guardrail.verdict.claims import Claim

CLOSED = re.compile(r"\b(?:closed|shut)\b", re.IGNORECASE)
JOINED = re.compile(r"(?:[\s,/&]|\band\b|\bon\b)*", re.IGNORECASE)
"""What stands between days of which the same is said."""


class _Hours(NamedTuple):
    """Days, from Monday as 0, with ranges of times or single ones; none if only open or closed."""

    days: frozenset[int]
    spans: tuple[tuple[TypedValue, ...], ...]
    closed: bool


class OpeningHours:
    """Settles what a sentence says of the hours of weekdays, where the evidence tells them all."""

    name = "hours"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Carried as a whole, or contradicted where a day has other hours."""
        if claim.stems.isdisjoint(_opening()) or claim.plain.endswith("?"):
            return ()
        if not (mine := _read(claim.plain, claim.values)):
            return ()
        if not claim.about and claim.asked_about - evidence.subjects:
            return ()  # *there* may mean what the question names
        told: dict[int, tuple[int, _Hours]] = {}
        for number, hours in _known(claim, evidence):
            if any(day in told for one in hours for day in one.days):
                return ()  # two things have hours of their own
            told |= {day: (number, one) for one in hours for day in one.days}
        days = [(day, said) for said in mine for day in sorted(said.days)]
        for day, said in days:
            if day in told and (found := self._against(claim, evidence, said, *told[day])):
                return found
        numbers = tuple(sorted({told[day][0] for day, _ in days if day in told}))
        if not all(day in told for day, _ in days):
            return ()
        because = f"agrees with {'; '.join([evidence.indexed.statements[n].text for n in numbers])}"
        span = 0, len(claim.text)
        return [finding(self.name, Effect.CARRIES, claim, span, because, numbers, decides=True)]

    def _against(
        self, claim: Claim, evidence: Premises, said: _Hours, number: int, held: _Hours
    ) -> list[Finding]:
        """What differs on a day: times, or open and closed."""
        pairs: list[tuple[TypedValue, TypedValue]] = []
        apart = said.closed is bool(held.spans) if not said.spans else not held.spans
        for span in said.spans if held.spans else ():
            role = end_of(claim.tokens, span[0].start) if len(span) == 1 else 0
            if any(_fits(span, known, role) for known in held.spans):
                continue
            apart, known = True, held.spans[0]
            ends = zip(span, known[role > 0 :], strict=False)
            if len(held.spans) == 1 and (role or len(span) == 2):
                pairs += [pair for pair in ends if compare(*pair) is not Agreement.SAME]
        text = evidence.indexed.statements[number].text
        spots = [((a.start, a.end), f"{a.text} is not {b.text}: {text}", b.text) for a, b in pairs]
        if apart and not spots:
            spots = [((0, len(claim.text)), f"differs from {text}", "")]
        said_against = self.name, Effect.CONTRADICTS, claim
        return [
            finding(*said_against, span, because, (number,), instead=new or None, decides=True)
            for span, because, new in spots
        ]


def _fits(span: Sequence[TypedValue], known: Sequence[TypedValue], role: int) -> bool:
    """Whether a range is another one, or a time is its first, its last or any time in it."""
    if len(span) == 2:
        return all(compare(a, b) is Agreement.SAME for a, b in zip(span, known, strict=True))
    if role:
        return compare(span[0], known[role > 0]) is Agreement.SAME
    ends = compare(span[0], known[1]) is Agreement.SAME
    return is_between(span[0], known[0], known[1]) and not ends


def _known(claim: Claim, evidence: Premises) -> Iterator[tuple[int, list[_Hours]]]:
    """The hours that the evidence gives of what the sentence is about, with their statements."""
    rest = _apart(claim.stems, claim.values)
    asked = claim.stems | content_stems(claim.asked)
    about = evidence.indexed.facts_of(evidence.subjects)
    prose = [pair for pair in evidence.chosen if pair[1].fact is None and pair not in about]
    for number, statement in (*about, *prose):
        fact, text = statement.fact, plain(statement.value_text)
        label = property_name(fact.property) if fact else ""
        names = " ".join([statement.subject, *statement.names, statement.head])
        told = content_stems(label) if fact else statement.stems
        own = _apart(told, statement.values) - content_stems(names)
        known = own <= asked or (fact is None and rest)  # else prose may be about something else
        if not known or not rest <= statement.stems | content_stems(names):
            continue
        if not applies(claim, statement):
            continue
        named = find_weekdays(plain(fact.property), cell=True) if fact else []
        if len(named) > 1:
            continue
        of_label = named[0][0] if named else frozenset[int]()
        hours = _read(text, statement.values, days=of_label, cell=fact is not None)
        whole = all(one.spans or one.closed for one in hours)
        ranges = all(len(span) == 2 for one in hours for span in one.spans)
        of_hours = of_label or not _opening().isdisjoint(content_stems(label or text))
        if hours and whole and ranges and of_hours:
            yield number, hours


def _apart(stems: frozenset[str], values: Sequence[TypedValue]) -> frozenset[str]:
    """Stems without those of days, of hours and of some values."""
    return stems - _light() - content_stems(" ".join([value.text for value in values]))


def _read(
    text: str,
    values: Sequence[TypedValue],
    *,
    days: frozenset[int] = frozenset(),
    cell: bool = False,
) -> list[_Hours]:
    """The days of a text with their times; nothing where it says something else as well.

    Args:
        text: A sentence or a cell, in plain characters.
        values: Its typed values.
        days: The days that a cell is about by its column.
        cell: True to read days as cells write them: *mo-fr*.
    """
    words = {token.folded for token in tokenise(text)}
    if words & _limits() or not all(isinstance(item.value, ClockTime) for item in values):
        return []
    spans = list[tuple[TypedValue, ...]]()
    for item in values:
        last = spans[-1] if spans else ()
        between = text[last[0].end : item.start] if len(last) == 1 else "."
        both = text[: last[0].start].endswith("between ") and between == " and " if last else False
        joined = both or through().fullmatch(between)
        spans[-1:] = [(*last, item)] if joined else [*spans[-1:], (item,)]
    marks: list[tuple[int, int, object]] = [(s[0].start, s[-1].end, s) for s in spans]
    marks += [(*match.span(), None) for match in CLOSED.finditer(text)]
    found = find_weekdays(text, cell=cell)
    if days:
        alone = not found and bool(spans) is not any(mark is None for *_, mark in marks)
        return [_Hours(days, tuple(spans), not spans)] if alone else []
    marks += [(start, end, named) for named, start, end in found]
    runs: list[list[object]] = []
    before = 0
    for start, end, mark in sorted(marks, key=itemgetter(0)):
        follows = runs and isinstance(runs[-1][0], frozenset) is isinstance(mark, frozenset)
        if follows and isinstance(mark, frozenset) and not JOINED.fullmatch(text[before:start]):
            return []
        runs[-1:] = [[*runs[-1], mark]] if follows else [*runs[-1:], [mark]]
        before = end
    if len(runs) == 1 and found:
        runs.append([])
    if len(runs) % 2:
        return []
    read = []
    for one, other in zip(runs[::2], runs[1::2], strict=True):
        named, said = (one, other) if isinstance(one[0], frozenset) else (other, one)
        if None in said and len(said) > 1:
            return []
        union = frozenset[int]().union(*(mark for mark in named if isinstance(mark, frozenset)))
        times = tuple(mark for mark in said if isinstance(mark, tuple))
        read.append(_Hours(union, times, None in said))
    return read


@cache
def _opening() -> frozenset[str]:
    return content_stems(" ".join(lexicon_set("calendar", "opening")))


@cache
def _light() -> frozenset[str]:
    """Stems of words that say nothing beside days and times."""
    calendar = lexicon("calendar")
    words = (*calendar["weekdays"], *calendar["weekday_forms"], *calendar["day_groups"])
    return _opening() | content_stems(" ".join([*words, *(f"{word}s" for word in words)]))


@cache
def _limits() -> frozenset[str]:
    """Words with which a sentence says more than days and times."""
    calendar, words = lexicon("calendar"), lexicon("function_words")
    limits = {*words["conditions"]}.difference(calendar["said_of_hours"])
    return frozenset(limits.union(words["negations"], calendar["months"], calendar["seasons"]))
