"""Typed values: numbers, money, units, dates, times and versions, compared and not guessed.

A value that agrees with some evidence, the question or what was told before is left to the judge.
One that agrees with none contradicts the statement that tells the same thing; which one that is,
alignment says. Where that is not sure, the value is missing, unless it may be reckoned from others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from guardrail.evidence.statements import Statement
from guardrail.text.quantities import Quantity
from guardrail.text.values import Agreement, TypedValue, compare, find_values
from guardrail.text.words import content_stems, plain, property_words
from guardrail.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding
from guardrail.verdict.claims import Claim
from guardrail.verdict.premises import Premises

__all__ = ["TypedValues"]

NEAR = 60
"""Characters round a value in a passage whose words say what it is a value of."""

SURE = 0.5
"""Least probability at which the judge's word on a statement counts."""

FEW = 20
"""Counts up to this may be counted from the evidence."""

RECKONED = 40
"""At most this many values of one kind are reckoned with."""


class _Rival(NamedTuple):
    """A held value that differs from one that is told, and how well their statements align."""

    score: float
    number: int
    held: TypedValue


class TypedValues:
    """Compares the values of a sentence with those of its evidence."""

    name = "typed_values"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Finding | None:
        """Find the first value that contradicts a statement, else the first that is missing."""
        missing: Finding | None = None
        before = find_values(context.text) if claim.values else []
        for told in claim.values:
            if _agrees(told, before) or _agrees(told, _all_values(evidence)):
                continue
            span = told.start, told.end
            rival = _rival(told, claim, evidence)
            if rival is not None:
                statement = evidence.holdings.statements[rival.number]
                because = f"{told.text} is not {rival.held.text}: {statement.text}"
                return finding(self.name, Effect.CONTRADICTS, claim, span, because, (rival.number,))
            if missing is None and not _reckonable(told, evidence):
                because = f"no evidence tells {told.text}"
                missing = finding(self.name, Effect.MISSING, claim, span, because)
        return missing


def _all_values(evidence: Premises) -> Iterable[TypedValue]:
    return (value for values in evidence.holdings.values.values() for value in values)


def _agrees(told: TypedValue, held: Iterable[TypedValue]) -> bool:
    return any(compare(told, one) is Agreement.SAME for one in held)


def _rival(told: TypedValue, claim: Claim, evidence: Premises) -> _Rival | None:
    """The value that the best aligned statement gives instead; None where none is sure."""
    rivals: list[_Rival] = []
    for number, statement in evidence.chosen:
        if not evidence.speaks_of(statement):
            continue
        for held in statement.values:
            verdict = compare(told, held)
            if verdict is Agreement.CONFLICT:
                score = _alignment(told, held, claim, statement, evidence, number)
                if score > 0.0:
                    rivals.append(_Rival(score, number, held))
            elif verdict is Agreement.OPEN and held.kind == told.kind:
                return None  # a range or bound leaves room
    if not rivals:
        return None
    rivals.sort(key=lambda one: -one.score)
    first = rivals[0]
    for other in rivals[1:]:
        if other.score >= first.score and compare(other.held, first.held) is not Agreement.SAME:
            return None
    return first


def _alignment(
    told: TypedValue,
    held: TypedValue,
    claim: Claim,
    statement: Statement,
    evidence: Premises,
    number: int,
) -> float:
    """How sure it is that two values are told of the same thing; 0 where it is not."""
    word = max(evidence.carries(number), evidence.conflicts(number))
    if statement.triple is not None:
        words = content_stems(property_words(statement.triple.property)) - _value_stems(told)
        hits = len(words & claim.stems)
        share = hits / len(words) if words else 0.0
        if share >= 0.5 or (evidence.conflicts(number) >= SURE and told.kind == held.kind):
            return share + word + 0.01
        return 0.0
    mine = _near(plain(claim.text), told) - _value_stems(told)
    theirs = _near(plain(statement.text), held)
    hits = len(mine & theirs)
    if hits >= 2 or (hits and evidence.conflicts(number) >= SURE):
        return hits / max(1, len(mine)) + word
    return 0.0


def _near(text: str, value: TypedValue) -> frozenset[str]:
    around = (
        f"{text[max(0, value.start - NEAR) : value.start]} {text[value.end : value.end + NEAR]}"
    )
    return content_stems(around)


def _value_stems(value: TypedValue) -> frozenset[str]:
    return content_stems(value.text)


def _reckonable(told: TypedValue, evidence: Premises) -> bool:
    """Whether a value may be reckoned from those of the evidence: a sum, a difference, a share.

    So may counts, and how long it was between two dates.
    """
    if not isinstance(told.value, Quantity):
        return False
    number = told.value.base(told.value.low)
    if told.kind == "number" and number == int(number) and abs(number) <= FEW:
        return True
    if told.kind == "time" and len(evidence.holdings.values.get("date", ())) > 1:
        return True
    for kind, values in evidence.holdings.values.items():
        held = [one.value for one in values if isinstance(one.value, Quantity)][:RECKONED]
        numbers = [one.base(end) for one in held for end in {one.low, one.high}]
        for results in (_results(numbers, kind == told.kind, told.kind),):
            if any(_close(number, result) for result in results):
                return True
    return False


def _results(numbers: Sequence[float], same: bool, kind: str) -> Iterable[float]:
    """What two numbers of one kind make: a sum or difference of their kind, a share of any."""
    for first, second in combinations(numbers, 2):
        if same:
            yield first + second
            yield abs(first - second)
        if kind in ("number", "percent") and first and second:
            scale = 100.0 if kind == "percent" else 1.0
            for ratio in (first / second, second / first):
                yield ratio * scale
                yield abs(1.0 - ratio) * scale


def _close(told: float, result: float) -> bool:
    return abs(told - result) <= 0.03 * max(abs(told), abs(result))
