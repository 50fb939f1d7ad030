"""Tool results as evidence: texts and documents as passages, rows and other objects as facts."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import chain, islice
from typing import NamedTuple, TypeVar, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from chains.evidence.base import EvidenceSettings, Found, Source
from guardrail import Table
from guardrail.core.errors import InputError
from guardrail.core.incoming import cut_text
from guardrail.core.rows import cell_text
from guardrail.core.types import Evidence, Passage, Problem, Triple
from guardrail.core.workers import stop_if_given_up
from guardrail.evidence.retrieval import MOST_CHARS, too_long
from guardrail.sources.tables import MOST_CELLS, SUBJECT_COLUMNS, row_size

__all__ = ["ToolResult", "evidence_of_tools"]

TEXT_KEYS = ("text", "content", "page_content", "snippet", "body")
"""Keys of a document's text; the other keys of an object with one are its fields and facts."""
FIELD_KEYS = {
    "id": ("id", "file_id", "document_id", "doc_id"),
    "title": ("title", "filename", "name"),
    "url": ("url", "source", "link", "uri"),
}
"""Keys of the other fields of a passage."""
LIST_KEYS = ("results", "documents", "items", "data", "hits")
"""Keys of a reply that hold a list of results."""
MOST_RESULTS = 16
"""Tool results of one request that are read, newest first."""
MOST_RESULT_CHARS = 100_000
"""Characters of all tool results of one request; a longer text is cut."""

Row = TypeVar("Row")


class ToolResult(NamedTuple):
    """The result of one tool call.

    Attributes:
        content: Text, or data.
        tool: The tool's name, if known.
        documents: Documents that come with the content, such as LangChain's artifact; read once.
    """

    content: object
    tool: str | None = None
    documents: Iterable[Evidence] = ()


class _Limit:
    """Bounds the cells of a table that become facts, and counts those left out."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.left_out = 0

    def first(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The first rows of a table, up to the limit of cells."""
        room = self._most
        for place, row in enumerate(rows):
            room -= row_size(row)
            if room < 0:
                self.left_out += sum(max(1, row_size(row) - 1) for row in rows[place:])
                return rows[:place]
        return rows


def evidence_of_tools(results: Sequence[ToolResult], settings: EvidenceSettings) -> Found:
    """Read the newest ``MOST_RESULTS`` results of tools, up to ``MOST_RESULT_CHARS`` characters.

    Args:
        results: In the order of the conversation. Texts and documents become passages, rows and
            other objects facts.
        settings: Whether to read them.

    Returns:
        Their evidence, or nothing. A text that is too long is cut after a paragraph, a line or a
        sentence; everything that was not read is reported as a problem.
    """
    if not settings.tools:
        return Found()
    found: list[Evidence] = []
    room, cut, left_out = MOST_RESULT_CHARS, 0, 0
    shortest = Triple(subject="s", property="", value="v")
    limit = _Limit(min(MOST_CELLS, room // len(shortest.text) + 1))
    items = chain.from_iterable(
        chain(result.documents, _result(result.content, result.tool, limit))
        for result in results[: -MOST_RESULTS - 1 : -1]
    )
    for item in islice(items, MOST_CELLS):
        stop_if_given_up()
        fitting = _within(item, room)
        if fitting is None:
            left_out += 1
            continue
        cut += fitting is not item
        room -= len(fitting.text)
        found.append(fitting)
    rest = " and everything after them" if next(items, None) is not None else ""
    left_out += limit.left_out
    problems = []
    if cut or left_out or rest:
        problems.append(
            f"tools returned more than the limit of {MOST_RESULT_CHARS:,} characters, or "
            f"names of more than {MOST_CHARS:,}; texts that were cut: {cut}, texts and facts left "
            f"out: {left_out}{rest}; let the tools return less"
        )
    if len(results) > MOST_RESULTS:
        problems.append(
            f"of {len(results)} tool results the newest {MOST_RESULTS} were read; send fewer"
        )
    return Found.of(Source.TOOLS, found or None)._replace(
        problems=tuple(Problem(part="evidence", message=message) for message in problems)
    )


def _within(item: Evidence, room: int) -> Evidence | None:
    """The item, or as much of its text as there is room for; None for nothing."""
    if too_long(item):  # not the caller's fault: the tool may return anybody's text
        return None
    if len(item.text) <= room:
        return item
    text = cut_text(item.text, room) if isinstance(item, Passage) else ""
    return item.model_copy(update={"text": text}) if text else None


def _result(content: object, tool: str | None, limit: _Limit) -> Iterator[Evidence]:
    """Read one result: text, JSON or rows as text, content parts, or data.

    The tool is the subject of facts that name none, ``value`` their property.
    """
    if isinstance(content, str):
        data = _json(content)
        data = _rows_of_text(content) if data is None else data
        if data is not None:
            yield from _facts(data, tool, 0, limit)
        elif content.strip():
            yield Passage(text=content, title=tool)
    elif isinstance(content, list) and content and all(_part_text(item) for item in content):
        for part in content:
            yield from _result(_part_text(part), tool, limit)
    else:
        yield from _facts(content, tool, 0, limit)


def _facts(data: object, subject: str | None, depth: int, limit: _Limit) -> Iterator[Evidence]:
    if isinstance(data, str):
        if data.strip():
            yield Passage(text=data, title=subject)
    elif (value := _cell(data)) is not None:
        yield Triple(subject=subject or "result", property="value", value=value)
    elif (table := _table(data, subject, limit)) is not None:
        yield from table
    elif depth > 4:  # deeper objects are read as text
        if data and (text := cell_text(data)):
            yield Passage(text=text, title=subject)
    elif isinstance(data, list | tuple):
        for item in data:
            yield from _facts(item, subject, depth + 1, limit)
    elif isinstance(data, Mapping):
        text, own = _part_text(data), ("type", "text", "id", "index")
        # A content part whose keys describe the part itself, not the subject of its text.
        if text and all(key in own or _cell(value) is None for key, value in data.items()):
            yield from _result(text, subject, limit)
        else:
            yield from _object(data, subject, depth, limit)


def _object(
    data: Mapping[str, object], subject: str | None, depth: int, limit: _Limit
) -> Iterator[Evidence]:
    documents, data = _documents(data)
    yield from documents
    named = next((key for key in SUBJECT_COLUMNS if _cell(data.get(key)) is not None), None)
    about = (_cell(data[named]) if named else subject) or "result"
    read = {name: getattr(documents[0], name) for name in FIELD_KEYS} if documents else {}
    for key, value in data.items():
        known = any(key in FIELD_KEYS[name] and _cell(value) == read[name] for name in read)
        if key == named or known:
            continue
        values = value if isinstance(value, list) else [value]
        if not _nested(values):
            for cell in filter(None, map(_cell, values)):
                yield Triple(subject=about, property=str(key), value=cell)
        elif key not in LIST_KEYS and (table := _table(value, str(key), limit)) is not None:
            yield from table
        else:
            inner = about if named or key in LIST_KEYS else f"{about} {key}" if subject else key
            yield from _facts(value, str(inner), depth + 1, limit)


def _documents(data: Mapping[str, object]) -> tuple[list[Passage], Mapping[str, object]]:
    """The texts of an object as passages, and the rest of the object."""
    texts = {
        key: text for key in TEXT_KEYS if isinstance(text := data.get(key), str) and text.strip()
    }
    if not texts:
        return [], data
    rest: dict[str, object] = {}
    for key, value in data.items():
        if key in ("metadata", "attributes") and isinstance(value, Mapping):
            rest = {**value, **rest}
        elif key not in texts:
            rest[key] = value
    fields = {
        name: next((cell for key in keys if (cell := _cell(rest.get(key))) is not None), None)
        for name, keys in FIELD_KEYS.items()
    }
    return [Passage(text=text, **fields) for text in dict.fromkeys(texts.values())], rest


def _table(data: object, name: str | None, limit: _Limit) -> Table | None:
    """Data as a table: flat objects with the same keys, or columns and rows. Documents are not."""
    if isinstance(data, Mapping):
        lists = (data[key] for key in ("rows", "data") if isinstance(data.get(key), list))
        rows = next(lists, None)
        columns = data.get("columns")
        if not rows or not isinstance(columns, list):
            return None
        # Some drivers give the type of a column next to its name.
        names = [item.get("name") if isinstance(item, Mapping) else item for item in columns]
        return _table_of(names, rows, name, limit) if isinstance(rows[0], list) else None
    if not isinstance(data, list) or len(data) < 2:
        return None
    if all(isinstance(row, Mapping) and not _nested(row.values()) for row in data):
        keys, *others = {frozenset(row) for row in data}
        if others or not keys.isdisjoint(TEXT_KEYS):
            return None
        return Table(limit.first(data), name=name)
    if all(isinstance(row, tuple) for row in data):
        # Rows without the names of their columns, as the SQL tool of LangChain returns them.
        width = len(data[0])
        names = ["name", "value"] if width == 2 else [f"value {n}" for n in range(1, width + 1)]
        return _table_of(names, data, name, limit)
    return None


def _table_of(
    names: Sequence[object], rows: Sequence[Sequence[object]], name: str | None, limit: _Limit
) -> Table | None:
    try:
        return Table.from_columns(names, limit.first(rows), name=name)
    except InputError:
        return None


def _rows_of_text(text: str) -> Sequence[object] | None:
    """The rows in a text as Markdown or Python prints them; None for any other text."""
    text = text.strip()
    # Python's parser takes a hundred times as much memory as the text; a Markdown table of that
    # length would be cut in any case.
    if not text.startswith(("|", "[(", "[{")) or len(text) > 200_000:
        return None
    if text.startswith("|"):
        return Table.rows_of_markdown(text)
    try:
        rows = _literal(ast.parse(text, mode="eval").body)
    except (
        SyntaxError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError,
        MemoryError, OSError,
    ):  # fmt: skip
        return None
    return rows if isinstance(rows, list) else None


def _literal(node: ast.AST) -> object:
    """The value of a literal as Python prints it: ``[('Fjell 3', Decimal('2490.00'))]``.

    Raises:
        ValueError: It is something else.
        LookupError: It calls an unknown type.
    """
    match node:
        case ast.List():
            return [*map(_literal, node.elts)]
        case ast.Tuple():
            return tuple(map(_literal, node.elts))
        case ast.Dict():
            keys = [ast.literal_eval(key) for key in node.keys if key is not None]
            return dict(zip(keys, map(_literal, node.values), strict=True))
        case ast.Attribute(attr="utc" | "UTC"):
            return UTC
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            types = (Decimal, UUID, date, datetime, timedelta, timezone, ZoneInfo)
            kind: Callable[..., object] = {one.__name__: one for one in types}[name]
            named = {word.arg or "": _literal(word.value) for word in node.keywords}
            return kind(*map(_literal, node.args), **named)
        case ast.expr():
            return ast.literal_eval(node)
    raise ValueError("not a literal")


def _json(text: str) -> object | None:
    """The object or list in a text; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _part_text(part: object) -> str | None:
    """The text of a content part."""
    if isinstance(part, Mapping) and part.get("type") in ("text", "input_text", "output_text"):
        part = part.get("text")
    return part if isinstance(part, str) else None


def _cell(value: object) -> str | None:
    """The text of a value as in a table; None for empty and nested ones."""
    return None if _nested([value]) else cell_text(value)


def _nested(values: Iterable[object]) -> bool:
    return any(isinstance(value, Mapping | list | tuple | set) for value in values)
