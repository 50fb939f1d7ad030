"""Tables among the statements: their rows and columns, and the rows that a text speaks of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.apart import Span, meets, within_another
from guardrail.core.text.dates import Date
from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.names import label_in
from guardrail.core.text.properties import cues, property_name
from guardrail.core.text.quantities import Bound, Quantity, find_quantities
from guardrail.core.text.superlatives import measures
from guardrail.core.text.values import Agreement, TypedValue, compare
from guardrail.core.text.words import MIN_STEM, Token, content_stems

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement

__all__ = ["Cell", "Narrowed", "Row", "RowsOfTable", "tables_of"]

LONGEST = 60
"""Most characters of a cell that may name what rows have in common: a place, a category."""

LIMITS = (Bound.ABOVE, Bound.BELOW, Bound.AT_LEAST, Bound.AT_MOST)

SUBJECTS = ""
"""The column of what the rows tell of."""


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
        """Its number in the first unit of what it measures; its date in figures: 20240630."""
        value = self.value.value
        if isinstance(value, Quantity):
            return value.base(value.low)
        assert isinstance(value, Date)
        return float(10_000 * (value.year or 0) + 100 * (value.month or 1) + (value.day or 1))


class Row(dict[str, Cell]):
    """The cells of a row by column; of a list in a cell its first item."""

    missing = 0
    """Cells without a value: *NaN*, *NULL*."""

    @property
    def subject(self) -> str:
        """What the row is about."""
        return next(iter(self.values())).statement.subject

    @property
    def cut(self) -> bool:
        """Whether cells of it are missing, as far as their number is known."""
        triple = next(iter(self.values())).statement.triple
        return len(self) + self.missing < ((triple and triple.row and triple.row.cells) or 0)


class Narrowed(NamedTuple):
    """The rows that a text speaks of.

    Attributes:
        rows: Those that have what it names; all where it names nothing.
        spans: The values and names of the text by which they were chosen.
        columns: The columns in which these stand.
        strange: The content words of the text that stand nowhere in the table, or in several of
            its columns: they may narrow the rows as well.
        loose: Whether its names stand in different rows, or the table is loose: more may be meant.
    """

    rows: tuple[Row, ...]
    spans: tuple[Span, ...] = ()
    columns: tuple[str, ...] = ()
    strange: tuple[Span, ...] = ()
    loose: bool = False

    @property
    def unsure(self) -> bool:
        """Whether other rows may be meant: then what differs from these contradicts nothing."""
        return self.loose or bool(self.strange)


class RowsOfTable:
    """A table all of whose rows are among the evidence.

    Attributes:
        name: What the rows are.
        rows: In the order of the table.
        cut: Whether cells are missing.
        loose: Whether more may be meant than these: it bears out what is told, or says nothing.
        columns: Their cells, but for that of the subjects and those of which one may be missing.
    """

    def __init__(self, name: str, rows: Sequence[Row], *, page: bool = False) -> None:
        self.name = name
        self.rows = tuple(rows)
        cut = [row for row in rows if row.cut]
        self.cut, self.loose = bool(cut), bool(cut) or page
        columns = dict.fromkeys(column for row in rows for column in row)
        self.columns = {
            column: [row[column] for row in rows if column in row]
            for column in columns
            if all(column in row for row in cut)
        }

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        """What the rows tell of, each once."""
        return tuple(dict.fromkeys(row.subject for row in self.rows))

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of each column's values; none of a column that has others than one kind."""
        found = {column: _kind(cells) for column, cells in self.columns.items()}
        return {column: kind for column, kind in found.items() if kind is not None}

    @cached_property
    def texts(self) -> dict[str, list[Cell]]:
        """The cells of the columns that have no kind."""
        return {column: cells for column, cells in self.columns.items() if column not in self.kinds}

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its name, and of words by which prose names its columns: *cost* for price."""
        own = content_stems(self.name).union(*map(self.stems_of, self.columns))
        own = own.union(*map(cues, self.columns))
        return own.union(*(stems for stems in measures() if not stems.isdisjoint(own)))

    def tells(self, stem: str) -> bool:
        """Whether a word is one of its own, or the verb of one: *weigh*, of *weight*."""
        whole = stem in self.stems or stem in _limiting()
        return whole or (len(stem) >= MIN_STEM and any(s.startswith(stem) for s in self.stems))

    @cached_property
    def words(self) -> dict[str, dict[str, set[int]]]:
        """By the stem of a word, then by column, the rows whose names and texts have it."""
        found: dict[str, dict[str, set[int]]] = {}
        for row in self.rows:
            texts = {c: cell.text for c, cell in row.items() if c in self.texts}
            for column, text in {**texts, SUBJECTS: row.subject}.items():
                for stem in content_stems(text) if len(text) <= LONGEST else ():
                    found.setdefault(stem, {}).setdefault(column, set()).add(id(row))
        return found

    def stems_of(self, column: str) -> frozenset[str]:
        """Stems of a column's name, its unit left out: *price* of ``price_eur``."""
        return content_stems(property_name(column))

    def text_column(self, stem: str) -> str | None:
        """The column of texts whose name is one word, by its stem; None where there is none."""
        return next((column for column in self.texts if self.stems_of(column) == {stem}), None)

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
        taken: Sequence[Span],
        *,
        named: Collection[str] = (),
        known: Callable[[Token], bool],
    ) -> Narrowed | None:
        """The rows that have the names, words, dates and bounds that a text tells.

        Args:
            text: A text with plain signs.
            tokens: Its words.
            values: Its typed values that are not themselves told of the rows.
            taken: Where it tells something else.
            named: Subjects that it names in full and that narrow the rows.
            known: Whether a word tells nothing that narrows them.

        Returns:
            None where it tells a date or bound that no one column has, or a word that may stand in
            a cell that is missing.
        """
        found = Narrowed(self.rows)
        for column, held in self.texts.items():
            if marks := self._said(column, tokens, taken):
                kept = tuple(r for r in found.rows if column in r and r[column].statement.yes)
                found = Narrowed(kept, found.spans + marks, (*found.columns, column))
                continue
            cells = dict.fromkeys(cell.text for cell in held)
            spans = {
                cell: own
                for cell in cells
                if len(cell) <= LONGEST
                and (own := [s for s in label_in(text, tokens, cell) if not meets(s, taken)])
            }
            if spans:
                kept = tuple(r for r in found.rows if column in r and r[column].text in spans)
                marks = tuple(span for own in spans.values() for span in own)
                found = Narrowed(kept, found.spans + marks, (*found.columns, column))
        for value in values:
            if meets((value.start, value.end), taken):
                continue
            keeps = self._keeping(value)
            if keeps is None:
                continue
            if len(keeps) != 1:
                return None
            column, numbers = keeps.popitem()
            kept = tuple(r for r in found.rows if column in r and r[column].number in numbers)
            marks = (*found.spans, (value.start, value.end))
            found = Narrowed(kept, marks, (*found.columns, column))
        read = (*taken, *found.spans, *((value.start, value.end) for value in values))
        words = [t for t in tokens if not known(t) and not meets((t.start, t.end), read)]
        found = self._with_words(found, words, named)
        return None if self.cut and found.strange else found

    def _with_words(
        self, found: Narrowed, words: Sequence[Token], named: Collection[str]
    ) -> Narrowed:
        """Of some rows those that have further words of a text: *Alba*, of *Alba 2*.

        Rows that have all of them go before rows that have one, which a text may tell apart.
        """
        sets: dict[str, list[set[int]]] = {}
        known = [token for token in words if len(self.words.get(token.stem, ())) == 1]
        for token in known:
            for column, having in self.words[token.stem].items():
                sets.setdefault(column, []).append(having)
        full = {id(row) for row in self.rows if row.subject in named}
        kept, loose = {id(row) for row in found.rows}, self.loose
        for column, several in sets.items():
            own = full if column == SUBJECTS else set[int]()
            every = set[int]() if own else set.intersection(*several)
            loose |= not every
            kept &= every or own.union(*several)
        if full and SUBJECTS not in sets:
            kept &= full
        rows = tuple(row for row in found.rows if id(row) in kept)
        marks = [(t.start, t.end) for t in known] if len(rows) < len(found.rows) else []
        strange = tuple((token.start, token.end) for token in words if token not in known)
        columns = (*found.columns, *sets)
        return Narrowed(rows, (*found.spans, *marks), columns, strange, loose)

    def _said(
        self, column: str, tokens: Sequence[Token], taken: Sequence[Span]
    ) -> tuple[Span, ...]:
        """Where a text names a column of yes and no: *in stock*; nowhere for any other column."""
        if any(cell.statement.yes is None for cell in self.columns[column]):
            return ()
        stems = self.stems_of(column)
        spans = {token.stem: (token.start, token.end) for token in tokens if token.stem in stems}
        whole = stems <= {*spans} and not any(meets(span, taken) for span in spans.values())
        return tuple(spans.values()) if whole else ()

    def _keeping(self, value: TypedValue) -> dict[str, set[int]] | None:
        """By column the cells that keep to a date or bound; None of another value."""
        dated = isinstance(value.value, Date)
        if not dated and not (isinstance(value.value, Quantity) and value.value.bound in LIMITS):
            return None
        kept = {
            column: {cell.number for cell in self.columns[column] if _keeps(cell, value)}
            for column, kind in self.kinds.items()
            if kind == value.kind
        }
        return {column: cells for column, cells in kept.items() if cells or not dated}


def tables_of(statements: Sequence[Statement]) -> tuple[RowsOfTable, ...]:
    """The tables whose rows are all among some statements: of others nothing can be computed.

    Those of one name and with the same columns, as the pages of a list, are one more together.
    """
    found: dict[tuple[str, str | None, int], dict[int, Row]] = {}
    for number, statement in enumerate(statements):
        place = statement.triple.row if statement.triple else None
        if place is not None and statement.fact is not None:
            by_place = found.setdefault((place.table, place.table_id, place.of), {})
            row = by_place.setdefault(place.number, Row())
            if statement.is_missing:
                row.missing += 1
                continue
            row.setdefault(statement.fact.property, Cell(number, statement))
    lacking: set[int] = set()
    alike: dict[tuple[str, frozenset[str]], list[list[Row]]] = {}
    for (name, _, size), by_place in found.items():
        rows = [by_place[place] for place in sorted(by_place)]
        if len(rows) == size and any(rows):
            full = [row for row in rows if row]
            alike.setdefault((name, frozenset().union(*rows)), []).append(full)
            lacking |= {id(full)} if len(full) < size else set()
    pages = [
        (name, rows, bool(own[1:]) or id(rows) in lacking)
        for (name, _), own in alike.items()
        for rows in own
    ]
    together = [(name, [*chain(*own)], False) for (name, _), own in alike.items() if own[1:]]
    return tuple(RowsOfTable(name, rows, page=page) for name, rows, page in pages + together)


@cache
def _limiting() -> frozenset[str]:
    """Stems of the words that bound a value, such as *less than*."""
    signs = lexicon("numbers")
    return content_stems(" ".join(sign for bound in Bound for sign in signs.get(bound, ())))


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


def _keeps(cell: Cell, told: TypedValue) -> bool:
    limit = told.value
    if not isinstance(limit, Quantity):
        return compare(told, cell.value) is Agreement.SAME
    amount, most = cell.amount, limit.base(limit.low)
    return {
        Bound.ABOVE: amount > most,
        Bound.BELOW: amount < most,
        Bound.AT_LEAST: amount >= most,
        Bound.AT_MOST: amount <= most,
    }[limit.bound]
