"""Turns tables into RDF: CSV, TSV and JSON lines, one row an entity.

A row becomes a node ``urn:table:TABLE:ID``; a column becomes a property whose label is the
column's name. Whole numbers, decimals, dates, times and truth values keep their type, except for
numbers that a store would write otherwise: these stay text, so that they are shown as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from urllib.parse import quote

from pydantic import Field
from pyoxigraph import DefaultGraph, Literal, NamedNode, Store

from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.fields import did_you_mean
from guardrail.core.objects import flat_row
from guardrail.core.rows import TABLE_FILES, cell_text, read_rows
from guardrail.core.types import Value
from kg.reading import suffix_of
from kg.terms import XSD

_LABEL: Final = "<http://www.w3.org/2000/01/rdf-schema#label>"
_TYPES: Final = (
    # Only as XML Schema's canonical form has them: 007, +49351 and version 2.10 are no numbers, and
    # a price of 5200.50 is shown as such.
    ("integer", re.compile(r"0|-?[1-9]\d{0,17}")),
    ("decimal", re.compile(r"-?(?:0|[1-9]\d{0,17})\.\d*[1-9]")),
    ("date", re.compile(r"-?\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")),
    ("dateTime", re.compile(r"-?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")),
    ("time", re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d")),
    ("boolean", re.compile(r"true|false", re.IGNORECASE)),
)


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


def triples_of_table(stream: BinaryIO, source: Path, table: TableColumns) -> Iterator[bytes]:
    """Yield the N-Triples of a table, many rows at a time; ``source`` names its file in errors."""
    properties: dict[str, str] = {}
    lines: list[str] = []
    for number, row in enumerate(_rows(stream, source, table), start=1):
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
        if number % 2_000 == 0:
            yield "".join(lines).encode()
            lines = []
    yield "".join(lines).encode()


def remove_replaced(store: Store, stream: BinaryIO, source: Path, table: TableColumns) -> None:
    """Remove values of a graph that a table has replaced in its rows and columns.

    What JSON lines leave out stays, since another file of the same table may hold it.
    """
    for row in _rows(stream, source, table):
        now = {str(column_property(column)): values for column, values in row.values.items()}
        if row.named:
            now[_LABEL] = [row.label]
        node = NamedNode(row.node[1:-1])
        for quad in list(store.quads_for_pattern(node, None, None, DefaultGraph())):
            predicate = str(quad.predicate)
            if str(quad.object) not in now.get(predicate, [str(quad.object)]):
                store.remove(quad)


class _Row(NamedTuple):
    """A row: its node, its name, and the values of its columns, as in N-Triples.

    ``named`` is True if the table gives the name; otherwise the id is the name.
    """

    node: str
    label: str
    named: bool
    values: Mapping[str, list[str]]


def _rows(stream: BinaryIO, source: Path, table: TableColumns) -> Iterator[_Row]:
    kind = TABLE_FILES[suffix_of(source)]
    rows = read_rows(stream, kind, str(source))
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
        for column, value in flat_row(row).items():
            if column in (table.subject, table.label):
                continue
            target = table.links.get(column)
            items = value if isinstance(value, list) else [value]
            texts = [text for item in items if (text := cell_text(item)) is not None]
            values[column] = [_node(target, text) if target else _literal(text) for text in texts]
        node = _node(name, str(key).strip())
        yield _Row(node, str(Literal(str(label or key).strip())), bool(label), values)


def table_name(source: Path) -> str:
    """The name of the table in a file: the file's in lower case, without its endings."""
    return source.name.lower().partition(suffix_of(source))[0] or "table"


def _check_columns(table: TableColumns, row: Mapping[str, object]) -> None:
    wanted = [table.subject, *([table.label] if table.label else []), *table.links]
    for column in wanted:
        if column not in row:
            raise InputError(f"the table has no column {column!r}; {did_you_mean(column, row)}")


def _node(table: str, key: str) -> str:
    return str(NamedNode(f"urn:table:{quote(table, safe='')}:{quote(key, safe='')}"))


def column_property(column: str) -> NamedNode:
    """The property that a column becomes."""
    return NamedNode(f"urn:column:{quote(column, safe='')}")


def _literal(text: str) -> str:
    for name, form in _TYPES:
        if form.fullmatch(text):
            value = text.lower() if name == "boolean" else text
            return str(Literal(value, datatype=NamedNode(XSD + name)))
    return str(Literal(text))
