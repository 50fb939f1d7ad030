"""Turns tables into RDF: CSV, TSV and JSON lines of flat objects, one row an entity.

A row becomes a node ``urn:table:TABLE:ID``; a column becomes a property whose label is the
column's name. Whole numbers, decimals, dates, times and truth values keep their type, except for
numbers that a store would write otherwise: these stay text, so that they are told as they stand.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import chain, zip_longest
from typing import BinaryIO, Final, NamedTuple
from urllib.parse import quote

from pydantic import Field
from pyoxigraph import DefaultGraph, Literal, NamedNode, Store

from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.fields import in_short
from guardrail.core.incoming import read_clean_json
from guardrail.core.types import Value

__all__ = [
    "TableColumns",
    "cell_text",
    "column_property",
    "read_rows",
    "remove_replaced",
    "triples_of_table",
]

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_LABEL: Final = "<http://www.w3.org/2000/01/rdf-schema#label>"
_TYPES: Final = (
    # Only as XML Schema's canonical form has them: 007, +49351 and version 2.10 are no numbers, and
    # a price of 5200.50 is told as such.
    ("integer", re.compile(r"0|-?[1-9]\d{0,17}")),
    ("decimal", re.compile(r"-?(?:0|[1-9]\d{0,17})\.\d*[1-9]")),
    ("date", re.compile(r"-?\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")),
    ("dateTime", re.compile(r"-?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")),
    ("time", re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d")),
    ("boolean", re.compile(r"true|false", re.IGNORECASE)),
)
_QUOTED: Final = re.compile(r'"[^"]*"')
_CHUNK_ROWS: Final = 2_000


class TableColumns(Value):
    """How a table's columns are read.

    Attributes:
        subject: Column whose values are the entities' ids.
        label: Column of their names; None for the ids themselves.
        name: Name of the table, in the ids of its entities; None for the file's name.
        links: Columns whose values are ids of entities, by the name of their table.
    """

    subject: str
    label: str | None = None
    name: str | None = Field(default=None, min_length=1)
    links: Mapping[str, str] = Field(default_factory=dict)


def triples_of_table(
    stream: BinaryIO, kind: str, table: TableColumns, source: str
) -> Iterator[bytes]:
    """Yield the N-Triples of a table, many rows at a time.

    Raises:
        KnowledgeGraphError: A row is no row of the table; names the line.
        InputError: The table has no such column.
    """
    properties: dict[str, str] = {}
    lines: list[str] = []
    for number, row in enumerate(_rows(stream, kind, table, source), start=1):
        lines.append(f"{row.node} {_LABEL} {row.label} .\n")
        for column, values in row.values.items():
            if not values:
                continue
            predicate = properties.get(column)
            if predicate is None:
                predicate = properties[column] = str(column_property(column))
                shown = Literal(" ".join(column.replace("_", " ").split()))
                lines.append(f"{predicate} {_LABEL} {shown} .\n")
            lines += [f"{row.node} {predicate} {value} .\n" for value in values]
        if number % _CHUNK_ROWS == 0:
            yield "".join(lines).encode()
            lines = []
    yield "".join(lines).encode()


def remove_replaced(
    store: Store, stream: BinaryIO, kind: str, table: TableColumns, source: str
) -> bool:
    """Remove what a graph says of a table's rows in its columns and the table says otherwise now.

    What JSON lines leave out stays: another file of the same table may tell it. Returns whether a
    name was among what was removed.

    Raises:
        KnowledgeGraphError: A row is no row of the table; names the line.
        InputError: The table has no such column.
    """
    named = False
    for row in _rows(stream, kind, table, source):
        now = {str(column_property(column)): values for column, values in row.values.items()}
        if row.named:
            now[_LABEL] = [row.label]
        node = NamedNode(row.node[1:-1])
        for quad in list(store.quads_for_pattern(node, None, None, DefaultGraph())):
            predicate = str(quad.predicate)
            if str(quad.object) not in now.get(predicate, [str(quad.object)]):
                store.remove(quad)
                named = named or predicate == _LABEL
    return named


class _Row(NamedTuple):
    """A row: its node, its name, and the values of its columns, as they stand in N-Triples.

    ``named`` says whether the table gives the name; its id stands in for one else.
    """

    node: str
    label: str
    named: bool
    values: Mapping[str, list[str]]


def _rows(stream: BinaryIO, kind: str, table: TableColumns, source: str) -> Iterator[_Row]:
    rows = read_rows(stream, kind, source)
    name = table.name or "table"
    checked = kind == "jsonl"
    for where, row in rows:
        if not checked:
            _check_columns(table, row)
            checked = True
        key = row.get(table.subject)
        if key is None or not str(key).strip():
            raise KnowledgeGraphError(f"{source}, line {where}: no value of {table.subject!r}")
        label = row.get(table.label) if table.label else None
        values = {}
        for column, value in row.items():
            if column in (table.subject, table.label):
                continue
            target = table.links.get(column)
            items = value if isinstance(value, list) else [value]
            texts = [text for item in items if (text := cell_text(item)) is not None]
            values[column] = [_node(target, text) if target else _literal(text) for text in texts]
        node = _node(name, str(key).strip())
        yield _Row(node, str(Literal(str(label or key).strip())), bool(label), values)


def read_rows(stream: BinaryIO, kind: str, source: str) -> Iterator[tuple[int, dict[str, object]]]:
    """The rows of a file, each with its line and its cells by column.

    Args:
        stream: The unpacked file.
        kind: ``csv``, ``tsv`` or ``jsonl``.
        source: The file, for messages.

    Raises:
        KnowledgeGraphError: A row is no row of a table; names the line.
    """
    return _json_rows(stream, source) if kind == "jsonl" else _csv_rows(stream, kind, source)


def _csv_rows(stream: BinaryIO, kind: str, source: str) -> Iterator[tuple[int, dict[str, object]]]:
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        head = text.readline()
        # Spreadsheets write semicolons where the comma marks decimals.
        bare = _QUOTED.sub("", head)
        mark = "\t" if kind == "tsv" else ";" if ";" in bare and "," not in bare else ","
        lines = chain([head], text)
        reader = csv.reader(lines, delimiter=mark, strict=True)
        columns = next(reader, [])
        twice = next((name for name, count in Counter(columns).items() if name and count > 1), None)
        if twice is not None:
            raise KnowledgeGraphError(
                f"{source}: two columns are called {in_short(twice)}; give each a name of its own"
            )
        # Spreadsheets write columns without a name behind the last one, which hold nothing.
        empty = [place for place, name in enumerate(columns) if not name]
        for row in reader:
            if len(row) > len(columns):
                raise KnowledgeGraphError(
                    f"{source}, line {reader.line_num}: more values than columns"
                )
            if len(empty) > 1 and any(row[place].strip() for place in empty if place < len(row)):
                raise KnowledgeGraphError(
                    f"{source}, line {reader.line_num}: a value of several columns without a name; "
                    "give each a name of its own"
                )
            if row:
                yield reader.line_num, dict(zip_longest(columns, row))
    except csv.Error as error:
        raise KnowledgeGraphError(f"{source}, line {reader.line_num}: {error}") from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise KnowledgeGraphError(
            f"{source} is not UTF-8 (byte 0x{byte:02X}); save it as UTF-8"
        ) from error
    finally:
        text.detach()


def _json_rows(stream: Iterable[bytes], source: str) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            row = read_clean_json(line.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise KnowledgeGraphError(f"{source}, line {number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise KnowledgeGraphError(f"{source}, line {number}: not a JSON object")
        yield number, row


def _check_columns(table: TableColumns, row: Mapping[str, object]) -> None:
    wanted = [table.subject, *([table.label] if table.label else []), *table.links]
    missing = [column for column in wanted if column not in row]
    if missing:
        raise InputError(
            f"the table has no column {', '.join(map(repr, missing))}; it has {', '.join(row)}"
        )


def _node(table: str, key: str) -> str:
    return str(NamedNode(f"urn:table:{quote(table, safe='')}:{quote(key, safe='')}"))


def column_property(column: str) -> NamedNode:
    """The property that a column becomes."""
    return NamedNode(f"urn:column:{quote(column, safe='')}")


def cell_text(value: object) -> str | None:
    """The text of a cell; None for an empty one. What is nested is kept as JSON.

    Numbers are written in figures without exponents, dates as ``2025-08-11``, points in time as
    ``2025-08-11 14:30:00``.

    Args:
        value: As JSON, a database or a data frame gives it.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()  # of numpy's
    if value is None or isinstance(value, bytes | bytearray | memoryview) or value != value:
        return None  # only what is no number or time differs from itself
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        value = Decimal(f"{value:.15g}")
    if isinstance(value, int):
        value = Decimal(value)  # which writes figures of any length
    if isinstance(value, Decimal):
        return f"{value:f}" if value.is_finite() else None
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, dict | list | tuple):
        try:
            return json.dumps(value, ensure_ascii=False, default=str)
        except (ValueError, RecursionError):
            return None  # a figure of thousands of digits, or nested without end: no cell
    return str(value).strip() or None


def _literal(text: str) -> str:
    for name, form in _TYPES:
        if form.fullmatch(text):
            value = text.lower() if name == "boolean" else text
            return str(Literal(value, datatype=NamedNode(_XSD + name)))
    return str(Literal(text))
