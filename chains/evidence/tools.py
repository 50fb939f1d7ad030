"""What tools returned in a conversation, as evidence: texts, documents, and objects as facts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from chains.evidence.base import EvidenceSettings, Found, Source
from guardrail.types import Evidence, Passage, Triple

__all__ = ["ToolResult", "evidence_of_tools", "result_evidence"]

TEXT_KEYS = ("text", "content", "page_content", "snippet", "body")
"""Keys of an object under which a document's text stands."""
TITLE_KEYS = ("title", "filename", "name")
URL_KEYS = ("url", "source", "link", "uri")
ID_KEYS = ("id", "file_id", "document_id", "doc_id")
SUBJECT_KEYS = ("name", "label", "title", "product", "subject", "id")
"""Keys of an object that say what its other keys tell of."""
LISTS = ("results", "documents", "items", "data", "hits")
"""Keys under which a tool's reply holds a list of results."""
MAX_DEPTH = 4
"""Objects within objects that are read; deeper ones are left out."""


class ToolResult(NamedTuple):
    """What one call of a tool returned.

    Attributes:
        content: Text, or data.
        tool: The tool's name, where the conversation tells it.
        documents: Documents beside the content, such as LangChain's artifact.
    """

    content: object
    tool: str | None = None
    documents: tuple[Evidence, ...] = ()


def evidence_of_tools(results: Sequence[ToolResult], settings: EvidenceSettings) -> Found:
    """Read the results of tools, newest first, within the settings' bounds.

    Args:
        results: In the order of the conversation.
        settings: Whether and how much is read.

    Returns:
        What they hold; nothing where there is no result, or none that says anything.
    """
    if not settings.tools:
        return Found()
    found: list[Evidence] = []
    left = settings.tool_chars
    for result in list(reversed(results))[: settings.tool_results]:
        for item in (*result.documents, *result_evidence(result.content, result.tool)):
            left -= len(item.text)
            if left < 0:
                return Found.of(Source.TOOLS, found or None)
            found.append(item)
    return Found.of(Source.TOOLS, found or None)


def result_evidence(content: object, tool: str | None = None) -> list[Evidence]:
    """Read one result: a text as a passage, documents as passages, an object as facts.

    Args:
        content: Text, JSON in a text, content parts, or data.
        tool: Names the subject of facts where the object itself does not.
    """
    if isinstance(content, str):
        data = _json(content)
        if data is not None:
            return list(_facts(data, tool, 0))
        return [Passage(text=content, title=tool)] if content.strip() else []
    if isinstance(content, list) and content and all(map(_is_text_part, content)):
        texts = [part if isinstance(part, str) else part["text"] for part in content]
        return [one for text in texts for one in result_evidence(text, tool)]
    return list(_facts(content, tool, 0))


def _facts(data: object, subject: str | None, depth: int) -> Iterable[Evidence]:
    if depth > MAX_DEPTH:
        return
    if isinstance(data, str):
        if data.strip():
            yield Passage(text=data, title=subject)
    elif isinstance(data, list):
        for one in data:
            yield from _facts(one, subject, depth + 1)
    elif isinstance(data, Mapping):
        yield from _object(data, subject, depth)


def _object(data: Mapping[str, Any], subject: str | None, depth: int) -> Iterable[Evidence]:
    document = _document(data)
    if document is not None:
        yield document
        return
    named = next((key for key in SUBJECT_KEYS if _scalar(data.get(key))), None)
    about = _written(data[named]) if named else subject or "result"
    for key, value in data.items():
        if key == named:
            continue
        if _scalar(value):
            yield Triple(subject=about, property=str(key), value=_written(value))
        elif isinstance(value, list) and value and all(map(_scalar, value)):
            for one in value:
                yield Triple(subject=about, property=str(key), value=_written(one))
        else:
            inner = about if named or key in LISTS else f"{about} {key}" if subject else str(key)
            yield from _facts(value, inner, depth + 1)


def _document(data: Mapping[str, Any]) -> Passage | None:
    """An object that is a document: a text, with where it is from."""
    text = next((data[key] for key in TEXT_KEYS if isinstance(data.get(key), str)), None)
    if text is None or not text.strip():
        return None
    metadata = data.get("metadata") or data.get("attributes")
    told = {**(metadata if isinstance(metadata, Mapping) else {}), **data}

    def first(keys: Sequence[str]) -> str | None:
        value = next((told[key] for key in keys if _scalar(told.get(key))), None)
        return None if value is None else _written(value)

    return Passage(text=text, id=first(ID_KEYS), title=first(TITLE_KEYS), url=first(URL_KEYS))


def _json(text: str) -> object | None:
    """The object or list that a text is; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict | list) else None


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
