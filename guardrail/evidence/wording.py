"""Statements in the wording of the sentence that is held against them.

A small judge reads *7 am* and *07:00*, or *1815-12-10* and *10 December 1815*, as two things. Where
typed values compare as the same, the statement is put to it with the value as the sentence has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardrail.text.quantities import Quantity
from guardrail.text.values import Agreement, TypedValue, compare

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement

__all__ = ["in_wording_of"]


def in_wording_of(values: Sequence[TypedValue], statement: Statement) -> str:
    """The text of a statement, each value that a sentence tells as well written as there.

    Args:
        values: The typed values of the sentence.
        statement: The statement.
    """
    text = statement.text
    if not values or not statement.values:
        return text
    offset = text.rfind(statement.value_text)
    for known in reversed(statement.values):
        claimed = next((value for value in values if _same(value, known)), None)
        if claimed is not None and claimed.text != known.text:
            text = f"{text[: offset + known.start]}{claimed.text}{text[offset + known.end :]}"
    return text


def _same(claimed: TypedValue, known: TypedValue) -> bool:
    """Whether two values are the same and neither tells more than the other.

    Bare counts stay: of *two* and *2* there are many in a text, and they need not be of one thing.
    """
    if claimed.kind != known.kind or claimed.kind == "number":
        return False
    if isinstance(claimed.value, Quantity) and isinstance(known.value, Quantity):
        ranges = [item.low != item.high for item in (claimed.value, known.value)]
        if ranges[0] != ranges[1] or (
            claimed.value.unit == known.value.unit and claimed.value.low != known.value.low
        ):
            return False
    return compare(claimed, known) is compare(known, claimed) is Agreement.SAME
