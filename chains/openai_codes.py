"""Fields of a reply that are no text, and of what kind the value of each is.

Such fields are not judged, so none may hold prose: a value that is not of its field's kind is
left out. What merely echoes the request is the caller's own, and taken from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from chains.evidence.parts import text_of
from chains.openai_errors import clean_error
from chains.openai_wire import JSON

__all__ = [
    "CHOICE",
    "COMPLETION",
    "MESSAGE",
    "MESSAGE_ITEM",
    "REASONING_ITEM",
    "Kind",
    "Table",
    "anything",
    "each",
    "fitting",
    "identifier",
    "number",
    "object_of",
    "of_response",
    "scalar",
    "sealed",
    "status",
    "text",
    "tree",
    "unspaced",
    "word",
]

Kind = Callable[[object], object]
"""Gives what may leave of a value; None where that is nothing."""
Table = Mapping[str, Kind]

MOST_NESTED = 4
"""Of counts and filter results in each other."""
SEVERITIES = frozenset({"safe", "low", "medium", "high"})
IDENTIFIER = re.compile(r"\S{1,1000}")
UNSPACED = re.compile(r"\S+")
SEALED = re.compile(r"[\w+/=.-]+", re.ASCII)
"""What is encrypted or signed, as base64 writes it."""


def identifier(value: object) -> str | None:
    """A name or an id: text without white space of at most 1,000 characters."""
    return value if isinstance(value, str) and IDENTIFIER.fullmatch(value) else None


def unspaced(value: object) -> str | None:
    """An id of any length: some servers put a signature into those of calls."""
    return value if isinstance(value, str) and UNSPACED.fullmatch(value) else None


def sealed(value: object) -> str | None:
    """Encrypted text of any length."""
    return value if isinstance(value, str) and SEALED.fullmatch(value) else None


def number(value: object) -> int | float | None:
    """A number that is no truth value."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def truth(value: object) -> bool | None:
    """A truth value."""
    return value if isinstance(value, bool) else None


def word(*known: str) -> Kind:
    """One of the words that a field knows."""
    return lambda value: value if isinstance(value, str) and value in known else None


def tree(leaf: Kind, depth: int = MOST_NESTED) -> Kind:
    """An object whose leaves are of one kind, in objects and lists of it, as those of usage are."""

    def kept(value: object, depth: int) -> object:
        if not isinstance(value, dict | list):
            return leaf(value)
        if not depth:
            return None
        if isinstance(value, list):
            return [held for item in value if (held := kept(item, depth - 1)) is not None]
        found = {name: kept(held, depth - 1) for name, held in value.items() if identifier(name)}
        return {name: held for name, held in found.items() if held is not None}

    return lambda value: kept(value, depth) if isinstance(value, dict) else None


def each(kind: Kind) -> Kind:
    """A list of values of one kind."""

    def kept(value: object) -> object:
        if not isinstance(value, list):
            return None
        return [held for held in map(kind, value) if held is not None]

    return kept


def object_of(table: Table) -> Kind:
    """An object with known fields."""
    return lambda value: fitting(value, table) if isinstance(value, dict) else None


def fitting(body: JSON, table: Table) -> JSON:
    """The fields of an object that its table names and whose values are of their kinds.

    A field that is null is one that has no value, and stays.
    """
    kept = {name: kind(body[name]) for name, kind in table.items() if name in body}
    return {name: value for name, value in kept.items() if value is not None or body[name] is None}


def _filter_result(value: object) -> object:
    if isinstance(value, str):
        return value if value in SEVERITIES else None
    return truth(value)


def _unsaid(value: object) -> None:
    """A server's own value of what only a request says."""


def _failure(value: object) -> JSON | None:
    if not value:
        return None
    error = clean_error(value)
    return {"code": error["code"], "message": error["message"]}


def text(value: object) -> str | None:
    """A text of any length, which is judged or handed to a tool."""
    return value if isinstance(value, str) else None


def _content(value: object) -> str | None:
    return value if isinstance(value, str) else text_of(value) or None


def scalar(value: object) -> str | int | float | None:
    """An identifier, a number or a truth value."""
    return value if isinstance(value, int | float) else identifier(value)


def anything(value: object) -> object:
    """What is handed to a tool, in whatever form."""
    return value


counts = tree(number)
filter_results = tree(_filter_result)
role = word("assistant", "user", "system", "developer", "tool", "function")
service_tier = word(
    "auto", "default", "flex", "scale", "priority", "on_demand", "standard", "performance"
)
ended = word(
    "stop", "length", "tool_calls", "content_filter", "function_call", "model_length",
    "insufficient_system_resource", "abort", "error",
)  # fmt: skip
status = word("completed", "failed", "in_progress", "cancelled", "queued", "incomplete")

COMPLETION: Table = {
    "id": identifier,
    "object": identifier,
    "created": number,
    "model": identifier,
    "usage": counts,
    "system_fingerprint": identifier,
    "service_tier": service_tier,
    "prompt_filter_results": each(
        object_of({"prompt_index": number, "content_filter_results": filter_results})
    ),
}
"""A chat completion or a chunk of one, beside its choices."""

CHOICE: Table = {
    "index": number,
    "finish_reason": ended,
    "content_filter_results": filter_results,
}
"""A choice, beside its message, its delta and its tokens."""

MESSAGE: Table = {"role": role, "content": _content, "refusal": text}
"""A message; its texts are still to be judged."""

MESSAGE_ITEM: Table = {
    "id": identifier,
    "type": identifier,
    "role": role,
    "status": status,
    "phase": word("commentary", "final_answer"),
}
"""A message of a response, beside its content."""

REASONING_ITEM: Table = {
    "id": identifier,
    "type": identifier,
    "status": status,
    "encrypted_content": sealed,
}

RESPONSE: Table = {
    "id": identifier,
    "object": identifier,
    "created_at": number,
    "completed_at": number,
    "status": status,
    "error": _failure,
    "incomplete_details": lambda value: (
        {"reason": word("max_output_tokens", "content_filter")(value.get("reason"))}
        if isinstance(value, dict)
        else None
    ),
    "background": truth,
    "conversation": object_of({"id": identifier}),
    "service_tier": service_tier,
    "usage": counts,
}
"""A response, beside its output and what it echoes."""

ECHOES: Table = {
    "instructions": _unsaid,
    "max_output_tokens": number,
    "max_tool_calls": number,
    "metadata": _unsaid,
    "model": identifier,
    "parallel_tool_calls": truth,
    "previous_response_id": identifier,
    "prompt": _unsaid,
    "prompt_cache_key": _unsaid,
    "prompt_cache_retention": word("in_memory", "in-memory", "24h"),
    "reasoning": object_of(
        {
            "effort": word("none", "minimal", "low", "medium", "high", "xhigh"),
            "summary": word("auto", "concise", "detailed"),
        }
    ),
    "safety_identifier": _unsaid,
    "store": truth,
    "temperature": number,
    "text": object_of({"format": object_of({"type": word("text")})}),
    "tool_choice": word("auto", "none", "required"),
    "tools": lambda value: [] if isinstance(value, list) else None,
    "top_logprobs": number,
    "top_p": number,
    "truncation": word("auto", "disabled"),
    "user": _unsaid,
}
"""What a response echoes of its request, and which of a server's defaults it may tell instead."""

SECRETS = frozenset({"authorization", "headers"})
"""What a tool of the request says to another server alone, and no response echoes."""


def of_response(body: JSON, request: JSON) -> JSON:
    """A response without its output: its own fields, and of the request those that it echoes."""
    kept = fitting(body, RESPONSE)
    if "error" in kept and kept.get("status") != "failed":
        kept["error"] = None
    return kept | echoed(body, request)


def echoed(body: JSON, request: JSON) -> JSON:
    """The fields that echo a request, as the request has them; else a default that fits."""
    asked = {name: request[name] for name in ECHOES if name in body and name in request}
    if isinstance(asked.get("tools"), list):
        asked["tools"] = [
            {name: held for name, held in tool.items() if name not in SECRETS}
            for tool in asked["tools"]
            if isinstance(tool, dict)
        ]
    return fitting(body, ECHOES) | asked
