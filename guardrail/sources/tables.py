"""Rows of a table as evidence: each cell is a fact with its row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime, time
from decimal import Decimal
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from guardrail.core.errors import InputError, file_errors
from guardrail.core.fields import LONGEST, did_you_mean, in_short
from guardrail.core.objects import DEEPEST, NAME_COLUMNS, flat_row, identifying_key
from guardrail.core.rows import TABLE_FILES, cell_text, read_rows
from guardrail.core.text.words import content_stems
from guardrail.core.types import TableRow, Triple
from guardrail.core.workers import stop_if_given_up

if TYPE_CHECKING:
    from sqlalchemy import Connection as SQLAlchemyConnection
    from sqlalchemy.orm import Session

__all__ = [
    "MAX_ROWS", "MOST_CELLS", "Rows", "Table", "evidence_from_sql",
    "few_enough", "in_one_notation", "row_size", "within_cells",
]  # fmt: skip

MAX_ROWS: Final = 10_000
"""Maximum number of rows of a query."""
MOST_CELLS: Final = 200_000
"""Maximum number of texts, triples and cells (empty ones too) in the data of one request or row:
each takes up to 1.6 kilobytes and 20 microseconds, and few are read (``limits.evidence``). Tables
built in Python have no limit."""
_SPACE: Final = " \u00a0\u202f\u2009"
_SPACED: Final = re.compile(rf"[1-9]\d{{0,2}}(?:[{_SPACE}'’]\d{{3}})+(?:[.,]\d+)?")


@runtime_checkable
class ArrowTable(Protocol):
    """An Arrow table."""

    def to_pylist(self) -> Sequence[Mapping[str, object]]: ...


@runtime_checkable
class DataFrame(Protocol):
    """A pandas data frame."""

    @property
    def columns(self) -> Iterable[object]: ...
    def astype(self, dtype: Any) -> Any: ...
    def notna(self) -> Any: ...


@runtime_checkable
class Cursor(Protocol):
    """A cursor of any database (PEP 249) after its query."""

    @property
    def description(self) -> Sequence[Sequence[object]] | None: ...
    def fetchall(self) -> Sequence[Iterable[object]]: ...


@runtime_checkable
class Result(Protocol):
    """The result of an SQLAlchemy query."""

    def keys(self) -> Iterable[str]: ...
    def fetchall(self) -> Sequence[Iterable[object]]: ...
    def mappings(self) -> Iterable[Mapping[str, object]]: ...


@runtime_checkable
class Connection(Protocol):
    """A PEP 249 connection: ``sqlite3``, ``psycopg`` and others."""

    def cursor(self) -> Any: ...


Rows: TypeAlias = Iterable[Mapping[str, object]] | ArrowTable | DataFrame | Cursor | Result
"""What the rows of a table may be."""
RowOfCells = TypeVar("RowOfCells")


class Table:
    """Rows as evidence: ``check(…, evidence=Table(rows, subject="name"))``.

    A cell is a fact: the row's subject, the column as its property, the value. The name of a column
    may contain a unit (``price_eur``, ``weight (kg)``).

    Args:
        rows: Dicts by column, a pandas data frame, an Arrow table, a database cursor, or an
            SQLAlchemy result.
        subject: Column that names the subject of a row. None for the first of ``NAME_COLUMNS``
            that the table has, else one called as the rows are (*bike* or *bike name* of *bikes*),
            else ``id``, else the first column whose texts all differ, else the row number.
        name: The plural noun for the rows: *bikes*.
        references: Columns that hold ids of other rows, which are no subject by default.

    Raises:
        InputError: The rows are none of these, or have no column of that name.
    """

    def __init__(
        self,
        rows: Rows,
        *,
        subject: str | None = None,
        name: str | None = None,
        references: Collection[str] = (),
    ) -> None:
        cells = _texts(_whole_days([*map(flat_row, _dicts(rows))]), subject)
        columns = list(dict.fromkeys(column for row in cells for column in row))
        if subject is not None and cells and subject not in columns:
            hint = did_you_mean(subject, columns)
            hint = hint if len(hint) <= LONGEST else f"{hint[:LONGEST]}…"
            raise InputError(f"the table has no column {in_short(subject)}; {hint}")
        self.name = name or "table"
        self.columns: tuple[str, ...] = tuple(columns)
        own = [column for column in columns if column not in {*references}]
        self.subject = subject or _subject_column(cells, own, name or "")
        self.triples: tuple[Triple, ...] = tuple(self._triples(cells))
        self._size = len(cells)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        subject: str | None = None,
        name: str | None = None,
        references: Collection[str] = (),
    ) -> Table:
        """Read a table from a file: CSV, TSV, or JSON lines of flat objects.

        The suffix determines the format. Other arguments are those of ``Table``; the default name
        is that of the file.

        Raises:
            InputError: The file cannot be read, has another format, or a row is invalid.
        """
        with file_errors("read", path):
            data = Path(path).read_bytes()
        return cls.from_bytes(data, str(path), subject=subject, name=name, references=references)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        filename: str,
        *,
        subject: str | None = None,
        name: str | None = None,
        references: Collection[str] = (),
        most_cells: int | None = None,
    ) -> Table:
        """Read a table from the bytes of a file; see ``from_file``.

        Reading stops with an InputError at more than ``most_cells`` cells; None for no limit.
        """
        kind = TABLE_FILES.get(Path(filename).suffix.lower())
        if kind is None:
            raise InputError(
                f"{filename}: unsupported file type; expected {', '.join(TABLE_FILES)}"
            )
        rows = (row for _, row in read_rows(BytesIO(data), kind, filename))
        read = []
        for row in rows if most_cells is None else within_cells(rows, most_cells):
            stop_if_given_up()
            read.append(row)
        if kind == "jsonl" and subject is None:
            subject = identifying_key(read, Path(filename).stem, left_out=references)
        return cls(read, subject=subject, name=name or Path(filename).stem, references=references)

    @classmethod
    def from_columns(
        cls,
        columns: Sequence[object],
        rows: Iterable[Iterable[object]],
        *,
        subject: str | None = None,
        name: str | None = None,
    ) -> Table:
        """Create a table from rows whose cells are in the order of the columns.

        Rows are lists or row objects of a driver with as many cells, or dicts by those names; other
        arguments are those of ``Table``.

        Raises:
            InputError: Two columns have the same name, or a row has more or fewer cells.
        """
        return cls(_by_column(columns, rows), subject=subject, name=name)

    @staticmethod
    def rows_of_markdown(text: str) -> list[dict[str, str]] | None:
        """The rows of a Markdown table; None if the text is anything else."""
        from guardrail.core.text.sentences import UNDER_HEADER, cells_of

        lines = [line for line in text.strip().splitlines() if line.strip()]
        if len(lines) < 3 or any("|" not in line for line in lines):
            return None
        head, *rows = [cells_of(line) for line in (lines[0], *lines[2:])]
        named = UNDER_HEADER.fullmatch(lines[1]) and len({*head}) == len(head)
        if not named or any(len(row) != len(head) for row in rows):
            return None
        return [dict(zip(head, row, strict=True)) for row in rows]

    def __iter__(self) -> Iterator[Triple]:
        """The facts, row by row."""
        return iter(self.triples)

    def __len__(self) -> int:
        """The number of rows."""
        return self._size

    def __repr__(self) -> str:
        return f"Table({self.name!r}, rows={self._size}, columns={list(self.columns)})"

    def _triples(self, cells: Sequence[Mapping[str, list[str]]]) -> Iterator[Triple]:
        for number, row in enumerate(cells, start=1):
            stop_if_given_up()
            own = row.get(self.subject or "")
            subject = own[0] if own else f"{self.name} {number}"
            cells_of_row = [
                (c, value) for c, values in row.items() if c != self.subject for value in values
            ]
            # A row without any other cell states its subject, so that no row is lost.
            facts = cells_of_row or [(self.subject or self.name, subject)]
            place = TableRow(table=self.name, number=number)
            for column, value in facts:
                yield Triple(subject, column, value, row=place)


def evidence_from_sql(
    connection: Connection | SQLAlchemyConnection | Session,
    query: str,
    params: Sequence[object] | Mapping[str, object] | None = None,
    *,
    subject: str | None = None,
    name: str | None = None,
) -> Table:
    """Query a database and use the rows as evidence.

    The query runs unchanged, so pass a read-only connection. Nothing is committed.

    Args:
        connection: A PEP 249 connection, or an SQLAlchemy connection or session.
        query: SQL of the database; with SQLAlchemy, parameters are written ``:name``.
        params: Parameters in the form of the driver; by name with SQLAlchemy.
        subject: Column that names the subject of a row; see ``Table``.
        name: The plural noun for the rows; see ``Table``.

    Raises:
        InputError: The query fails, is no SELECT, or returns more than ``MAX_ROWS`` rows.
    """
    cursor: Any = None
    try:
        if isinstance(connection, Connection):
            cursor = result = connection.cursor()
            cursor.execute(query, *([] if params is None else [params]))
            columns = cursor.description and [str(column[0]) for column in cursor.description]
        else:
            from sqlalchemy import text

            if params is not None and not isinstance(params, Mapping):
                raise InputError("SQLAlchemy takes parameters by name: write :name and {'name': …}")
            result = connection.execute(text(query), dict(params or {}))
            columns = list(result.keys()) if result.returns_rows else None  # type: ignore[attr-defined]
        if columns is None:
            raise InputError("the query gives no rows; write one that selects some")
        rows = list(result.fetchmany(MAX_ROWS + 1))
    except InputError:
        raise
    except Exception as error:  # each driver has its own errors
        raise InputError(f"the query failed: {error}") from error
    finally:
        if cursor is not None:
            cursor.close()
    if len(rows) > MAX_ROWS:
        raise InputError(
            f"the query gives more than {MAX_ROWS:,} rows; ask for fewer, or let the database "
            "count and sum them"
        )
    return Table.from_columns(columns, rows, subject=subject, name=name)


def few_enough(count: int, where: str) -> None:
    """Raise an InputError for more than ``MOST_CELLS`` texts, triples and cells in one place."""
    if count > MOST_CELLS:
        raise InputError(
            f"{where} has more than {MOST_CELLS:,} texts, triples and cells of tables; hand over "
            "those that the question is about"
        )


def row_size(row: object, depth: int = 0) -> int:
    """The number of cells of a row, a dict or a list; at least one."""
    cells = [*row.values()] if isinstance(row, Mapping) else row
    held = cells if isinstance(cells, list | tuple) and depth <= DEEPEST else ()
    return sum(row_size(cell, depth + 1) for cell in held) or 1


def within_cells(rows: Iterable[RowOfCells], most: int) -> Iterator[RowOfCells]:
    """Pass rows on; raise an InputError after so many cells. An empty row counts as one."""
    cells = 0
    for row in rows:
        cells += row_size(row)
        if cells > most:
            raise InputError(
                f"the table has more than {most:,} cells; hand over the rows and columns that the "
                "question is about"
            )
        yield row


def in_one_notation(cells: Sequence[str]) -> list[str]:
    """The cells of a column, without missing ones; numbers get decimal points, signs, plain digits.

    The column resolves ambiguous cells: *2,490* has a decimal comma in a column with *17,5*, and
    *(250)* is a negative amount among numbers without parentheses. A column that does not consist
    of numbers is returned unchanged.
    """
    number = re.compile(
        rf"(?P<sum>[^\w().,+\-−]{{0,2}})(?P<open>\()?(?P<before>[^\d().,+\-−]{{0,4}})(?P<sign>[+\-−]?)"
        rf"(?P<figures>\d+(?:[.,'’{_SPACE}]\d+)*)(?P<power>[eE][+-]?\d{{1,2}})?"
        rf"(?P<behind>[{_SPACE}]?[^\d().,+\-−]{{0,12}})(?P<close>\))?(?P<unit>[^\w().,+\-−]{{0,2}})"
    )
    numbers = [number.fullmatch(cell) for cell in cells]
    found = [n for n in numbers if n and bool(n["open"]) == bool(n["close"])]
    if not found or len(found) < len(cells):
        return list(cells)
    figures = [item["figures"] for item in found]
    # Numbers that may have a decimal comma
    decimal = re.compile(rf"(?:\d+|\d{{1,3}}(?:[.'’{_SPACE}]\d{{3}})+),\d+")
    thousands = re.compile(r"\d{1,3}(?:,\d{3})+")
    comma = any(decimal.fullmatch(item) and not thousands.fullmatch(item) for item in figures)
    comma = comma and all("," not in item or decimal.fullmatch(item) for item in figures)
    comma = comma and not any(re.search(r"\.\d{1,2}$|\.\d{4,}$", item) for item in figures)
    # Nine digits may be a telephone or account number, even in groups of three.
    spaced = not all(sum(map(str.isdigit, item)) >= 9 for item in figures)
    negative = not all(item["open"] for item in found)
    shares = any("%" in item["behind"] for item in found)
    return [
        _in_notation(item, comma=comma, spaced=spaced, negative=negative, shares=shares)
        for item in found
    ]


def _in_notation(
    number: re.Match[str], *, comma: bool, spaced: bool, negative: bool, shares: bool
) -> str:
    figures, behind, sign = number["figures"], number["behind"], number["sign"]
    if spaced and _SPACED.fullmatch(figures):
        figures = re.sub(rf"[{_SPACE}'’]", "", figures)
    if comma:
        figures = re.sub(rf"[.'’{_SPACE}]", "", figures).replace(",", ".")
    plain = re.fullmatch(r"\d{1,30}(?:\.\d{1,30})?", figures) is not None
    if number["power"]:
        figures += number["power"]
        figures = f"{Decimal(figures):f}" if plain else figures
    if shares and not behind.strip() and plain and Decimal(figures) <= 1:
        figures, behind = f"{(Decimal(figures) * 100).normalize():f}", "%"
    if number["open"]:
        if not negative:
            return number[0]
        sign = "-"
    return f"{number['sum']}{number['before']}{sign}{figures}{behind}{number['unit']}"


def _dicts(rows: Rows) -> list[Mapping[str, object]]:
    """The rows as dicts by column."""
    found: Iterable[Mapping[str, object]]
    if isinstance(rows, ArrowTable):
        _different(getattr(rows, "column_names", ()))
        found = rows.to_pylist()
    elif isinstance(rows, DataFrame):
        _different(rows.columns)
        # Missing values differ by the type of the column.
        found = rows.astype(object).where(rows.notna(), None).to_dict("records")
    elif isinstance(rows, Result):
        found = _by_column(list(rows.keys()), rows.fetchall())
    elif isinstance(rows, Cursor):
        if rows.description is None:
            raise InputError(
                "the cursor has no result set; first execute a query that returns rows"
            )
        found = _by_column([column[0] for column in rows.description], rows.fetchall())
    elif isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise InputError(
            "rows must be dicts by column, a data frame, an Arrow table, or the cursor or result "
            f"of a query, not {type(rows).__name__}"
        )
    else:
        found = rows
    listed = list(found)
    for place, row in enumerate(listed):
        if not isinstance(row, Mapping):
            raise InputError(f"rows[{place}] must be a dict by column, not {type(row).__name__}")
    return listed


def _by_column(
    columns: Sequence[object], rows: Iterable[Iterable[object]]
) -> list[dict[str, object]]:
    """Rows with cells in the order of the columns as dicts."""
    if isinstance(columns, str | Mapping) or not isinstance(columns, Sequence):
        raise InputError(f"columns must be a list of names, not {type(columns).__name__}")
    names = _different(columns)
    found = []
    for place, row in enumerate(rows):
        cells: tuple[object, ...] = ()
        if isinstance(row, Mapping):
            named = {str(column): cell for column, cell in row.items()}
            cells = tuple(map(named.get, names)) if named.keys() == {*names} else ()
        elif isinstance(row, Iterable) and not isinstance(row, str | bytes | Set):
            cells = tuple(row)
        if len(cells) != len(names):
            raise InputError(
                f"rows[{place}] must be a list of {len(names)} cells, or a dict by column"
            )
        found.append(dict(zip(names, cells, strict=True)))
    return found


def _different(columns: Iterable[object]) -> list[str]:
    """The names of columns, which must differ."""
    names = [str(column) for column in columns]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"two columns are called {in_short(twice)}; give each a name of its own")
    return names


def _whole_days(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """The rows, with dates in datetime columns that only contain midnights."""
    hours = {
        column
        for row in rows
        for column, value in row.items()
        if isinstance(value, datetime) and value == value and value.time() != time()
    }
    return [
        {
            str(column): value.date()
            if isinstance(value, datetime) and value == value and column not in hours
            else value
            for column, value in row.items()
        }
        for row in rows
    ]


def _texts(rows: Iterable[Mapping[str, object]], subject: str | None) -> list[dict[str, list[str]]]:
    """The cells as texts, the numbers of a column in one notation; a list is several texts."""
    found: list[dict[str, list[str]]] = []
    held: dict[str, list[list[str]]] = {}
    for row in rows:
        found.append({})
        for column, value in row.items():
            items = value if isinstance(value, list | tuple) else [value]
            texts = [text for item in items if (text := cell_text(item)) is not None]
            found[-1][column] = texts
            if column != (subject or ""):
                held.setdefault(column, []).append(texts)
    for lists in held.values():
        written = iter(in_one_notation([text for texts in lists for text in texts]))
        for texts in lists:
            texts[:] = islice(written, len(texts))
    return found


def _subject_column(
    cells: Sequence[Mapping[str, list[str]]], columns: Sequence[str], rows: str
) -> str | None:
    named = {column.casefold(): column for column in reversed(columns)}
    texts: dict[str, list[str]] = {column: [] for column in columns}
    for row in cells:
        for column, values in row.items():
            if column in texts:
                texts[column] += values
    distinct = [
        column
        for column, own in texts.items()
        if len(own) == len(cells) == len({*own}) and any(text[0].isalpha() for text in own)
    ]
    called = content_stems(rows.replace("_", " "))
    alike = [
        column
        for column in distinct
        if called and content_stems(column.replace("_", " ")) in (called, called | {"name"})
    ]
    known = (named.get(name) for name in NAME_COLUMNS)
    return next(filter(None, [*known, *alike, named.get("id"), *distinct]), None)
