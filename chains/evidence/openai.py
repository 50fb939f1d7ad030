"""Evidence and question of a request to the chat completions, responses or messages endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from chains.conversation import Turn
from chains.evidence.base import EvidenceSettings, Found, Source
from chains.evidence.parts import (
    marked_evidence,
    parts_of_messages,
    sources_of_body,
    text_of,
    visible_parts,
    without_marked,
)
from chains.evidence.tools import ToolResult, evidence_of_tools
from guardrail.core.types import Evidence, Passage

if TYPE_CHECKING:
    from chains.evidence.items import RequestField

__all__ = ["request_evidence", "request_turns", "search_results"]

JSON = dict[str, object]
ROLES = {"user": "user", "assistant": "assistant"}
CALLS = ("tool_calls", "content")
"""Fields of a message that hold calls of tools: of OpenAI and Anthropic."""
RESULTS = ("function_call_output", "custom_tool_call_output", "mcp_call")
"""Items of a responses request that hold the result of a tool."""


def request_turns(
    request: JSON, settings: EvidenceSettings, *, responses: bool = False
) -> list[Turn]:
    """The messages of a request as text, without marked evidence; see ``request_evidence``."""
    turns = []
    for message in _messages(_items(request, responses), responses):
        text = text_of(visible_parts(message.get("content")))
        if message.get("role") == "user":
            text = without_marked(text, settings)
        turns.append(Turn(ROLES.get(str(message.get("role")), "system"), text))  # type: ignore[arg-type]
    return turns


def request_evidence(
    request: JSON, field: RequestField, settings: EvidenceSettings, *, responses: bool = False
) -> Found:
    """The evidence in a request, the most trusted first.

    Args:
        request: The body, without the ``guardrail`` field.
        field: The contents of that field.
        settings: Where to look.
        responses: True for a request of the responses endpoint.
    """
    items = _items(request, responses)
    messages = _messages(items, responses)
    names = dict(name for item in items for name in _called(item))
    results = [result for item in items for result in _results(item, names)]
    prompts = [
        text_of(message.get("content"))
        for message in messages
        if message.get("role") in ("system", "developer", "user")
    ]
    return (
        Found.of(Source.CALLER, field.evidence)
        | parts_of_messages(messages)
        | sources_of_body(request)
        | evidence_of_tools(results, settings)
        | marked_evidence(prompts, settings)
    )


def search_results(item: Mapping[str, object]) -> Iterator[Evidence]:
    """The passages of a file search, in a request's input or in the reply's own output."""
    for result in _objects(item.get("results")):
        text, attributes = _text(result.get("text")), result.get("attributes")
        if text and text.strip():
            yield Passage(
                text=text,
                id=_text(result.get("file_id")),
                title=_text(result.get("filename")),
                url=_text(attributes.get("url")) if isinstance(attributes, dict) else None,
            )


def _items(request: JSON, responses: bool) -> list[JSON]:
    """The messages and other items of a request, with its system prompt as a message."""
    given, system = ("input", "instructions") if responses else ("messages", "system")
    items = request.get(given)
    if isinstance(items, str) and responses:
        items = [{"role": "user", "content": items}]
    prompt = request.get(system)
    first = [{"role": "system", "content": prompt}] if prompt else []
    return [*first, *_objects(items)]


def _messages(items: list[JSON], responses: bool) -> list[JSON]:
    return [item for item in items if not responses or item.get("type", "message") == "message"]


def _called(item: JSON) -> Iterator[tuple[str, str]]:
    """The id and name of each tool call."""
    if item.get("type") == "function_call":
        calls = [(item.get("call_id"), item.get("name"))]
    else:
        calls = [
            (call.get("id"), tool.get("name"))
            for field in CALLS
            for call in _objects(item.get(field))
            for tool in ([call] if call.get("type") == "tool_use" else [call.get("function")])
            if isinstance(tool, dict)
        ]
    for id, name in calls:
        if isinstance(id, str) and isinstance(name, str):
            yield id, name


def _results(item: JSON, names: Mapping[str, str]) -> Iterator[ToolResult]:
    """The tool results in a message or item, in the forms of OpenAI and Anthropic."""

    def name(id: object) -> str | None:
        return names.get(id) if isinstance(id, str) else None

    kind, content = item.get("type"), item.get("content")
    if kind in RESULTS:
        yield ToolResult(item.get("output"), name(item.get("call_id")))
    elif kind == "file_search_call":
        yield ToolResult(None, documents=search_results(item))
    elif item.get("role") in ("tool", "function"):
        yield ToolResult(content, _text(item.get("name")) or name(item.get("tool_call_id")))
    else:
        for part in _objects(content):
            if part.get("type") == "tool_result":
                yield ToolResult(part.get("content"), name(part.get("tool_use_id")))


def _objects(value: object) -> list[JSON]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
