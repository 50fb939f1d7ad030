"""Amounts that are computed from others: sums, differences, products, shares, times and durations.

No evidence contains a computed amount, so it is neither missing nor in conflict with what it is
computed from: *Two singles come to €34.40* where one costs €17.20.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, islice, product
from statistics import fmean
from typing import TYPE_CHECKING

from guardrail.core.text.dates import ClockTime
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.units import Bound, property_name
from guardrail.core.text.values import Agreement, TypedValue, compare
from guardrail.core.text.words import content_stems
from guardrail.core.types import Effect
from guardrail.verdict.checks.base import finding

if TYPE_CHECKING:
    from guardrail.core.types import Finding
    from guardrail.verdict.checks.base import Context, Premises
    from guardrail.verdict.claims import Claim


class Average:
    """Holds *The average price is 1,995 euros* against the mean of a table's column."""

    name = "average"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the mean that the sentence gives, or that it gives another."""
        means, indexed = content_stems("average mean"), evidence.indexed
        denying = lexicon_set("grammar", "denying").intersection([t.folded for t in claim.tokens])
        if len(claim.values) != 1 or denying:
            return ()
        claimed, span = claim.values[0], (claim.values[0].start, claim.values[0].end)
        said = content_stems(f"{claim.plain[: span[0]]} {claim.plain[span[1] :]}")
        for (column, _), amounts in indexed.columns.items() if said & means else ():
            rows = [t.row for n, _ in amounts if (t := indexed.statements[n].triple) and t.row]
            numbers = [item.ends[0] for _, item in amounts if item.low == item.high]
            words = content_stems(property_name(column))
            names = content_stems(rows[0].table) - words if rows else means
            if said - means - names == words and len({*rows}) == len(numbers) == len(amounts) > 1:
                unit, size = amounts[0][1].unit, fmean(numbers)  # kilograms and tonnes may be mixed
                size = (size - unit.offset) / unit.factor if unit else size
                mean = amounts[0][1]._replace(low=size, high=size, step=0.0)
                known = indexed.statements[amounts[0][0]].values[0]._replace(value=mean)
                where = claim, span, f"the mean is {mean.low:g}", tuple([n for n, _ in amounts])
                if compare(claimed, known) is Agreement.SAME:
                    return (finding(self.name, Effect.CARRIES, *where, decides=True),)
                if means.isdisjoint(indexed.stems):  # else a mean may be stated
                    return (finding(self.name, Effect.MISSING, *where, decides=True),)
        return ()


def is_computed(claimed: TypedValue, claim: Claim, evidence: Premises) -> bool:
    """Whether a value may be computed from others of sentence, question and evidence.

    Facts about the sentence's subjects and what the judge read go first: some pairs are tried.
    """
    number = _amount(claimed)
    if number is None:
        return False
    if claimed.kind == "number" and number == int(number) and number <= 20:
        return True  # counts may be counted from the evidence
    if claimed.kind == "time" and len(evidence.indexed.values.get("date", ())) > 1:
        return True
    stated = [*(value for value in claim.values if value is not claimed), *claim.asked_values]
    known = list(islice(_known(evidence), 400))
    first = [value for value in (*stated, *known) if _amount(value) is not None][:24]
    pairs = chain(combinations(first, 2), product(stated[:6], known))
    return is_result(claimed, pairs) or any(
        abs(number - sum(amount.ends[0] for _, amount in amounts)) <= _slack(claimed)
        for (_, kind), amounts in evidence.indexed.columns.items()
        if kind == claimed.kind and len(amounts) > 2
    )


def _known(evidence: Premises) -> Iterator[TypedValue]:
    """Values of the evidence: of facts about the sentence's subjects, of what was read, of all."""
    statements = evidence.indexed.statements
    own = (number for number, _ in evidence.indexed.facts_of(evidence.subjects))
    for number in dict.fromkeys((*own, *evidence.selection.places, *range(len(statements)))):
        yield from statements[number].values
        yield from statements[number].head_values


def is_result(claimed: TypedValue, pairs: Iterable[tuple[TypedValue, TypedValue]]) -> bool:
    """Whether an amount is what some pair of other amounts makes."""
    number, slack = _amount(claimed), _slack(claimed)
    return number is not None and any(
        abs(number - result) <= slack
        for first, second in pairs
        if number not in (_amount(first), _amount(second))  # once itself, or less nothing
        for result in _results(first, second, claimed.kind)
    )


def _slack(claimed: TypedValue) -> float:
    """How far a result may be off: half a step of the stated figure, at most 5 % of it."""
    quantity, number = claimed.value, _amount(claimed)
    if not isinstance(quantity, Quantity) or number is None:
        return 0.0
    slack = 0.5 * quantity.step * (quantity.unit.factor if quantity.unit else 1.0)
    if quantity.bound is Bound.ABOUT:
        slack = max(slack, 0.05 * number)
    return max(min(slack, 0.05 * number), 0.002 * number)


def _amount(item: TypedValue) -> float | None:
    """An amount in the first unit of what is measured, a time of day in seconds; else None."""
    if isinstance(item.value, ClockTime):
        return item.value.minutes * 60.0
    return abs(item.value.ends[0]) if isinstance(item.value, Quantity) else None


def _results(first: TypedValue, second: TypedValue, kind: str) -> Iterator[float]:
    """What two values make of a kind."""
    a, b = _amount(first), _amount(second)
    if a is None or b is None:
        return
    kinds = {first.kind, second.kind} - {"number"}
    if "time of day" in (first.kind, second.kind, kind):
        if kinds == {kind, "time"} and kind == "time of day":
            yield (a + b) % 86_400.0
            yield (a - b if second.kind == "time" else b - a) % 86_400.0
        elif kind == "time" and first.kind == second.kind:
            yield abs(a - b)
        return
    if kind != "time" and "time" in kinds <= {kind, "time"}:  # a rate, for so many hours or days
        price, length = (second, first) if first.kind == "time" else (first, second)
        assert isinstance(length.value, Quantity)
        yield (b if price is second else a) * length.value.low
    if kinds == {kind, "percent"}:
        whole, share = (b, a / 100.0) if first.kind == "percent" else (a, b / 100.0)
        yield from (whole * share, whole * (1.0 - share), whole * (1.0 + share))
    if kinds <= {kind} or (kind == "percentage points" and kinds == {"percent"}):
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
