"""What tools returned in a conversation, as evidence: texts, documents, rows, objects as facts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeGuard

from chains.evidence.base import EvidenceSettings, Found, Source
from chains.evidence.rows import Reading, rows_of_text, table_of_result
from guardrail import Table
from guardrail.core.cancellation import stop_if_given_up
from guardrail.core.incoming import cut_text
from guardrail.core.types import Evidence, Passage, Problem, Triple
from guardrail.evidence.bounds import MOST_CHARS, too_long
from guardrail.sources.tables import MOST_CELLS

__all__ = ["ToolResult", "evidence_of_tools", "result_evidence"]

TEXT_KEYS = ("text", "content", "page_content", "snippet", "body")
"""Keys of an object under which a document's text stands."""
TITLE_KEYS = ("title", "filename", "name")
URL_KEYS = ("url", "source", "link", "uri")
ID_KEYS = ("id", "file_id", "document_id", "doc_id")
SUBJECT_KEYS = Table.subject_columns
"""Keys of an object that say what its other keys tell of."""
LISTS = ("results", "documents", "items", "data", "hits")
"""Keys under which a tool's reply holds a list of results."""
PART_KEYS = frozenset({"type", "text", "id", "index"})
"""Keys of a content part that tell of the part, not of what its text is about."""
RESULT, VALUE = "result", "value"
"""Subject and property of facts that name none."""
METADATA_KEYS = ("metadata", "attributes")
"""Keys of a document under which more is told of it."""
MAX_DEPTH = 4
"""Objects within objects that are read as facts; deeper ones are read as text."""
LEAST_CHARS = len(Triple(subject="s", property="", value="v").text)
"""Of a fact: so many of them, and no more, may find room."""


class ToolResult(NamedTuple):
    """What one call of a tool returned.

    Attributes:
        content: Text, or data.
        tool: The tool's name, where the conversation tells it.
        documents: Documents beside the content, such as LangChain's artifact; read once.
    """

    content: object
    tool: str | None = None
    documents: Iterable[Evidence] = ()


def evidence_of_tools(results: Sequence[ToolResult], settings: EvidenceSettings) -> Found:
    """Read the results of tools, newest first, within the settings' bounds.

    Args:
        results: In the order of the conversation.
        settings: Whether and how much is read.

    Returns:
        What they hold; nothing where there is no result, or none that says anything. A text that
        is too long is cut behind a paragraph, a line or a sentence; what was not read is told as
        a problem.
    """
    if not settings.tools:
        return Found()
    found: list[Evidence] = []
    room, cut, left_out = settings.tool_chars, 0, 0
    newest = list(reversed(results))
    reading = Reading(min(MOST_CELLS, room // LEAST_CHARS + 1))
    items = chain.from_iterable(
        chain(result.documents, result_evidence(result.content, result.tool, reading))
        for result in newest[: settings.tool_results]
    )
    for item in islice(items, MOST_CELLS):
        stop_if_given_up()
        kept = _within(item, room)
        if kept is None:
            left_out += 1
            continue
        cut += kept is not item
        room -= len(kept.text)
        found.append(kept)
    more = next(items, None) is not None
    evidence = Found.of(Source.TOOLS, found or None)
    problems = _unread(settings, cut, left_out + reading.left_out, len(newest), more=more)
    return evidence._replace(problems=problems)


def result_evidence(
    content: object, tool: str | None = None, reading: Reading | None = None
) -> Iterator[Evidence]:
    """Read one result: texts and documents as passages, rows and all else as facts.

    Args:
        content: Text, JSON in a text, content parts, or data.
        tool: Names the subject of facts where the object itself does not.
        reading: How much of its tables is read.
    """
    reading = reading or Reading()
    if isinstance(content, str):
        data = _json(content)
        data = rows_of_text(content) if data is None else data
        if data is not None:
            yield from _facts(data, tool, 0, reading)
        elif content.strip():
            yield Passage(text=content, title=tool)
    elif isinstance(content, list) and content and all(map(_is_text_part, content)):
        for part in content:
            text = part if isinstance(part, str) else part["text"]
            yield from result_evidence(text, tool, reading)
    else:
        yield from _facts(content, tool, 0, reading)


def _within(item: Evidence, room: int) -> Evidence | None:
    """The item if there is room for it, else what can be kept of it; None for nothing.

    A tool may return what others wrote: a name of any length in it is no fault of the caller's.
    """
    if too_long(item):
        return None
    if len(item.text) <= room:
        return item
    if not isinstance(item, Passage):
        return None
    text = cut_text(item.text, room)
    return item.model_copy(update={"text": text}) if text else None


def _unread(
    settings: EvidenceSettings, cut: int, left_out: int, results: int, *, more: bool
) -> tuple[Problem, ...]:
    """What is told of results that were not read, or not to their end."""
    problems = []
    if cut or left_out or more:
        behind = " and all behind them" if more else ""
        problems.append(
            f"tools returned more than the {settings.tool_chars:,} characters that are read, or "
            f"names of more than {MOST_CHARS:,}; texts that were cut: {cut}, texts and facts left "
            f"out: {left_out}{behind}; let the tools return less, or raise tool_chars where you "
            "give EvidenceSettings"
        )
    if results > settings.tool_results:
        problems.append(
            f"of {results} results of tools the newest {settings.tool_results} were read; send "
            "fewer, or raise tool_results where you give EvidenceSettings"
        )
    return tuple(Problem(part="evidence", message=message) for message in problems)


def _facts(data: object, subject: str | None, depth: int, reading: Reading) -> Iterator[Evidence]:
    if isinstance(data, str):
        if data.strip():
            yield Passage(text=data, title=subject)
    elif isinstance(data, int | float):
        yield Triple(subject=subject or RESULT, property=VALUE, value=_written(data))
    elif (table := _rows(data, subject, reading)) is not None:
        yield from table
    elif depth > MAX_DEPTH:
        if data and (text := _as_json(data)):
            yield Passage(text=text, title=subject)
    elif isinstance(data, list | tuple):
        for item in data:
            yield from _facts(item, subject, depth + 1, reading)
    elif _is_plain_part(data):
        yield from result_evidence(data["text"], subject, reading)
    elif isinstance(data, Mapping):
        yield from _object(data, subject, depth, reading)


def _rows(data: object, name: str | None, reading: Reading) -> Table | None:
    """The rows that a query returned; documents with a text of their own are no rows."""
    if isinstance(data, list) and any(
        isinstance(row, Mapping) and {*row} & {*TEXT_KEYS} for row in data
    ):
        return None
    return table_of_result(data, name, reading)


def _object(
    data: Mapping[str, object], subject: str | None, depth: int, reading: Reading
) -> Iterator[Evidence]:
    documents, data = _documents(data)
    yield from documents
    named = next((key for key in SUBJECT_KEYS if _scalar(data.get(key))), None)
    about = _written(data[named]) if named else subject or RESULT
    if documents:
        data = _beside(documents[0], data)
    for key, value in data.items():
        if key == named:
            continue
        if _scalar(value):
            yield Triple(subject=about, property=str(key), value=_written(value))
        elif isinstance(value, list) and value and all(map(_scalar, value)):
            for item in value:
                yield Triple(subject=about, property=str(key), value=_written(item))
        elif key not in LISTS and (table := _rows(value, str(key), reading)) is not None:
            yield from table
        else:
            inner = about if named or key in LISTS else f"{about} {key}" if subject else str(key)
            yield from _facts(value, inner, depth + 1, reading)


def _documents(data: Mapping[str, object]) -> tuple[list[Passage], Mapping[str, object]]:
    """The texts of an object, each with where it is from, and what else the object tells."""
    texts = {
        key: text for key in TEXT_KEYS if isinstance(text := data.get(key), str) and text.strip()
    }
    if not texts:
        return [], data
    rest: dict[str, object] = {}
    for key, value in data.items():
        if key in METADATA_KEYS and isinstance(value, Mapping):
            rest = {**value, **rest}
        elif key not in texts:
            rest[key] = value

    def first(keys: Sequence[str]) -> str | None:
        value = next((rest[key] for key in keys if _scalar(rest.get(key))), None)
        return None if value is None else _written(value)

    fields = {"id": first(ID_KEYS), "title": first(TITLE_KEYS), "url": first(URL_KEYS)}
    return [Passage(text=text, **fields) for text in dict.fromkeys(texts.values())], rest


def _beside(document: Passage, data: Mapping[str, object]) -> Mapping[str, object]:
    """What an object tells beside what its document holds."""
    document_fields = (
        (ID_KEYS, document.id),
        (TITLE_KEYS, document.title),
        (URL_KEYS, document.url),
    )
    read = {
        key
        for keys, value in document_fields
        for key in keys
        if _scalar(data.get(key)) and _written(data[key]) == value
    }
    return {key: value for key, value in data.items() if key not in read}


def _json(text: str) -> object | None:
    """The object or list that a text is; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict | list) else None


def _as_json(data: object) -> str | None:
    """Data as JSON; None where it cannot be written."""
    try:
        return json.dumps(data, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return None


def _is_plain_part(data: object) -> TypeGuard[Mapping[str, object]]:
    """Whether an object is a content part with text and tells no more."""
    return (
        isinstance(data, Mapping)
        and _is_text_part(data)
        and all(key in PART_KEYS or not _scalar(value) for key, value in data.items())
    )


def _is_text_part(part: object) -> bool:
    if isinstance(part, str):
        return True
    return (
        isinstance(part, Mapping)
        and part.get("type") in ("text", "input_text", "output_text")
        and isinstance(part.get("text"), str)
    )


def _scalar(value: object) -> bool:
    return isinstance(value, str | int | float) and str(value).strip() != ""


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
