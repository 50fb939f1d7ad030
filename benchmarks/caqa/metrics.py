"""What CAQA reports of an evaluator: F1 by category, micro-F1, sub-facts, agreement (5.2, 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import FiniteFloat

from benchmarks.caqa.rows import CAQARow
from guardrail.core.errors import InputError
from guardrail.core.types import Category, Complexity, Value

__all__ = [
    "Agreement",
    "FineGrained",
    "Report",
    "agreement",
    "binary_f1",
    "confusion",
    "f1_by_category",
    "fine_grained",
    "macro_f1",
    "micro_f1",
    "pearson",
    "report",
]

UNREADABLE = "unreadable"
"""Column of the confusion matrix for replies from which no category can be read."""


class Report(Value):
    """One evaluator on one set of rows, as in Table 6.

    Attributes:
        n: Number of rows.
        overall: Micro-F1 over all rows; with one label a row it equals accuracy.
        macro: Mean of the categories' F1.
        category: F1 of each category.
        complexity: Micro-F1 of the rows of each complexity that occurs.
        confusion: Counts, by gold category and then predicted one.
        unreadable: Rows whose reply named no category; they count as wrong.
    """

    n: int
    overall: FiniteFloat
    macro: FiniteFloat
    category: Mapping[str, FiniteFloat]
    complexity: Mapping[str, FiniteFloat]
    confusion: Mapping[str, Mapping[str, int]]
    unreadable: int = 0


class FineGrained(Value):
    """Sub-facts of partially supportive rows, as in Table 7.

    Attributes:
        rows: Number of rows.
        sub_facts: Number of sub-facts.
        factscore: Share of sub-facts judged supported.
        known: Share of sub-facts that the construction left in the evidence.
        error_rate: ``|factscore - known|``, FActScore's error of the estimate.
        accuracy: Share of sub-facts judged as the construction has them.
    """

    rows: int
    sub_facts: int
    factscore: FiniteFloat
    known: FiniteFloat
    error_rate: FiniteFloat
    accuracy: FiniteFloat


class Agreement(Value):
    """How two labellings of the same rows agree (6.2).

    Attributes:
        n: Number of rows.
        micro_f1: Share of rows with the same label.
        kappa: Cohen's kappa; None where both use one label only.
    """

    n: int
    micro_f1: FiniteFloat
    kappa: FiniteFloat | None


def report(rows: Sequence[CAQARow], predicted: Sequence[Category | None]) -> Report:
    """All figures of Table 6 for one evaluator.

    Args:
        rows: n rows with their categories.
        predicted: n predictions; None where none could be read.

    Raises:
        InputError: The lengths differ or there is no row.
    """
    gold = [row.category for row in rows]
    _check(gold, predicted)
    by_complexity: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        by_complexity.setdefault(row.complexity, []).append(place)
    scores = f1_by_category(gold, predicted)
    return Report(
        n=len(rows),
        overall=micro_f1(gold, predicted),
        macro=sum(scores.values()) / len(scores),
        category=scores,
        complexity={
            name: micro_f1(
                [gold[i] for i in by_complexity[name]], [predicted[i] for i in by_complexity[name]]
            )
            for name in Complexity
            if name in by_complexity
        },
        confusion=confusion(gold, predicted),
        unreadable=sum(label is None for label in predicted),
    )


def micro_f1(gold: Sequence[Category], predicted: Sequence[Category | None]) -> float:
    """Micro-averaged F1 over the categories; an unread reply costs recall, not precision."""
    _check(gold, predicted)
    right = sum(item is other for item, other in zip(gold, predicted, strict=True))
    named = sum(label is not None for label in predicted)
    return 2 * right / (len(gold) + named)


def f1_by_category(
    gold: Sequence[Category], predicted: Sequence[Category | None]
) -> dict[str, float]:
    """F1 of each category; 0 where it was neither given nor predicted rightly."""
    _check(gold, predicted)
    return {
        category: binary_f1(
            [label is category for label in gold], [label is category for label in predicted]
        )
        for category in Category
    }


def macro_f1(
    gold: Sequence[Category],
    predicted: Sequence[Category | None],
    categories: Sequence[Category] = tuple(Category),
) -> float:
    """Mean F1 over the categories that the data has."""
    scores = f1_by_category(gold, predicted)
    return sum(scores[category] for category in categories) / len(categories)


def binary_f1(gold: Sequence[bool], predicted: Sequence[bool]) -> float:
    """F1 of the positive class; 0 where no positive is hit."""
    hits = sum(item and other for item, other in zip(gold, predicted, strict=True))
    total = sum(gold) + sum(predicted)
    return 2 * hits / total if total else 0.0


def confusion(
    gold: Sequence[Category], predicted: Sequence[Category | None]
) -> dict[str, dict[str, int]]:
    """Counts by gold category, then by predicted one or ``unreadable``."""
    table = {str(row): dict.fromkeys((*map(str, Category), UNREADABLE), 0) for row in Category}
    for item, other in zip(gold, predicted, strict=True):
        table[item][UNREADABLE if other is None else str(other)] += 1
    return table


def fine_grained(rows: Sequence[CAQARow], judged: Sequence[Sequence[bool]]) -> FineGrained:
    """FActScore of partially supportive rows against the known share (6.3, Table 7).

    Args:
        rows: n partially supportive rows.
        judged: For each row, for each of its sub-facts, whether it was judged supported.

    Raises:
        InputError: A row is of another category, or the lengths differ.
    """
    if not rows or any(row.category is not Category.PARTIALLY_SUPPORTIVE for row in rows):
        raise InputError("the fine-grained measure takes partially supportive rows only")
    if [len(row.sub_facts) for row in rows] != [len(flags) for flags in judged]:
        raise InputError("one judgement is needed for each sub-fact of each row")
    known = [fact.supported for row in rows for fact in row.sub_facts]
    said = [flag for flags in judged for flag in flags]
    share, truth = sum(said) / len(said), sum(known) / len(known)
    return FineGrained(
        rows=len(rows),
        sub_facts=len(said),
        factscore=share,
        known=truth,
        error_rate=abs(share - truth),
        accuracy=sum(item == other for item, other in zip(said, known, strict=True)) / len(said),
    )


def agreement(item: Sequence[Category], other: Sequence[Category]) -> Agreement:
    """Agreement of two labellings, such as the construction's and a person's."""
    _check(item, other)
    n = len(item)
    same = sum(a is b for a, b in zip(item, other, strict=True)) / n
    chance = sum((item.count(c) / n) * (list(other).count(c) / n) for c in Category)
    return Agreement(
        n=n, micro_f1=same, kappa=None if chance == 1 else (same - chance) / (1 - chance)
    )


def pearson(item: Sequence[float], other: Sequence[float]) -> float | None:
    """Correlation of evaluators' scores under two labellings (Figure 2); None without spread."""
    n = len(item)
    if n != len(other) or n < 2:
        raise InputError("two series of the same length, at least 2, are needed")
    mean_one, mean_other = sum(item) / n, sum(other) / n
    spread = sum((a - mean_one) ** 2 for a in item) * sum((b - mean_other) ** 2 for b in other)
    if spread == 0:
        return None
    joint = sum((a - mean_one) * (b - mean_other) for a, b in zip(item, other, strict=True))
    return float(joint / spread**0.5)


def _check(gold: Sequence[object], predicted: Sequence[object]) -> None:
    if not gold or len(gold) != len(predicted):
        raise InputError(f"{len(gold)} labels for {len(predicted)} predictions; give one for each")
