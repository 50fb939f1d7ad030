"""The roles of values: whose they are, and which end of a span or order they give.

*The Tern takes 52 cars and the Eider 38* has the right values in each other's place, and *valid
until 8 June* gives the first day as the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING

from guardrail.core.text.dates import ClockTime, Date, through
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.units import Bound, property_name
from guardrail.core.text.values import Agreement, TypedValue, compare
from guardrail.core.text.words import Token, content_stems, plain, property_words, within_another
from guardrail.evidence.statements import end_named

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.checks.base import Premises
    from guardrail.verdict.claims import Claim


FACTS = 400
"""Facts about the subjects of a sentence among which exchanged values are looked for."""


def end_of(tokens: Sequence[Token], place: int) -> int:
    """Which end of a span or order the words before a place name: -1 the first, 1 the last, 0."""
    before = ["", *(token.folded for token in tokens if token.end <= place)][-6:]
    for distance, word in enumerate(reversed(before)):
        close = distance < 2 and before[-2 - distance : -1 - distance] != ["up"]
        if found := end_named(word, close=close):
            return found
    return 0


def is_other_end(claim: Claim, place: int, statement: Statement) -> bool:
    """Whether a sentence gives a value for the other end than a fact: *until*, *valid from*."""
    return bool(statement.end) and end_of(claim.tokens, place) * statement.end < 0


def span_around(
    claim: Claim, place: int, number: int, evidence: Premises
) -> tuple[int, int] | None:
    """The two facts, one of them ``number``, that give the ends of a range.

    None if the sentence gives the value as an end.
    """
    one = evidence.indexed.statements[number]
    end = one.end
    if not end or end_of(claim.tokens, place):
        return None
    for other, known in evidence.indexed.facts_of({one.subject}):
        if known.end == -end and _spanned(known) == _spanned(one) is not None:
            return (number, other) if end < 0 else (other, number)
    return None


def lies_within(claim: Claim, claimed: TypedValue, statement: Statement) -> bool:
    """Whether a value lies inside a range of numbers or hours, and is put as no end of it."""
    if isinstance(claimed.value, ClockTime) and statement.fact:
        words = property_words(statement.fact.property).split()
        if lexicon_set("calendar", "hours").isdisjoint(words):
            return False
    if any(claimed in pair for pair in _ranges(claim.plain, claim.values)):
        return False  # *open from 8:00 to 20:00* is another range than 7:30 to 20:30
    held = statement.values
    pairs = _ranges(plain(statement.value_text), held)
    pairs += [(a, a) for a in held if isinstance(a.value, Quantity) and a.value.low < a.value.high]
    inside = any(is_between(claimed, a, b) for a, b in pairs)
    return inside and not end_of(claim.tokens, claimed.start)


def _ranges(text: str, values: Sequence[TypedValue]) -> list[tuple[TypedValue, TypedValue]]:
    """Neighbouring values that a text joins to a range: *08:00 to 20:00*."""
    return [(a, b) for a, b in pairwise(values) if through().fullmatch(text[a.end : b.start])]


def is_between(claimed: TypedValue, first: TypedValue, last: TypedValue) -> bool:
    """Whether a value lies between two of its kind; of times past midnight as well."""
    mine, low, high = claimed.value, first.value, last.value
    if isinstance(mine, ClockTime) and isinstance(low, ClockTime) and isinstance(high, ClockTime):
        span, since = (high.minutes - low.minutes) % 1440, mine.minutes - low.minutes
        later = (0,) if mine.half else (0, 720)
        return mine.zone == low.zone and any((since + half) % 1440 <= span for half in later)
    if isinstance(mine, Date) and isinstance(low, Date) and isinstance(high, Date):
        days = [(item.year or 0, item.month or 0, item.day or 0) for item in (low, mine, high)]
        return all(map(all, days)) and days == sorted(days)
    if isinstance(mine, Quantity) and isinstance(low, Quantity) and isinstance(high, Quantity):
        alike = claimed.kind == first.kind == last.kind and not mine.change
        ends = low.ends[0] <= mine.ends[0] == mine.ends[1] <= high.ends[1]
        return alike and ends and mine.bound in (Bound.EXACT, Bound.ABOUT)
    return False


def _spanned(statement: Statement) -> str | None:
    """What a fact gives an end of: *valid*, of *valid from*; None where it gives none."""
    assert statement.fact is not None
    words = property_words(statement.fact.property).split()
    rest = [word for word in words if word not in lexicon_set("grammar", "span_ends")]
    return " ".join(rest) if len(rest) < len(words) else None


def exchanged_values(claim: Claim, evidence: Premises) -> dict[TypedValue, int]:
    """Values that two subjects or two properties have in each other's place, with the facts."""
    if len(claim.values) < 2 or not evidence.subjects:
        return {}
    named = _subjects_in(claim, evidence)
    about = evidence.indexed.facts_of(evidence.subjects)
    facts = [(number, item) for number, item in about if item.fact and item.values]
    if len(facts) > FACTS:
        return {}
    holding = {v: [item for item in facts if agrees(v, item[1].values)] for v in claim.values}
    for one, other in combinations(claim.values, 2):
        if compare(one, other) is not Agreement.CONFLICT:
            continue
        for (number, held), (against, known) in product(holding[other], holding[one]):
            if agrees(one, held.values) or agrees(other, known.values):
                continue
            if _belong(one, held, other, known, claim, named):
                return {one: number, other: against}
    return {}


def _subjects_in(claim: Claim, evidence: Premises) -> list[tuple[int, int, str]]:
    """Where the sentence names its subjects, the longer name where two meet, in order."""
    named = [
        (start, end, subject)
        for subject in evidence.subjects
        for start, end in claim.spans_of(subject)
    ]
    return sorted(
        (start, end, subject)
        for start, end, subject in named
        if not within_another((start, end), [(a, b) for a, b, _ in named])
    )


def _belong(
    one: TypedValue,
    held: Statement,
    other: TypedValue,
    known: Statement,
    claim: Claim,
    named: Sequence[tuple[int, int, str]],
) -> bool:
    """Whether two values stand where those of two facts belong, the first before the second."""
    assert held.fact is not None
    assert known.fact is not None
    if held.fact.property == known.fact.property:
        if len(named) != 2 or [held.subject, known.subject] != [name for _, _, name in named]:
            return False
        (_, first, _), (start, end, _) = named
        return first <= one.start and one.end <= start and end <= other.start
    if held.subject != known.subject:
        return False
    properties = held.fact.property, known.fact.property
    words = [content_stems(property_name(label)) for label in properties]
    near = [
        (_distance(claim, one, mine - theirs), _distance(claim, other, mine - theirs))
        for mine, theirs in (words, words[::-1])
    ]
    return near[0][0] < near[0][1] and near[1][1] < near[1][0] and max(near[0][0], near[1][1]) <= 2


def _distance(claim: Claim, value: TypedValue, words: frozenset[str]) -> int:
    """Words between a value and the nearest of some words; 99 where none stands."""
    places = [place for place, token in enumerate(claim.tokens) if token.stem in words]
    own = [
        place
        for place, token in enumerate(claim.tokens)
        if token.start < value.end and value.start < token.end
    ]
    return min((abs(a - b) for a in places for b in own), default=99)


def agrees(claimed: TypedValue, known: Iterable[TypedValue]) -> bool:
    """Whether a value agrees with one of some others."""
    return any(compare(claimed, item) is Agreement.SAME for item in known)
