"""Typed values: numbers, money, units, dates, times and versions, compared and not guessed.

A value that agrees with some evidence, the question or what was told before is left to the judge.
One that agrees with none contradicts the statement that tells the same thing; which one that is,
alignment says. In prose the judge has to say so as
well. Where that is not sure, the value is missing, unless it may be reckoned from others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from guardrail.text.quantities import Bound, Quantity
from guardrail.text.values import Agreement, TypedValue, compare, find_values
from guardrail.text.words import content_stems, plain
from guardrail.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding
from guardrail.verdict.checks.exact import named_share

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["TypedValues"]

NEAR = 60
"""Characters round a value in a passage whose words say what it is a value of."""

SURE = 0.5
"""Least probability at which the judge's word on a statement counts."""

FEW = 20
"""Counts up to this may be counted from the evidence."""

ROUGHLY = 0.05
"""Share by which what is reckoned may differ where it is told in round figures."""

EXACTLY = 0.002
"""The same where it is not."""

RECKONED = 24
"""At most this many values of one kind are reckoned with."""


class _Rival(NamedTuple):
    """A held value that differs from one that is told, and how well their statements align."""

    score: float
    number: int
    known: TypedValue


class TypedValues:
    """Compares the values of a sentence with those of its evidence."""

    name = "typed_values"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Finding | None:
        """Find the first value that contradicts a statement, else the first that is missing."""
        missing: Finding | None = None
        before = find_values(context.text) if claim.values else []
        for claimed in claim.values:
            if _agrees(claimed, before) or _agrees(claimed, _all_values(evidence)):
                continue
            if _reckonable(claimed, claim, before, evidence):
                continue
            span = claimed.start, claimed.end
            rival = _rival(claimed, claim, evidence)
            if rival is not None:
                statement = evidence.indexed.statements[rival.number]
                because = f"{claimed.text} is not {rival.known.text}: {statement.text}"
                return finding(self.name, Effect.CONTRADICTS, claim, span, because, (rival.number,))
            if missing is None:
                because = f"no evidence tells {claimed.text}"
                missing = finding(self.name, Effect.MISSING, claim, span, because)
        return missing


def _all_values(evidence: Premises) -> Iterable[TypedValue]:
    return (value for values in evidence.indexed.values.values() for value in values)


def _agrees(claimed: TypedValue, known: Iterable[TypedValue]) -> bool:
    return any(compare(claimed, item) is Agreement.SAME for item in known)


def _rival(claimed: TypedValue, claim: Claim, evidence: Premises) -> _Rival | None:
    """The value that the best aligned statement gives instead; None where none is sure."""
    rivals: list[_Rival] = []
    for number, statement in evidence.chosen:
        if not evidence.speaks_of(statement):
            continue
        for known in statement.values:
            verdict = compare(claimed, known)
            if verdict is Agreement.CONFLICT and not _agrees(known, claim.values):
                score = _alignment(claimed, known, claim, statement, evidence, number)
                if score > 0.0:
                    rivals.append(_Rival(score, number, known))
            elif verdict is Agreement.OPEN and known.kind == claimed.kind:
                return None  # a range or bound leaves room
    if not rivals:
        return None
    rivals.sort(key=lambda item: -item.score)
    first = rivals[0]
    for other in rivals[1:]:
        if other.score >= first.score and compare(other.known, first.known) is not Agreement.SAME:
            return None
    return first


def _alignment(
    claimed: TypedValue,
    known: TypedValue,
    claim: Claim,
    statement: Statement,
    evidence: Premises,
    number: int,
) -> float:
    """How sure it is that two values are told of the same thing; 0 where it is not."""
    word = max(evidence.carries(number), evidence.conflicts(number))
    if statement.triple is not None:
        share = named_share(claim, statement.triple.property)
        if share >= 0.5 or (evidence.conflicts(number) >= SURE and claimed.kind == known.kind):
            return share + word + 0.01
        return 0.0
    mine = _near(plain(claim.text), claimed) - content_stems(claimed.text)
    theirs = _near(plain(statement.text), known)
    hits = len(mine & theirs)
    if hits and word >= SURE:
        return hits / max(1, len(mine)) + word
    return 0.0


def _near(text: str, value: TypedValue) -> frozenset[str]:
    around = (
        f"{text[max(0, value.start - NEAR) : value.start]} {text[value.end : value.end + NEAR]}"
    )
    return content_stems(around)


def _reckonable(
    claimed: TypedValue, claim: Claim, before: Sequence[TypedValue], evidence: Premises
) -> bool:
    """Whether a value may be reckoned from others: a sum, a difference, a share, a product.

    So may small counts, and how long it was between two dates.
    """
    quantity = claimed.value
    if not isinstance(quantity, Quantity):
        return False
    number = abs(quantity.base(quantity.low))
    if claimed.kind == "number" and number == int(number) and number <= FEW:
        return True
    if claimed.kind == "time" and len(evidence.indexed.values.get("date", ())) > 1:
        return True
    others = [value for value in claim.values if value is not claimed]
    known = [*_all_values(evidence), *before, *others]
    known = [value for value in known if isinstance(value.value, Quantity)][:RECKONED]
    slack = 0.5 * quantity.step * (quantity.unit.factor if quantity.unit else 1.0)
    if quantity.bound is Bound.ABOUT:
        slack = max(slack, ROUGHLY * number)
    slack = max(min(slack, ROUGHLY * number), EXACTLY * number)
    return any(
        abs(number - result) <= slack
        for first, second in combinations(known, 2)
        for result in _results(first, second, claimed.kind)
    )


def _results(first: TypedValue, second: TypedValue, kind: str) -> Iterator[float]:
    """What two values make of a kind: sums and differences of one kind, shares, products."""
    assert isinstance(first.value, Quantity)
    assert isinstance(second.value, Quantity)
    a, b = (abs(item.value.base(item.value.low)) for item in (first, second))  # type: ignore[union-attr]
    kinds = {first.kind, second.kind} - {"number"}
    if kinds <= {kind}:
        yield a + b
        yield abs(a - b)
    if kinds <= {kind} or len(kinds) == 2:
        yield a * b
    if a and b:
        for ratio in (a / b, b / a):
            if kind == "percent":
                yield ratio * 100.0
                yield abs(1.0 - ratio) * 100.0
            else:
                yield ratio
