"""Rows of tables as the tools of agents return them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import TypeVar
from zoneinfo import ZoneInfo

from guardrail import Table
from guardrail.core.errors import InputError
from guardrail.sources.tables import MOST_CELLS, row_size

__all__ = ["Reading", "rows_of_text", "table_of_result"]

Row = TypeVar("Row")

COLUMNS, ROWS = "columns", ("rows", "data")
"""Keys under which a result holds its columns and, in their order, the cells of its rows."""
MAX_LITERAL_CHARS = 200_000
"""Longer text is not read as rows of Python's or Markdown's: Python's parser takes a hundred times
as much memory, and a table of Markdown that long is cut in any case."""


class Reading:
    """How much of tables is made into facts, and what was left out.

    Args:
        most: Most cells of one table.

    Attributes:
        left_out: Facts that were not made.
    """

    def __init__(self, most: int = MOST_CELLS) -> None:
        self._most = most
        self.left_out = 0

    def first(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The first rows of a table, with so many cells together at most."""
        room = self._most
        for place, row in enumerate(rows):
            room -= row_size(row)
            if room < 0:
                self.left_out += sum(max(1, row_size(row) - 1) for row in rows[place:])
                return rows[:place]
        return rows


def table_of_result(data: object, name: str | None, reading: Reading) -> Table | None:
    """Read what a tool returned as a table, where it is one.

    Args:
        data: A list of flat objects with the same keys, or an object with columns and rows.
        name: What the rows are, where it is known.
        reading: How much is read; the first rows of a longer table know that they are not all.
    """
    if isinstance(data, Mapping):
        rows = next((data[key] for key in ROWS if isinstance(data.get(key), list)), None)
        columns = data.get(COLUMNS)
        listed = rows and all(isinstance(row, list) for row in rows)
        if not listed or not isinstance(columns, list) or not rows:
            return None
        # Some drivers tell the type of a column beside its name.
        names = [item.get("name") if isinstance(item, Mapping) else item for item in columns]
        return _table(names, rows, name, reading)
    if not isinstance(data, list) or len(data) < 2:
        return None
    if all(_is_flat(row) for row in data) and len({frozenset(row) for row in data}) == 1:
        return Table(reading.first(data), name=name, of=len(data))
    if all(isinstance(row, tuple) for row in data) and len({len(row) for row in data}) == 1:
        # Rows without the names of their columns, as the SQL tool of LangChain returns them.
        width = len(data[0])
        names = ["name", "value"] if width == 2 else [f"value {n}" for n in range(1, width + 1)]
        return _table(names, data, name, reading)
    return None


def rows_of_text(text: str) -> Sequence[object] | None:
    """The rows that a text writes, as Markdown or as Python prints them; None of any other text.

    Args:
        text: What a tool returned, such as ``[('Fjell 3', Decimal('2490.00'))]``.
    """
    text = text.strip()
    if not text.startswith(("|", "[(", "[{")) or len(text) > MAX_LITERAL_CHARS:
        return None
    if text.startswith("|"):
        return Table.rows_of_markdown(text)
    try:
        tree = ast.parse(text, mode="eval").body
        return [_literal(row) for row in tree.elts] if isinstance(tree, ast.List) else None
    except (SyntaxError, TypeError, ValueError, LookupError, OverflowError):
        return None
    except (RecursionError, MemoryError):
        return None


def _table(
    names: Sequence[object], rows: Sequence[Sequence[object]], name: str | None, reading: Reading
) -> Table | None:
    try:
        return Table.from_columns(names, reading.first(rows), name=name, of=len(rows))
    except InputError:
        return None


def _is_flat(row: object) -> bool:
    return isinstance(row, Mapping) and all(
        value is None or isinstance(value, str | int | float) for value in row.values()
    )


def _literal(node: ast.expr) -> object:
    """A value as Python prints it, dates and decimals among them.

    Raises:
        ValueError: It is something else.
    """
    if isinstance(node, ast.Tuple):
        return tuple(map(_literal, node.elts))
    if isinstance(node, ast.Dict):
        keys = [ast.literal_eval(key) for key in node.keys if key is not None]
        return dict(zip(keys, map(_literal, node.values), strict=True))
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    parts = [ast.literal_eval(part) for part in node.args]
    kind = _called(node)
    if kind in ("Decimal", "UUID") and len(parts) == 1:
        return str(parts[0])
    if kind == "date":
        return date(*parts).isoformat()
    if kind == "datetime":
        named = {word.arg: word.value for word in node.keywords}
        zone = _zone(named["tzinfo"]) if "tzinfo" in named else None
        fold = ast.literal_eval(named["fold"]) if "fold" in named else 0
        moment = datetime(*parts).replace(tzinfo=zone, fold=fold)
        return moment.isoformat(" ", "seconds") if parts[3:] or zone else moment.date().isoformat()
    raise ValueError("no value that a query gives")


def _zone(node: ast.expr) -> tzinfo:
    """A time zone as Python prints it: of UTC, by its offset, or by its name.

    Raises:
        ValueError: It is something else.
        LookupError: There is none of that name.
    """
    if isinstance(node, ast.Attribute) and node.attr in ("utc", "UTC"):
        return UTC
    if isinstance(node, ast.Call) and _called(node) == "ZoneInfo":
        (key,) = (*node.args, *(word.value for word in node.keywords))
        return ZoneInfo(ast.literal_eval(key))
    if isinstance(node, ast.Call) and _called(node) == "timezone" and node.args:
        offset = node.args[0]
        if isinstance(offset, ast.Call) and not offset.args:
            parts = {word.arg or "": ast.literal_eval(word.value) for word in offset.keywords}
            return timezone(timedelta(**parts))
    raise ValueError("no time zone")


def _called(node: ast.Call) -> str:
    """The name of what a call calls, without its module."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
