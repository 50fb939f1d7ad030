"""Data of tools as evidence: texts and documents as passages, rows and other objects as facts.

Each object has a subject of its own: its name or identifier, or the tool's name and a number.
"""

from __future__ import annotations

import ast
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from io import BytesIO
from typing import NamedTuple, TypeGuard, TypeVar, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from guardrail import Table
from guardrail.core.documents.markdown import has_head, own_head
from guardrail.core.errors import InputError
from guardrail.core.objects import (
    cell_of,
    content_of,
    flat_row,
    identifying_key,
    is_amount,
    is_identifier,
    is_nested,
    name_key,
    own_key,
)  # fmt: skip
from guardrail.core.rows import cell_text, read_rows
from guardrail.core.types import Evidence, Passage, TableRow, Triple
from guardrail.sources.tables import row_size

FIELD_KEYS = {
    "id": ("id", "file_id", "document_id", "doc_id"),
    "title": ("title", "filename", "name"),
    "url": ("url", "source", "link", "uri"),
}
"""Keys of the other fields of a passage."""
OWN_SUBJECT = "subject of the row"
"""Column for the subjects of rows that no column of theirs tells apart."""
DEEPEST = 4
"""Levels of objects and lists in each other; deeper ones are read as text."""

Row = TypeVar("Row")
Object = Mapping[str, object]


class Piece(NamedTuple):
    """A part of a tool's result: its text, or its data.

    ``kind`` is what its objects are (the name of the tool), ``subject`` what the facts of an object
    without a name are about, ``key`` names its objects: empty if none does, None to find it.
    """

    data: object
    kind: str | None
    subject: str | None
    key: str | None = None


class Limit:
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


def pieces_of(results: Sequence[tuple[object, str | None]]) -> list[list[Piece]]:
    """The parts of each result, which is content and the name of its tool.

    Objects that one tool returns in several parts or results stay apart, whatever their order.
    """
    found = [[Piece(data, tool, tool) for data in _parts(content)] for content, tool in results]
    held: dict[str | None, list[object]] = defaultdict(list)
    for piece in (piece for pieces in found for piece in pieces):
        if _is_object(piece.data) or _are_rows(piece.data):
            held[piece.kind].append(piece.data)
    subjects = {kind: _apart(items, kind, kind) for kind, items in held.items() if len(items) > 1}
    return [
        [
            piece._replace(subject=apart[0], key=apart[1])
            if (apart := subjects.get(piece.kind, {}).get(id(piece.data)))
            else piece
            for piece in pieces
        ]
        for pieces in found
    ]


def _apart(
    items: Sequence[object], kind: str | None, subject: str | None
) -> dict[int, tuple[str | None, str | None]]:
    """The subjects and keys of objects and lists of objects, by the ids of these.

    An object has a key of its own, or one that tells it from the others; others are numbered.
    """
    contents = {id(item): content_of(item) for item in items}
    different = {
        contents[id(item)]: _documents(item)[1] if isinstance(item, Mapping) else item
        for item in items
    }
    found: dict[str, tuple[str | None, str | None]] = {}
    uncertain: dict[str, list[str]] = defaultdict(list)
    for content, item in different.items():
        if not isinstance(item, Mapping):
            continue
        key, certain = own_key(item, kind)
        if key is not None:
            found[content] = (cell_of(item[key]), key)
            if not certain:
                uncertain[str(found[content][0])].append(content)
    for shared in uncertain.values():
        if len(shared) > 1:  # the name of something else, such as the customer of two orders
            for content in shared:
                del found[content]
    rest = sorted(different.keys() - found.keys())
    objects = [item for name in rest if isinstance(item := different[name], Mapping)]
    rows = [row for name in rest if isinstance(item := different[name], list) for row in item]
    among = identifying_key(objects, kind, distinct=True) if len(objects) > 1 else None
    all_rows = identifying_key([*{content_of(row): row for row in rows}.values()], kind)
    for number, content in enumerate(rest, start=1):
        item = different[content]
        about = f"{subject or 'result'} {number}" if len(rest) > 1 else subject
        if isinstance(item, Mapping):
            found[content] = (cell_of(item[among]), among) if among else (about, "")
        elif isinstance(item, list):
            key = all_rows or identifying_key(item, kind) or ""
            found[content] = (about, key if all_rows or is_identifier(key) else "")
    return {place: found[content] for place, content in contents.items()}


def _parts(content: object) -> list[object]:
    """The data of a result's text, or of each of its content parts."""
    if isinstance(content, list) and content and all(map(_part_text, content)):
        return [_data(_part_text(part) or "") for part in content]
    return [_data(content) if isinstance(content, str) else content]


def _data(text: str) -> object:
    """The object, list or rows in a text; the text itself if it is any other."""
    if text.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            return cast("object", json.loads(text))
    rows = _rows(text)
    return text if rows is None else rows


def facts_of(piece: Piece, limit: Limit, depth: int = 0) -> Iterator[Evidence]:
    """Read a part of a result: text, or data.

    The tool is the subject of facts that name none, ``value`` their property.
    """
    data, kind, subject, _ = piece
    if isinstance(data, str):
        if data.strip():
            yield Passage(text=data, title=subject)
    elif (value := cell_of(data)) is not None:
        yield Triple(subject=subject or "result", property="value", value=value)
    elif (table := _table(data, kind, limit)) is not None:
        yield from table
    elif depth > DEEPEST:
        if data and (text := cell_text(data)):
            yield Passage(text=text, title=subject)
    elif _are_rows(data):
        yield from _Rows(data, piece, limit).facts(depth)
    elif isinstance(data, list | tuple):
        objects = [item for item in data if _is_object(item)]
        apart = _apart(objects, kind, subject) if len(objects) > 1 else {}
        for item in data:
            about, key = apart.get(id(item), (subject, None))
            yield from facts_of(Piece(item, kind, about, key), limit, depth + 1)
    elif isinstance(data, Mapping):
        if _is_object(data):
            yield from _object(piece._replace(data=data), depth, limit)
        else:
            yield from facts_of(Piece(_data(_part_text(data) or ""), kind, subject), limit, depth)


def _object(piece: Piece, depth: int, limit: Limit) -> Iterator[Evidence]:
    """The facts of an object: of its own cells, then of what lies within it."""
    documents, data = _documents(cast("Object", piece.data))
    yield from documents
    named = own_key(data, piece.kind)[0] if piece.key is None else piece.key
    about = (cell_of(data.get(named)) if named else None) or piece.subject or "result"
    read = {name: getattr(documents[0], name) for name in FIELD_KEYS} if documents else {}
    cells: dict[str, object] = {}
    inner: list[Iterator[Evidence]] = []
    for key, value in data.items():
        known = any(key in FIELD_KEYS[name] and cell_of(value) == read[name] for name in read)
        if key == named or known:
            continue
        value = _only(value)
        if _is_cell(value):
            cells[key] = value
        elif key in ("results", "documents", "items", "data", "hits"):
            inner.append(facts_of(Piece(value, piece.kind, about), limit, depth + 1))
        elif (table := _table(value, str(key), limit)) is not None:
            inner.append(iter(table))
        elif _are_rows(value) and depth < DEEPEST:
            # A tool's name says nothing about the objects in its result; a name or number does.
            owners = [about] * len(value) if named or piece.subject != piece.kind else []
            rows = _Rows(value, Piece(value, str(key), str(key)), limit, owners)
            cells |= {key: rows.names} if named else {}
            inner.append(rows.facts(depth + 1))
        else:
            outer = f"{about} {key}" if piece.subject or named else str(key)
            own: str | None = None
            if _is_plain(value):
                own = (name_key(value) if named else own_key(value, str(key))[0]) or ""
                if own:
                    cells[key] = value[own]
                elif named:
                    cells[key] = value
                    continue
            inner.append(facts_of(Piece(value, str(key), outer, own), limit, depth + 1))
    # The name of its tool or key tells what an object with a name is: a booking, a captain.
    is_row = named and piece.kind and not documents
    row = TableRow(table=piece.kind or "", number=1) if is_row else None
    for key, value in flat_row(cells).items():
        for cell in filter(None, map(cell_text, value if isinstance(value, list) else [value])):
            yield Triple(subject=about, property=key, value=cell, row=row)
    for facts in inner:
        yield from facts


class _Rows:
    """The objects of a list, or of the lists that the objects of a list have under one key.

    Attributes:
        names: The name or identifier of each object; None for those without.
    """

    def __init__(
        self, rows: Sequence[Object], piece: Piece, limit: Limit, owners: Sequence[str] = ()
    ) -> None:
        self._rows, self._kind, self._limit = limit.first(rows), piece.kind, limit
        several = len({*owners}) > 1
        different = {content_of(row): row for row in self._rows} if several else {}
        key = piece.key
        if key is None:
            listed = [*different.values()] or self._rows
            key = identifying_key(listed, piece.kind, distinct=several)
        by_owner: dict[str, list[Object]] = defaultdict(list)
        for owner, row in zip(owners, self._rows, strict=False):
            by_owner[owner].append(row)
        if owners and not (key and is_identifier(key)):
            key = None
        keys = {} if key else {o: identifying_key(own, piece.kind) for o, own in by_owner.items()}
        self.names = [cell_of(row.get(key)) if key else None for row in self._rows]
        self._subjects: list[str] = []
        numbers = Counter[str]()
        for place, row in enumerate(self._rows):
            owner = owners[place] if owners else ""
            numbers[owner] += 1
            base = f"{owner} {piece.kind}" if owner else piece.subject or "result"
            cell = cell_of(row.get(keys.get(owner) or ""))
            other = f"{owner} {cell}" if cell else f"{base} {numbers[owner]}"
            self._subjects.append(self.names[place] or other)
            self.names[place] = self.names[place] or cell
        self._key = key if key and all(self.names) else OWN_SUBJECT

    def facts(self, depth: int) -> Iterator[Evidence]:
        """The facts of the rows, then of what lies within them."""
        cells: list[dict[str, object]] = []
        objects: dict[str, list[tuple[int, Object]]] = defaultdict(list)
        lists: dict[str, list[tuple[int, Object]]] = defaultdict(list)
        inner: list[Iterator[Evidence]] = []
        for place, (row, subject) in enumerate(zip(self._rows, self._subjects, strict=True)):
            cells.append({})
            for key, value in row.items():
                value = _only(value)
                if _is_cell(value):
                    cells[place][key] = value
                elif _is_plain(value):
                    objects[key].append((place, value))
                elif _are_rows(value) and depth < DEEPEST:
                    lists[key] += [(place, item) for item in value]
                else:
                    piece = Piece(value, str(key), f"{subject} {key}")
                    inner.append(facts_of(piece, self._limit, depth + 1))
            if self._key == OWN_SUBJECT:
                cells[place][OWN_SUBJECT] = subject
        for key, found in objects.items():
            # Two different objects of one name are no entities of their own.
            names = {place: cell_of(value.get(name_key(value) or "")) for place, value in found}
            contents = {(names[place], content_of(value)) for place, value in found}
            entities = all(names.values()) and len(contents) == len({*names.values()})
            for place, value in found:
                cells[place][key] = names[place] if entities else value
            different = {names[place]: value for place, value in found} if entities else {}
            for value in different.values():
                inner.append(facts_of(Piece(value, str(key), None), self._limit, depth + 1))
        for key, items in lists.items():
            owners = [self._subjects[place] for place, _ in items]
            rows = _Rows(
                [row for _, row in items], Piece(None, str(key), None), self._limit, owners
            )
            linked: dict[int, list[object]] = defaultdict(list)
            for (place, _), name in zip(items, rows.names, strict=False):
                linked[place].append(name)
            for place, names_of_rows in linked.items():
                cells[place][key] = names_of_rows
            inner.append(rows.facts(depth + 1))
        yield from Table(cells, subject=self._key, name=self._kind)
        for facts in inner:
            yield from facts


def _documents(data: Mapping[str, object]) -> tuple[list[Passage], Mapping[str, object]]:
    """The texts of an object as passages, and the rest of the object."""
    keys = ("text", "content", "page_content", "snippet", "body")
    texts = {key: text for key in keys if isinstance(text := data.get(key), str) and text.strip()}
    if not texts:
        return [], data
    rest: dict[str, object] = {}
    for key, value in data.items():
        if key in ("metadata", "attributes") and isinstance(value, Mapping):
            rest = {**value, **rest}
        elif key not in texts:
            rest[key] = value
    fields = {
        name: next((cell for key in keys if (cell := cell_of(rest.get(key))) is not None), None)
        for name, keys in FIELD_KEYS.items()
    }
    return [Passage(text=text, **fields) for text in dict.fromkeys(texts.values())], rest


def _table(data: object, name: str | None, limit: Limit) -> Table | None:
    """Data as a table: columns and rows, or rows without columns."""
    names: list[object]
    if isinstance(data, Mapping):
        columns, lists = data.get("columns"), (data.get("rows"), data.get("data"))
        rows = next((found for found in lists if isinstance(found, list)), None)
        if not rows or not isinstance(columns, list) or not isinstance(rows[0], list):
            return None
        # Some drivers give the type of a column next to its name.
        names = [item.get("name") if isinstance(item, Mapping) else item for item in columns]
    elif isinstance(data, list) and len(data) > 1 and all(isinstance(row, tuple) for row in data):
        # Rows without the names of their columns, as the SQL tool of LangChain returns them.
        rows, width = data, len(data[0])
        names = ["name", "value"] if width == 2 else [f"value {n}" for n in range(1, width + 1)]
    else:
        return None
    try:
        return Table.from_columns(names, limit.first(rows), name=name)
    except InputError:
        return None


def _only(value: object) -> object:
    """The object of a list with one object, or the value itself."""
    single = isinstance(value, list) and len(value) == 1 and _is_object(value[0])
    return value[0] if single and isinstance(value, list) else value


def _are_rows(value: object) -> TypeGuard[list[Object]]:
    """True for a list of several objects without texts."""
    return isinstance(value, list) and len(value) > 1 and all(map(_is_plain, value))


def _is_plain(value: object) -> TypeGuard[Object]:
    """True for an object that is no document."""
    return _is_object(value) and not _documents(value)[0]


def _is_object(value: object) -> TypeGuard[Object]:
    """True for an object that is more than a text: no content part."""
    if not isinstance(value, Mapping):
        return False
    own = ("type", "text", "id", "index")
    # A content part whose keys describe the part itself, not the subject of its text
    alone = all(key in own or cell_of(item) is None for key, item in value.items())
    return not (_part_text(value) and alone)


def _is_cell(value: object) -> bool:
    """True for what a cell may hold: a value, an amount with its unit, or several of these."""
    values = value if isinstance(value, list) else [value]
    return all(not is_nested(item) or is_amount(item) for item in values)


def _part_text(part: object) -> str | None:
    """The text of a content part."""
    if isinstance(part, Mapping) and part.get("type") in ("text", "input_text", "output_text"):
        part = part.get("text")
    return part if isinstance(part, str) else None


# --- data in a text ---------------------------------------------------------------------


def _rows(text: str) -> Sequence[object] | None:
    """The rows in a text as CSV, or as Markdown or Python prints them; None for any other text."""
    text = text.strip()
    # Python's parser takes a hundred times as much memory as the text; a table of that length would
    # be cut in any case.
    if len(text) > 200_000:
        return None
    if not text.startswith(("|", "[(", "[{")):
        return _separated(text)
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


def _separated(text: str) -> Sequence[object] | None:
    """The rows of a text of comma-, semicolon- or tab-separated values; None for any other text.

    The first line must be a head: lower-case names, or words above figures. Prose has a space
    behind its commas.
    """
    line, _, rest = text.partition("\n")
    mark = max(",;\t", key=line.count)
    head = [name.strip('"') for name in line.rstrip().split(mark)]
    if len(head) < 2 or not rest or any(name != name.strip() or not name for name in head):
        return None
    try:
        rows = [row for _, row in read_rows(BytesIO(text.encode()), "csv", "the result")]
    except (InputError, UnicodeEncodeError):
        return None
    table = [head, *([str(row.get(name, "")) for name in head] for row in rows)]
    named = line == line.lower() and all(name[0].isalpha() for name in head)
    return rows if has_head(table) and (named or own_head(table)) else None


def _literal(node: ast.AST) -> object:
    """The value of ``[('Fjell 3', Decimal('2490.00'))]``; raises ValueError or LookupError."""
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
