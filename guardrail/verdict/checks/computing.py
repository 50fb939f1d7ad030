"""Computing: what the cells of some rows make together: counts, sums, means and ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import isclose
from typing import TYPE_CHECKING

from guardrail.core.text.quantities import Bound, Quantity

if TYPE_CHECKING:
    from guardrail.core.text.values import TypedValue
    from guardrail.evidence.rows import Cell, Row

__all__ = ["Compute", "cells_of", "computed_from", "first_of", "is_number_of"]

Compute = Callable[[Sequence[float]], float]


def cells_of(rows: Sequence[Row], column: str | None) -> list[Cell]:
    """The cells of a column; without one the first cell of each row, which stands for it."""
    if column is None:
        return [next(iter(row.values())) for row in rows]
    return [row[column] for row in rows if column in row]


def first_of(
    rows: Sequence[Row], column: str, pick: Compute, names: Collection[str]
) -> tuple[list[Cell], bool]:
    """The cells with the greatest or least amount, and whether they are those of some subjects."""
    cells = cells_of(rows, column)
    end = pick([cell.amount for cell in cells]) if cells else 0.0
    first = [cell for cell in cells if isclose(cell.amount, end)]
    return first, {cell.statement.subject for cell in first} == {*names}


def computed_from(
    value: TypedValue, rows: Sequence[Row], column: str | None, compute: Compute | None
) -> TypedValue | None:
    """What is computed of a column's amounts; without a computation the rows, or texts, counted.

    Of one amount nothing is computed: it is told by its own fact.
    """
    cells = cells_of(rows, column)
    if compute is None:
        count = len(cells) if column is None else len({cell.text for cell in cells})
        return _with_amount(value, float(count))
    if len(cells) < 2:
        return None
    amount = compute([cell.amount for cell in cells])
    if value.kind == "date":
        return next(cell.value for cell in cells if cell.amount == amount)
    return _with_amount(cells[0].value, amount)


def _with_amount(value: TypedValue, amount: float) -> TypedValue:
    """A value of the same unit with another amount, told as exactly as it is."""
    quantity = value.value
    assert isinstance(quantity, Quantity)
    unit = quantity.unit
    number = (amount - unit.offset) / unit.factor if unit else amount
    shown = f"{number:,.2f}".rstrip("0").rstrip(".")
    exact = quantity._replace(low=number, high=number, step=1e-9, bound=Bound.EXACT)
    return value._replace(text=shown, value=exact)


def is_number_of(value: TypedValue, rows: Sequence[Row]) -> bool:
    """Whether a value is the number of some rows."""
    quantity = value.value
    if not isinstance(quantity, Quantity) or quantity.unit is not None:
        return False
    return quantity.low == quantity.high == len(rows)
