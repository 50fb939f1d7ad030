"""Tables among the statements: their rows and columns, and the rows that a text speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.apart import Span, meets, within_another
from guardrail.core.text.dates import Date
from guardrail.core.text.names import label_in
from guardrail.core.text.properties import cues
from guardrail.core.text.quantities import Bound, Quantity, find_quantities
from guardrail.core.text.units import unit_of_label
from guardrail.core.text.values import Agreement, TypedValue, compare
from guardrail.core.text.words import Token, content_stems, property_words

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement

__all__ = ["Cell", "Narrowed", "Row", "RowsOfTable", "tables_of"]

LONGEST = 60
"""Most characters of a cell that may name what rows have in common: a place, a category."""

LIMITS = (Bound.ABOVE, Bound.BELOW, Bound.AT_LEAST, Bound.AT_MOST)


class Cell:
    """A cell of a row.

    Attributes:
        number: Number of its statement among all.
        statement: The statement.
        typed: The one amount or date that it is; None where it is something else.
    """

    def __init__(self, number: int, statement: Statement) -> None:
        self.number = number
        self.statement = statement
        self.typed: TypedValue | None = _typed(statement)

    @property
    def text(self) -> str:
        """As the table writes it."""
        return self.statement.value_text

    @property
    def value(self) -> TypedValue:
        """Its typed value, in a column that has a kind."""
        assert self.typed is not None
        return self.typed

    @property
    def amount(self) -> float:
        """Its number in the first unit of what it measures, or its date as a number of days."""
        value = self.value.value
        if isinstance(value, Quantity):
            return value.base(value.low)
        assert isinstance(value, Date)
        return float(date(max(1, value.year or 1), value.month or 1, value.day or 1).toordinal())


class Row(dict[str, Cell]):
    """The cells of a row by column; of a list in a cell its first item."""

    @property
    def subject(self) -> str:
        """What the row tells of."""
        return next(iter(self.values())).statement.subject


class Narrowed(NamedTuple):
    """The rows that a text speaks of.

    Attributes:
        rows: Those that have what it names; all where it names nothing.
        spans: The values and names of the text by which they were chosen.
    """

    rows: tuple[Row, ...]
    spans: tuple[Span, ...]


class RowsOfTable:
    """A table all of whose rows are among the evidence.

    Attributes:
        name: What the rows are.
        rows: In the order of the table.
    """

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        self.name = name
        self.rows = tuple(rows)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """All columns but that of the subjects."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row))

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        """What the rows tell of, each once."""
        return tuple(dict.fromkeys(row.subject for row in self.rows))

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of each column's values; none of a column that has others than one kind."""
        found = {column: _kind(self._cells(column)) for column in self.columns}
        return {column: kind for column, kind in found.items() if kind is not None}

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its name, and of the words by which prose names its columns."""
        own = content_stems(self.name).union(*map(self.stems_of, self.columns))
        return own.union(*map(cues, self.columns))

    def stems_of(self, column: str) -> frozenset[str]:
        """Stems of a column's name, its unit left out: *price* of ``price_eur``."""
        name = property_words(column)
        return content_stems(name if unit_of_label(column) is None else name.rpartition(" ")[0])

    def text_column(self, stem: str) -> str | None:
        """The column of texts whose name is one word, by its stem; None where there is none."""
        texts = (column for column in self.columns if column not in self.kinds)
        return next((column for column in texts if self.stems_of(column) == {stem}), None)

    def named(self, text: str, tokens: Sequence[Token]) -> dict[str, list[Span]]:
        """The subjects that a text names in full, and where; a name within a fuller one is none."""
        found = {subject: label_in(text, tokens, subject) for subject in self.subjects}
        spans = [span for item in found.values() for span in item]
        return {
            subject: own
            for subject, places in found.items()
            if (own := [span for span in places if not within_another(span, spans)])
        }

    def narrowed(
        self,
        text: str,
        tokens: Sequence[Token],
        values: Sequence[TypedValue],
        taken: Sequence[Span] = (),
    ) -> Narrowed | None:
        """The rows that have the names, dates and bounds that a text tells.

        Args:
            text: A text with plain signs.
            tokens: Its words.
            values: Its typed values that are not themselves told of the rows.
            taken: Where it tells something else.

        Returns:
            None where it tells a date or bound that no one column has.
        """
        rows: Sequence[Row] = self.rows
        marks: list[Span] = []
        for column in self.columns:
            if column in self.kinds:
                continue
            if said := self._said(column, tokens, taken):
                rows = [row for row in rows if column in row and row[column].statement.yes]
                marks += said
                continue
            cells = dict.fromkeys(cell.text for cell in self._cells(column))
            spans = {
                cell: own
                for cell in cells
                if len(cell) <= LONGEST
                and (own := [s for s in label_in(text, tokens, cell) if not meets(s, taken)])
            }
            if spans:
                rows = [row for row in rows if column in row and row[column].text in spans]
                marks += [span for own in spans.values() for span in own]
        for value in values:
            span = value.start, value.end
            keeps = None if meets(span, taken) else self._keeping(value)
            if keeps is None:
                continue
            if len(keeps) != 1:
                return None
            column, numbers = keeps.popitem()
            rows = [row for row in rows if column in row and row[column].number in numbers]
            marks.append(span)
        return Narrowed(tuple(rows), tuple(marks))

    def _said(
        self, column: str, tokens: Sequence[Token], taken: Sequence[Span]
    ) -> tuple[Span, ...]:
        """Where a text names a column of yes and no: *in stock*; nowhere for any other column."""
        if any(cell.statement.yes is None for cell in self._cells(column)):
            return ()
        stems = self.stems_of(column)
        spans = {token.stem: (token.start, token.end) for token in tokens if token.stem in stems}
        whole = stems <= {*spans} and not any(meets(span, taken) for span in spans.values())
        return tuple(spans.values()) if whole else ()

    def _keeping(self, value: TypedValue) -> dict[str, set[int]] | None:
        """By column the cells that keep to a date or bound; None of another value."""
        if isinstance(value.value, Date):
            same = {
                column: {
                    cell.number
                    for cell in self._cells(column)
                    if compare(value, cell.value) is Agreement.SAME
                }
                for column, kind in self.kinds.items()
                if kind == "date"
            }
            return {column: cells for column, cells in same.items() if cells}
        if isinstance(value.value, Quantity) and value.value.bound in LIMITS:
            return {
                column: {c.number for c in self._cells(column) if _keeps(c, value.value)}
                for column, kind in self.kinds.items()
                if kind == value.kind
            }
        return None

    def _cells(self, column: str) -> list[Cell]:
        return [row[column] for row in self.rows if column in row]


def tables_of(statements: Sequence[Statement]) -> tuple[RowsOfTable, ...]:
    """The tables whose rows are all among some statements: of others nothing can be computed."""
    found: dict[tuple[str, int], dict[int, Row]] = {}
    for number, statement in enumerate(statements):
        place = statement.triple.row if statement.triple else None
        if place is not None and statement.fact is not None:
            rows = found.setdefault((place.table, place.of), {})
            row = rows.setdefault(place.number, Row())
            row.setdefault(statement.fact.property, Cell(number, statement))
    return tuple(
        RowsOfTable(name, [rows[place] for place in sorted(rows)])
        for (name, size), rows in found.items()
        if len(rows) == size
    )


def _kind(cells: Sequence[Cell]) -> str | None:
    """The kind of some cells that are one number or date each; None of all others."""
    kinds = {cell.typed and cell.typed.kind for cell in cells}
    if kinds == {"date", "number"}:  # four figures among other numbers are no year
        for cell in cells:
            cell.typed = _quantity(cell.text)
        kinds = {cell.typed and cell.typed.kind for cell in cells}
    return kinds.pop() if len(kinds) == 1 else None


def _typed(statement: Statement) -> TypedValue | None:
    """The one amount or date that a cell is."""
    values = statement.values
    if len(values) != 1 or values[0].text.strip() != statement.value_text.strip():
        return None
    value = values[0].value
    if isinstance(value, Quantity):
        return values[0] if value.low == value.high else None
    return values[0] if isinstance(value, Date) and value.year is not None else None


def _quantity(text: str) -> TypedValue | None:
    found = find_quantities(text)
    if len(found) != 1 or found[0].unit is not None:
        return None
    return TypedValue("number", text, found[0].start, found[0].end, found[0])


def _keeps(cell: Cell, limit: Quantity) -> bool:
    amount, most = cell.amount, limit.base(limit.low)
    return {
        Bound.ABOVE: amount > most,
        Bound.BELOW: amount < most,
        Bound.AT_LEAST: amount >= most,
        Bound.AT_MOST: amount <= most,
    }[limit.bound]
