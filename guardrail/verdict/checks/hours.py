"""Opening hours: the days and times of a sentence against those of a fact or of prose.

*On Saturdays we open at 10 am* is read as days with their times, and so are *Mo-Fr 09:00-18:00; Sa
10:00-14:00*, a column *Sunday hours* and *open Monday to Friday from 9:00 to 18:00*. The check
speaks only where sentence and evidence are read to their last word; a condition, a season, two
ranges on one day or a time without its half of the day are left to the judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.dates import ClockTime, days_of_cell, find_weekdays, through
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.values import Agreement, TypedValue, compare, find_values
from guardrail.core.text.words import Span, content_stems, outside, plain, tokenise
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.base import applies, finding, of_parts
from guardrail.verdict.checks.roles import is_between

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.checks.base import Context, Premises
    from guardrail.verdict.claims import Claim

VERB = re.compile(r"\b(?:(opens)|(closes)|(closed|shut)|(open))\b", re.IGNORECASE)
FROM = re.compile(r"\b(?:(from)|(until|till|to))\s$", re.IGNORECASE)


class _Hours(NamedTuple):
    """Some days with what is said of them: a range, single times with their ends, or neither.

    Attributes:
        days: The days, from Monday as 0.
        span: First and last time; empty if none is given.
        ends: Single times, each with -1 as the first, 1 as the last, or 0 as one in between.
        closed: True if the days are closed.
    """

    days: frozenset[int]
    span: tuple[TypedValue, ...]
    ends: tuple[tuple[TypedValue, int], ...]
    closed: bool


class OpeningHours:
    """Settles what a sentence says of the hours of weekdays, where the evidence tells them all."""

    name = "hours"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Carried as a whole, or contradicted where a day has other hours."""
        if claim.parts:
            return of_parts(self, claim, evidence, context)
        named = days_of_cell(claim.plain.partition(":")[0])
        if not (named or VERB.search(claim.plain)) or claim.plain.endswith("?"):
            return ()
        mine = _read(_blank(claim.plain, claim.mentions), claim.values)
        if not mine or not _is_clear(claim, evidence):
            return ()
        by_day: dict[int, tuple[int, _Hours]] = {}
        for number, hours in _known(claim, evidence):
            days = [day for one in hours for day in one.days]
            if not hours or not by_day.keys().isdisjoint(days):
                return ()  # something of the hours is not read, or two things have hours
            by_day |= {day: (number, one) for one in hours for day in one.days}
        said = [(day, one) for one in mine for day in sorted(one.days)]
        for day, one in said:
            if day in by_day:
                found = self._against(claim, evidence, one, *by_day[day])
                if found is None or found:
                    return found or ()
        if not by_day or not all(day in by_day for day, _ in said):
            return ()
        numbers = tuple(sorted({by_day[day][0] for day, _ in said}))
        because = f"agrees with {'; '.join([evidence.indexed.statements[n].text for n in numbers])}"
        whole = 0, len(claim.text)
        return [finding(self.name, Effect.CARRIES, claim, whole, because, numbers, decides=True)]

    def _against(
        self, claim: Claim, evidence: Premises, said: _Hours, number: int, held: _Hours
    ) -> list[Finding] | None:
        """What differs on a day: times, or open and closed; None where that is not clear."""
        pairs = [*zip(said.span, held.span, strict=False)]
        pairs += [(mine, held.span[end > 0]) for mine, end in said.ends if held.span and end]
        different = [pair for pair in pairs if compare(*pair) is Agreement.CONFLICT]
        if any(compare(*pair) is Agreement.OPEN for pair in pairs):
            return None
        outside = False
        for mine, end in said.ends if held.span else ():
            if not end and compare(mine, held.span[1]) is Agreement.SAME:
                return None
            outside = outside or not (end or is_between(mine, *held.span))
        text = evidence.indexed.statements[number].text
        spots: list[tuple[Span, str, str | None]] = [
            ((a.start, a.end), f"{a.text} is not {b.text}: {text}", b.text) for a, b in different
        ]
        if outside or said.closed is not held.closed:
            spots = [((0, len(claim.text)), f"differs from {text}", None)]
        against = self.name, Effect.CONTRADICTS, claim
        return [
            finding(*against, span, because, (number,), instead=instead, decides=True)
            for span, because, instead in spots
        ]


def _is_clear(claim: Claim, evidence: Premises) -> bool:
    """Whether the sentence names its subject, or the sentences before give only its hours."""
    names = content_stems(" ".join(evidence.subjects))
    return bool(claim.about) or _rest(claim.before, find_values(claim.before)) <= names


def _known(claim: Claim, evidence: Premises) -> Iterator[tuple[int, list[_Hours]]]:
    """Statements on the hours of what the sentence is about; one that is not read has none."""
    rest = _rest(_blank(claim.plain, claim.mentions), claim.values)
    asked = rest if claim.about else rest | content_stems(claim.asked)
    about = evidence.indexed.facts_of(evidence.subjects)
    prose = [pair for pair in evidence.chosen if pair[1].fact is None]
    for number, statement in (*about, *prose):
        if not evidence.speaks_of(statement) or not applies(claim, statement):
            continue
        hours, own = _hours_of(statement)
        names = content_stems(" ".join([statement.subject, *statement.names]))
        if hours is not None and own & _seasons():
            yield number, []
        elif hours is not None and own - names <= asked and rest <= names | own:
            yield number, hours


def _hours_of(statement: Statement) -> tuple[list[_Hours] | None, frozenset[str]]:
    """The hours that a statement gives, and what else it says in stems.

    Returns:
        No hours where it has some that are not read, None where it tells of none.
    """
    fact, text = statement.fact, plain(statement.value_text)
    label = plain(fact.property).replace("_", " ") if fact else statement.head
    named = find_weekdays(label, cell=True) if fact else []
    of_label = _rest(label, (), cell=True)
    opening = not content_stems(label).isdisjoint(_opening())
    if fact is None:
        if not VERB.search(text) or not find_weekdays(text):
            return None, frozenset()
        spans = [m.span() for m in re.finditer(re.escape(statement.subject or "\0"), text, re.I)]
        text = _blank(text, spans)
    elif not opening and (of_label or not named):
        return None, frozenset()  # *Sunday swim lessons*
    values = certain_times(statement.values)
    own = of_label | _rest(text, values, cell=fact is not None)
    if len(named) > 1 or re.search(r"\b(?:clos|shut)", label, re.IGNORECASE):
        return [], own
    hours = _read(text, values, days=named[0][0] if named else None, cell=fact is not None)
    days = [day for one in hours for day in one.days]
    read = len(days) == len({*days}) and all(_is_whole(one) for one in hours)
    return (hours if read else []), own


def _is_whole(hours: _Hours) -> bool:
    """Whether days are closed, or have a range of certain times that ends on the same day."""
    times = [item.value for item in hours.span if isinstance(item.value, ClockTime)]
    certain = all(time.half and time.zone is None for time in times)
    rises = len(times) == 2 and times[0].minutes < times[1].minutes
    return not hours.ends and certain and (rises or (hours.closed and not times))


def certain_times(values: Sequence[TypedValue]) -> list[TypedValue]:
    """Times of a text; if one is in 24-hour notation, such as 18:00, so are the others."""
    written = {item for item in values if re.fullmatch(r"\d?\d:\d\d", item.text)}
    whole = any(isinstance(item.value, ClockTime) and item.value.half for item in written)
    return [
        item._replace(value=item.value._replace(half=True))
        if whole and item in written and isinstance(item.value, ClockTime)
        else item
        for item in values
    ]


def _blank(text: str, spans: Sequence[Span]) -> str:
    """Spaces in place of some spans: *Friday* of the *Friday Cafe* is no day."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _rest(text: str, values: Sequence[TypedValue], *, cell: bool = False) -> frozenset[str]:
    """Stems of all words except days, times and words about opening."""
    text = plain(text)
    spans = [(start, end) for _, start, end in find_weekdays(text, cell=cell)]
    spans += [(item.start, item.end) for item in values]
    light = lexicon_set("calendar", "of_hours") | lexicon_set("calendar", "opening")
    left = outside(tokenise(text), spans)
    return frozenset([token.stem for token in left if token.folded not in light])


def _read(
    text: str,
    values: Sequence[TypedValue],
    *,
    days: frozenset[int] | None = None,
    cell: bool = False,
) -> list[_Hours]:
    """The days of a text with their times; nothing where they do not belong together surely.

    Args:
        text: A sentence or a cell, in plain characters.
        values: Its typed values.
        days: The days that a cell is about by its column.
        cell: True to read days as cells write them: *mo-fr*.
    """
    if any(not isinstance(item.value, ClockTime) or item.value.zone is not None for item in values):
        return []
    marks: list[tuple[int, int, object]] = [
        (start, end, named) for named, start, end in find_weekdays(text, cell=cell)
    ]
    if days is not None:
        marks = [] if marks else [(-1, -1, days)]
        if not marks:
            return []
    marks += [(item.start, item.end, item) for item in values]
    marks += [(*match.span(), None) for match in VERB.finditer(text) if match[3]]
    units: list[tuple[frozenset[int] | None, list[object]]] = []
    before = 0
    for start, end, mark in sorted(marks, key=itemgetter(0)):
        gap, last = text[max(0, before) : max(0, start)], units[-1] if units else None
        if not isinstance(mark, frozenset):
            if last is None or last[0] is not None:
                units.append((None, []))
            units[-1][1].append(mark)
        elif last is not None and last[0] is not None:
            if not re.fullmatch(r"(?:[\s,/&]|\band\b|\bon\b)*", gap, re.IGNORECASE):
                return []
            units[-1] = (last[0] | mark, [])
        elif (word := FROM.search(gap)) and (len(mark) == 1 or word[2]):
            return []  # *from Tuesday*, *from Monday 9:00 to Friday 18:00*
        else:
            units.append((mark, []))
        if len(units) > 2 and len(units) % 2 and _rest(gap, ()):
            return []  # *the pool on Mondays, the sauna on Fridays*
        before = end
    if len(units) == 1 and units[0][0] is not None:
        units.append((None, []))
    if len(units) % 2:
        return []
    found = []
    for one, other in zip(units[::2], units[1::2], strict=True):
        (named, _), (_, said) = (one, other) if one[0] is not None else (other, one)
        hours = _said(text, named or frozenset(), said)
        if hours is None:
            return []
        found.append(hours)
    return found


def _said(text: str, days: frozenset[int], said: Sequence[object]) -> _Hours | None:
    """What is said of some days; None where it is not clear."""
    times = [mark for mark in said if isinstance(mark, TypedValue)]
    verbs = [*VERB.finditer(text)]
    if len(times) < len(said):
        # *The library closed on a Sunday* tells of one day
        words = [token.folded for token in tokenise(text)]
        so = words[:1] == ["closed"] or not lexicon_set("grammar", "be").isdisjoint(words)
        is_so = so or not _rest(text, find_values(text), cell=True)
        return _Hours(days, (), (), True) if len(said) == 1 and is_so else None
    if not times:
        return None if any(verb[2] for verb in verbs) else _Hours(days, (), (), False)
    if len(times) == 2:
        between, ahead = text[times[0].end : times[1].start], text[: times[0].start]
        both = ahead.endswith("between ") and between == " and "
        if both or through().fullmatch(between):
            closes = [verb[2] for verb in verbs if verb.end() <= times[0].start][-1:]
            return None if any(closes) else _Hours(days, tuple(times), (), False)
    ends = []
    for time in times:
        word = FROM.search(text[: time.start])
        at = text[: time.start].endswith("at ")
        verb = next((v for v in reversed(verbs) if v.end() <= time.start), None)
        if word:
            ends.append((time, -1 if word[1] else 1))
        elif verb is None or verb[3] or (verb[4] and not at):
            return None
        else:
            ends.append((time, -1 if verb[1] else 1 if verb[2] else 0))
    return _Hours(days, (), tuple(ends), False)


@cache
def _seasons() -> frozenset[str]:
    calendar = lexicon("calendar")
    return content_stems(" ".join([*calendar["months"], *calendar["seasons"]]))


@cache
def _opening() -> frozenset[str]:
    return content_stems(" ".join(lexicon_set("calendar", "opening")))
