"""Evidence items in requests, rows and files: texts, passages, triples, tables, documents.

Chat calls, rows of JSON lines and cells of CSV are all read here. Errors name the position and
never print more than 80 characters of a value.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeVar, cast

from pydantic import BeforeValidator, FailFast, Field, ValidationError

from guardrail.core.errors import InputError, file_errors
from guardrail.core.fields import LONGEST, did_you_mean, in_short
from guardrail.core.objects import identifying_key
from guardrail.core.rows import TABLE_FILES, cell_text
from guardrail.core.types import Evidence, Passage, Triple, Value, passage_of_document
from guardrail.core.workers import stop_if_given_up
from guardrail.sources.tables import MOST_CELLS, Table, few_enough, within_cells

ShortTriples = Annotated[
    tuple[Annotated[tuple[str, str, str], BeforeValidator(lambda item: _parts(item))], ...] | None,
    FailFast(),
    Field(max_length=MOST_CELLS),
]
"""Type of a field of triples: lists of subject, property and value, or citations of a reply."""
ShortPassages = Annotated[
    tuple[str | Passage, ...] | None, FailFast(), Field(max_length=MOST_CELLS)
]
"""Type of a field of texts or passage objects."""

Item = TypeVar("Item", Triple, Passage)
PASSAGE_KEYS = ("text", "id", "title", "url")
ID_KEYS = ("subject_id", "property_id", "value_id", "row")


def evidence_items(items: object, where: str = "evidence") -> tuple[Evidence, ...]:
    """Read a list of items as evidence.

    Args:
        items: Strings, ``{"text", "id", "title", "url"}``, ``{"triple": [s, p, o]}``, objects
            with both, citations of a reply (``{"entity", "property", "value"}``),
            ``{"table": {"rows": […]}}``, ``{"file": {"filename", "file_data"}}``,
            triples, passages, tables, or LangChain documents, with or without their scores.
        where: Name of the list, for errors.

    Raises:
        InputError: It is no list, an item is none of these, or the evidence exceeds ``MOST_CELLS``.
            ``Table``, ``Triple`` and ``Passage`` objects are not counted.
    """
    if isinstance(items, str | bytes | Mapping | Value) or not isinstance(items, Iterable):
        raise InputError(f"{where} must be a list of items, not {_kind(items)}")
    found: list[Evidence] = []
    made = 0
    for place, item in enumerate(items):
        stop_if_given_up()
        evidence = evidence_of_item(item, f"{where}[{place}]")
        found += evidence
        made += 0 if isinstance(item, Triple | Passage | Table) else len(evidence)
        few_enough(made, where)
    return tuple(found)


def inline_evidence(
    triples: Iterable[tuple[str, str, str]] | None, passages: Iterable[str | Passage] | None
) -> tuple[Evidence, ...] | None:
    """The evidence of a request; None, to query the graph, if both are None."""
    if triples is None and passages is None:
        return None
    return (*(Triple(*item) for item in triples or ()), *as_evidence(passages or ()))


def as_evidence(items: Iterable[object]) -> tuple[Evidence, ...]:
    """Read evidence from Python objects.

    Args:
        items: Triples, passages, tables, texts, or LangChain documents, with or without their
            scores; or one table.

    Raises:
        InputError: An item is none of these, or there is no list of them.
    """
    rows = "; rows and the JSON of a tool go into Table([…])"
    if isinstance(items, str | bytes | Mapping | Triple | Passage):
        hint = rows if isinstance(items, Mapping) else ""
        raise InputError(f"evidence must be a list, not one {type(items).__name__} alone{hint}")
    if not isinstance(items, Iterable):
        raise InputError(f"evidence must be a list, not {type(items).__name__}")
    found: list[Evidence] = []
    for item in items:
        if (read := _plain(item)) is None:
            raise InputError(
                "evidence must be Triple, Passage, Table, str or a LangChain document, not "
                f"{type(item).__name__}{rows if isinstance(item, Mapping) else ''}"
            )
        found += read
    return tuple(found)


def evidence_of_item(item: object, where: str = "item") -> tuple[Evidence, ...]:
    """Read one item as evidence; see ``evidence_items``.

    Returns:
        One or several pieces of evidence: an object may hold a text and a triple; a table has a
        fact for each cell, a document a passage for each paragraph.

    Raises:
        InputError: It is none of these.
    """
    if (read := _plain(item)) is not None:
        return read
    if isinstance(item, Mapping):
        return _object(item, where)
    if isinstance(item, list | tuple):
        return (Triple(*_parts(item, where)),)
    raise InputError(
        f"{where} must be a text, an object with 'text', 'triple', 'table' or 'file', a Triple, a "
        f"Passage, a Table or a LangChain document, not {_kind(item)}"
    )


def evidence_of_files(
    files: Iterable[Path], links: Mapping[str, str] | None = None
) -> tuple[Evidence, ...] | None:
    """Read the passages of documents and the cells of tables; None if there are no files.

    Args:
        files: The files.
        links: Table name (its file name without suffix) for each column that holds row ids of that
            table. Such a cell is read as the name of the row, and such a column is not what its
            own rows are about.

    Raises:
        InputError: A file cannot be read or is empty, or a link names no column or table of the
            files, or joins no row.
        MissingExtraError: The extra ``documents`` is not installed.
    """
    paths, links = list(files), links or {}
    tables = {
        path: Table.from_file(
            path, references=[name for name, target in links.items() if target != path.stem]
        )
        for path in paths
        if path.suffix.lower() in TABLE_FILES
    }
    cells = {path: _cells(table, str(path)) for path, table in tables.items()}
    for column, target in links.items():
        if target not in (names := {path.stem for path in tables}):
            raise InputError(
                f"the link {column!r} leads to {target!r}, which is no table of the files; "
                f"{did_you_mean(target, sorted(names))}"
            )
        having = [path for path, table in tables.items() if column in table.columns]
        if not having:
            known = {name for table in tables.values() for name in table.columns}
            hint = did_you_mean(column, sorted(known))
            raise InputError(f"the link {column!r} is no column of the tables; {hint}")
        rows = [cell for path in tables if path.stem == target for cell in cells[path]]
        if others := [path for path in having if path.stem != target]:
            cells |= {path: _linked(cells[path], column, target, rows) for path in others}
        else:  # a column that refers to rows of its own table
            ids = [cell for cell in rows if cell.property != column]
            cells |= {path: _linked(cells[path], column, target, ids) for path in having}
    found = (cells[path] if path in cells else Passage.from_file(path) for path in paths)
    return tuple(chain.from_iterable(found)) if paths else None


def hashes_of_files(files: Sequence[Path]) -> dict[str, str]:
    """Short hashes of the contents of files, by name; by path where two have the same name."""
    names = Counter(path.name for path in files)
    found = {}
    for path in files:
        with file_errors("read", path), path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        found[path.name if names[path.name] == 1 else path.as_posix()] = digest[:16]
    return found


def evidence_of_bytes(data: bytes, name: str) -> tuple[Evidence, ...]:
    """Read the bytes of a file; the suffix of its name determines the format.

    Raises:
        InputError: It cannot be read, is empty, or is a table of more than ``MOST_CELLS`` cells.
        MissingExtraError: The extra ``documents`` is not installed.
    """
    if Path(name).suffix.lower() in TABLE_FILES:
        return _cells(Table.from_bytes(data, name, most_cells=MOST_CELLS), name)
    return Passage.from_bytes(data, name)


def _linked(
    cells: Sequence[Triple], column: str, target: str, rows: Iterable[Triple]
) -> tuple[Triple, ...]:
    """The cells, with row ids in a column replaced by the names of the rows."""
    wanted = {cell.value for cell in cells if cell.property == column}
    columns: dict[str, list[Triple]] = {}
    names: dict[str, str] = {}
    for row in rows:
        columns.setdefault(row.property, []).append(row)
        names[row.subject] = row.subject
    # The id column of the other table has most of the values; of several, one without repeats.
    best, distinct = _joined(wanted, names), True
    for each in columns.values():
        ids = {row.value: row.subject for row in reversed(each)}
        found, differ = _joined(wanted, ids), len(ids) == len(each)
        if (len(found), differ) > (len(best), distinct):
            best, distinct = found, differ
    if wanted and not best:
        raise InputError(f"the link {column!r} joins nothing: {target!r} has none of its values")
    return tuple(
        cell.model_copy(update={"value": best.get(cell.value, cell.value)})
        if cell.property == column
        else cell
        for cell in cells
    )


def _joined(wanted: Iterable[str], names: Mapping[str, str]) -> dict[str, str]:
    """The names of the rows that some ids lead to, by id."""
    # A column of numbers with gaps is exported with decimals.
    whole = re.compile(r"(?<=\d)\.0+$")
    found = ((value, names.get(value) or names.get(whole.sub("", value))) for value in wanted)
    return {value: name for value, name in found if name}


def _cells(table: Table, source: str) -> tuple[Triple, ...]:
    if not len(table):
        raise InputError(f"{source} holds no rows")
    return table.triples


def _plain(item: object) -> tuple[Evidence, ...] | None:
    """Evidence of an object that is evidence or a text; None for anything else."""
    if isinstance(item, Triple | Passage):
        return (item,)
    if isinstance(item, Table):
        return item.triples
    if isinstance(item, str):
        return (Passage(text=item),)
    if isinstance(item, tuple | list) and len(item) == 2 and passage_of_document(item[1]) is None:
        item = item[0]  # a document with its score, which some vector stores give as a NumPy number
    document = passage_of_document(item)
    return None if document is None else (document,)


def _object(item: Mapping[str, object], where: str) -> tuple[Evidence, ...]:
    if "property" in item and "text" not in item:
        _known_keys(item, ("subject", "entity", "property", "value", *ID_KEYS), where)
        return (_cited(item, where),)
    _known_keys(item, (*PASSAGE_KEYS, "triple", "table", "file"), where)
    item = {key: value for key, value in item.items() if value is not None}  # as Parquet has them
    for key, read in (("table", _table), ("file", _file)):
        if key in item:
            if len(item) > 1:
                raise InputError(f"{where} has more than {key!r}; write each in an item of its own")
            return read(item[key], f"{where}.{key}")
    fields = {key: item[key] for key in PASSAGE_KEYS if key in item}
    triple = item.get("triple")
    if triple is None:
        return (_passage(fields, where),)
    if fields and "text" not in fields:
        raise InputError(
            f"{where} has {next(iter(fields))!r} and 'triple' but no 'text': a triple holds "
            "subject, property and value alone; add the text, or leave it out"
        )
    fact = Triple(*_parts(triple, f"{where}.triple"))
    return (_passage(fields, where), fact) if fields else (fact,)


def _cited(item: Mapping[str, object], where: str) -> Evidence:
    """A citation or a triple of a reply."""
    subject, name, value = _parts(item, where)
    if name == "passage" and "entity" in item:
        return Passage(value, id=subject)
    fields = {key: item.get(key) for key in ID_KEYS}
    return _valid(Triple, {"subject": subject, "property": name, "value": value, **fields}, where)


def _table(value: object, where: str) -> tuple[Evidence, ...]:
    """``{"rows": [{…}, …]}``, or ``{"columns": […], "rows": [[…], …]}``, with name and subject."""
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be an object with 'rows', not {_kind(value)}")
    _known_keys(value, ("rows", "columns", "subject", "name"), where)
    rows, columns = value.get("rows"), value.get("columns")
    if not isinstance(rows, list):
        raise InputError(f"{where}.rows must be a list of objects, or of lists with 'columns'")
    subject, name = (_text(value.get(key), f"{where}.{key}") for key in ("subject", "name"))
    try:
        rows = list(within_cells(rows, MOST_CELLS))
        if columns is not None:
            listed = cast("Sequence[object]", columns)  # checked by the table
            return Table.from_columns(listed, rows, subject=subject, name=name).triples
        if subject is None and all(isinstance(row, Mapping) for row in rows):
            subject = identifying_key(rows, name)
        return Table(rows, subject=subject, name=name).triples
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _text(value: object, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where} must be a text, not {_kind(value)}")
    return value


def _file(value: object, where: str) -> tuple[Evidence, ...]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be an object with 'filename' and 'file_data'")
    _known_keys(value, ("filename", "file_data"), where)
    name, data = value.get("filename"), value.get("file_data")
    if not isinstance(name, str) or not isinstance(data, str):
        raise InputError(f"{where} must have 'filename' and 'file_data', both texts")
    if len(name) > LONGEST:
        name = f"…{name[-LONGEST + 1 :]}"  # the suffix determines the format
    try:
        content = b64decode(
            data.partition(",")[2] if data.startswith("data:") else data, validate=True
        )
    except ValueError as error:
        raise InputError(f"{where}.file_data is not base 64: {error}") from error
    try:
        return evidence_of_bytes(content, name)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _passage(fields: Mapping[str, object], where: str) -> Passage:
    """The passage of some fields, whose ids may be numbers."""
    texts = {
        key: str(it) if isinstance(it, int | float) and not isinstance(it, bool) else it
        for key, it in fields.items()
    }
    return _valid(Passage, texts, where)


def _valid(kind: type[Item], fields: Mapping[str, object], where: str) -> Item:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}.{place}: {first['msg']}") from None


def _parts(item: object, where: str = "a triple") -> tuple[str, str, str]:
    """Subject, property and value of a list, a citation of a reply, or a triple."""
    parts = item
    if isinstance(item, Mapping):
        parts = [item.get("subject", item.get("entity")), item.get("property"), item.get("value")]
    if isinstance(parts, list | tuple) and len(parts) == 3:
        subject, name, value = (
            cell_text(part) if isinstance(part, int | float) else part for part in parts
        )
        if isinstance(subject, str) and isinstance(name, str) and isinstance(value, str):
            return subject, name, value
    raise InputError(f"{where} must be [subject, property, value]")


def _known_keys(value: Mapping[str, object], known: tuple[str, ...], where: str) -> None:
    for key in value:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise InputError(f"{where} has no field {in_short(key)}; {hint}")


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
