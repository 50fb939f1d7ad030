"""Evidence and question of a request of the OpenAI protocol: chat completions and responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from chains.conversation import Turn, standalone_question
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

__all__ = [
    "chat_evidence",
    "chat_question",
    "chat_turns",
    "response_evidence",
    "response_question",
    "response_turns",
    "search_results",
]

JSON = dict[str, object]
ROLES = {"user": "user", "assistant": "assistant"}


def chat_question(request: JSON, settings: EvidenceSettings) -> str:
    """The question that a chat request's messages end with."""
    return standalone_question(chat_turns(request, settings))


def chat_turns(request: JSON, settings: EvidenceSettings) -> list[Turn]:
    """The messages of a chat request as text, marked stretches of the user's left out."""
    return _turns(_messages(request), settings)


def chat_evidence(request: JSON, field: RequestField, settings: EvidenceSettings) -> Found:
    """The evidence in a chat request, the most trusted first.

    Args:
        request: The body, without the ``guardrail`` field.
        field: What that field said.
        settings: Which places are looked at.
    """
    messages = _messages(request)
    names = _called_tools(messages)
    results = [result for message in messages for result in _tool_results(message, names)]
    return _found(request, field, settings, messages, results)


def response_question(request: JSON, settings: EvidenceSettings) -> str:
    """The question that a responses request's input ends with."""
    given = request.get("input")
    if isinstance(given, str):
        return without_marked(given, settings)
    return standalone_question(response_turns(request, settings))


def response_turns(request: JSON, settings: EvidenceSettings) -> list[Turn]:
    """The messages of a responses request as text; see ``chat_turns``."""
    given = request.get("input")
    if isinstance(given, str):
        return _turns([{"role": "user", "content": given}], settings)
    return _turns(_message_items(request), settings)


def response_evidence(request: JSON, field: RequestField, settings: EvidenceSettings) -> Found:
    """The evidence in a responses request, the most trusted first; see ``chat_evidence``."""
    given = request.get("input")
    items = [entry for entry in given if isinstance(entry, dict)] if isinstance(given, list) else []
    messages = _message_items(request)
    names = _named(
        (item.get("call_id"), item.get("name"))
        for item in items
        if item.get("type") == "function_call"
    )
    results: list[ToolResult] = []
    for item in items:
        kind = item.get("type")
        if kind in ("function_call_output", "custom_tool_call_output", "mcp_call"):
            results.append(ToolResult(item.get("output"), _name(names, item.get("call_id"))))
        elif kind == "file_search_call":
            results.append(ToolResult(None, documents=search_results(item)))
    texts = (given if isinstance(given, str) else "", str(request.get("instructions") or ""))
    return _found(request, field, settings, messages, results, texts)


def search_results(item: Mapping[str, object]) -> Iterator[Evidence]:
    """The passages of a file search: of an item of the input, or of the reply's own output."""
    results = item.get("results")
    return (
        Passage(
            text=result["text"],
            id=_text(result.get("file_id")),
            title=_text(result.get("filename")),
            url=_text(attributes.get("url"))
            if isinstance(attributes := result.get("attributes"), dict)
            else None,
        )
        for result in (results if isinstance(results, list) else [])
        if isinstance(result, dict)
        and isinstance(result.get("text"), str)
        and result["text"].strip()
    )


def _turns(messages: list[JSON], settings: EvidenceSettings) -> list[Turn]:
    turns = []
    for message in messages:
        text = text_of(visible_parts(message.get("content")))
        if message.get("role") == "user":
            text = without_marked(text, settings)
        turns.append(Turn(ROLES.get(str(message.get("role")), "system"), text))  # type: ignore[arg-type]
    return turns


def _found(
    request: JSON,
    field: RequestField,
    settings: EvidenceSettings,
    messages: list[JSON],
    results: list[ToolResult],
    texts: tuple[str, ...] = (),
) -> Found:
    """The evidence in all places of a request; ``texts`` are those outside its messages."""
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
        | marked_evidence((*texts, *prompts), settings)
    )


def _tool_results(message: JSON, names: Mapping[str, str]) -> list[ToolResult]:
    """A message of a tool; or the results that a user message holds, as Anthropic writes them."""
    content = message.get("content")
    if message.get("role") in ("tool", "function"):
        name = _text(message.get("name")) or _name(names, message.get("tool_call_id"))
        return [ToolResult(content, name)]
    return [
        ToolResult(part.get("content"), _name(names, part.get("tool_use_id")))
        for part in (content if isinstance(content, list) else [])
        if isinstance(part, dict) and part.get("type") == "tool_result"
    ]


def _called_tools(messages: list[JSON]) -> dict[str, str]:
    """Names of the tools by the id of their call."""
    named: list[tuple[object, object]] = []
    for message in messages:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                named.append((call.get("id"), function.get("name")))
        content = message.get("content")
        for part in content if isinstance(content, list) else []:
            if isinstance(part, dict) and part.get("type") == "tool_use":
                named.append((part.get("id"), part.get("name")))
    return _named(named)


def _named(calls: Iterable[tuple[object, object]]) -> dict[str, str]:
    """Names of tools by the ids of their calls; what is no text names none."""
    return {id: name for id, name in calls if isinstance(id, str) and isinstance(name, str)}


def _name(names: Mapping[str, str], call: object) -> str | None:
    return names.get(call) if isinstance(call, str) else None


def _messages(request: JSON) -> list[JSON]:
    messages = request.get("messages")
    found = (
        [message for message in messages if isinstance(message, dict)]
        if isinstance(messages, list)
        else []
    )
    system = request.get("system")  # where Anthropic's requests keep it
    return [{"role": "system", "content": system}, *found] if system else found


def _message_items(request: JSON) -> list[JSON]:
    given = request.get("input")
    return [
        item
        for item in (given if isinstance(given, list) else [])
        if isinstance(item, dict) and item.get("type", "message") == "message"
    ]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
