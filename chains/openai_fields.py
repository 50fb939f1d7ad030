"""Fields of OpenAI replies that are returned unjudged, and the kind of value that each may hold.

No such field may hold prose: a value of another kind is dropped, and so is every field that is not
listed. ``openai.types`` cannot be the list, since most of these fields are plain strings there.
What only echoes the request is taken from the request.
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
    "FUNCTION",
    "MESSAGE",
    "MESSAGE_CALLS",
    "MESSAGE_ITEM",
    "NAMED_EVENTS",
    "NAMED_ITEMS",
    "REASONING_ITEM",
    "TOOL_EVENT",
    "clean_tool_event",
    "clean_tool_item",
    "fitting",
    "handed_over",
    "identifier",
    "is_call",
    "is_tool_event",
    "is_tool_item",
    "of_response",
    "scalar",
    "sealed",
    "text",
    "tree",
    "unspaced",
]

Kind = Callable[[object], object]
"""Gives what may be returned of a value; None if nothing may."""
Table = Mapping[str, Kind]

MOST_NESTED = 4
"""Depth of counts and filter results."""
SEVERITIES = frozenset({"safe", "low", "medium", "high"})


def _matching(pattern: str) -> Callable[[object], str | None]:
    full = re.compile(pattern).fullmatch
    return lambda value: value if isinstance(value, str) and full(value) else None


identifier = _matching(r"\S{1,1000}")
"""A name or an id: text without white space of at most 1,000 characters."""
unspaced = _matching(r"\S+")
"""An id of any length: some servers put a signature into those of calls."""
sealed = _matching(r"[A-Za-z0-9_+/=.-]+")
"""Encrypted or signed text of any length, as base64 writes it."""


def number(value: object) -> int | float | None:
    """A number."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def truth(value: object) -> bool | None:
    """A truth value."""
    return value if isinstance(value, bool) else None


def text(value: object) -> str | None:
    """A text of any length, which is judged or passed to a tool."""
    return value if isinstance(value, str) else None


def scalar(value: object) -> str | int | float | None:
    """An identifier, a number or a truth value."""
    return value if isinstance(value, int | float) else identifier(value)


def anything(value: object) -> object:
    """What is passed to a tool, in any form."""
    return value


def nothing(value: object) -> None:
    """A server's own value of what only a request says."""


def word(*known: str) -> Kind:
    """One of the words that a field knows."""
    return lambda value: value if isinstance(value, str) and value in known else None


def tree(leaf: Kind, depth: int = MOST_NESTED) -> Kind:
    """An object whose leaves, in nested objects and lists, are of one kind."""

    def clean(value: object, depth: int) -> object:
        if not isinstance(value, dict | list):
            return leaf(value)
        if not depth:
            return None
        if isinstance(value, list):
            return [held for item in value if (held := clean(item, depth - 1)) is not None]
        found = {name: clean(held, depth - 1) for name, held in value.items() if identifier(name)}
        return {name: held for name, held in found.items() if held is not None}

    return lambda value: clean(value, depth) if isinstance(value, dict) else None


def each(kind: Kind) -> Kind:
    """A list of values of one kind."""
    return lambda value: (
        [held for held in map(kind, value) if held is not None] if isinstance(value, list) else None
    )


def object_of(table: Table) -> Kind:
    """An object with known fields."""
    return lambda value: fitting(value, table) if isinstance(value, dict) else None


def fitting(body: JSON, table: Table) -> JSON:
    """The fields of an object that are listed and whose values are of their kinds, or null."""
    found = {name: kind(body[name]) for name, kind in table.items() if name in body}
    return {name: value for name, value in found.items() if value is not None or body[name] is None}


def fields(kind: Kind, names: str) -> Table:
    """A table of several fields of one kind, their names separated by spaces."""
    return dict.fromkeys(names.split(), kind)


def _filter_result(value: object) -> object:
    return (value if value in SEVERITIES else None) if isinstance(value, str) else truth(value)


def _failure(value: object) -> JSON | None:
    if not value:
        return None
    error = clean_error(value)
    return {"code": error["code"], "message": error["message"]}


counts = tree(number)
filter_results = tree(_filter_result)
role = word("assistant", "user", "system", "developer", "tool", "function")
status = word("completed", "failed", "in_progress", "cancelled", "queued", "incomplete")
service_tier = word(
    "auto", "default", "flex", "scale", "priority", "on_demand", "standard", "performance"
)
finish_reason = word(
    "stop", "length", "tool_calls", "content_filter", "function_call", "model_length",
    "insufficient_system_resource", "abort", "error",
)  # fmt: skip

# --- chat completions --------------------------------------------------------------------

COMPLETION: Table = {
    **fields(identifier, "id object model system_fingerprint"),
    "created": number,
    "usage": counts,
    "service_tier": service_tier,
    "prompt_filter_results": each(
        object_of({"prompt_index": number, "content_filter_results": filter_results})
    ),
}
"""A chat completion or a chunk of one, without its choices."""
CHOICE: Table = {
    "index": number,
    "finish_reason": finish_reason,
    "content_filter_results": filter_results,
}
"""A choice, without its message, its delta and its tokens."""
MESSAGE: Table = {
    "role": role,
    "content": lambda value: value if isinstance(value, str) else text_of(value) or None,
    "refusal": text,
}
"""A message; its texts are still to be judged."""
FUNCTION: Table = {"name": identifier, "arguments": anything}
MESSAGE_CALLS: Table = {
    "tool_calls": each(
        object_of(
            {
                "index": number,
                "id": unspaced,
                "type": word("function", "custom"),
                "function": object_of(FUNCTION),
                "custom": object_of({"name": identifier, "input": anything}),
                "extra_content": tree(sealed),  # Gemini's signature of a thought
            }
        )
    ),
    "function_call": object_of(FUNCTION),
}

# --- responses ---------------------------------------------------------------------------

MESSAGE_ITEM: Table = {
    **fields(identifier, "id type"),
    "role": role,
    "status": status,
    "phase": word("commentary", "final_answer"),
}
"""A message of a response, without its content."""
REASONING_ITEM: Table = {
    **fields(identifier, "id type"),
    "status": status,
    "encrypted_content": sealed,
}
RESPONSE: Table = {
    **fields(identifier, "id object"),
    **fields(number, "created_at completed_at"),
    "status": status,
    "error": _failure,
    "incomplete_details": object_of({"reason": word("max_output_tokens", "content_filter")}),
    "background": truth,
    "conversation": object_of({"id": identifier}),
    "service_tier": service_tier,
    "usage": counts,
}
"""A response, without its output and what it echoes."""
ECHOES: Table = {
    **fields(nothing, "instructions metadata prompt prompt_cache_key safety_identifier user"),
    **fields(number, "max_output_tokens max_tool_calls temperature top_logprobs top_p"),
    **fields(identifier, "model previous_response_id"),
    **fields(truth, "parallel_tool_calls store"),
    "prompt_cache_retention": word("in_memory", "in-memory", "24h"),
    "reasoning": object_of(
        {
            "effort": word("none", "minimal", "low", "medium", "high", "xhigh"),
            "summary": word("auto", "concise", "detailed"),
        }
    ),
    "text": object_of({"format": object_of({"type": word("text")})}),
    "tool_choice": word("auto", "none", "required"),
    "tools": lambda value: [] if isinstance(value, list) else None,
    "truncation": word("auto", "disabled"),
}
"""What a response echoes of its request, and which defaults of the server may stand there."""
SECRETS = frozenset({"authorization", "headers"})
"""Fields of a request's tool that no response echoes."""


def of_response(body: JSON, request: JSON) -> JSON:
    """A response without its output: its own fields, and those of the request that it echoes."""
    found = fitting(body, RESPONSE)
    if "error" in found and found.get("status") != "failed":
        found["error"] = None
    echoed = {name: request[name] for name in ECHOES if name in body and name in request}
    if isinstance(echoed.get("tools"), list):
        echoed["tools"] = [
            {name: held for name, held in tool.items() if name not in SECRETS}
            for tool in echoed["tools"]
            if isinstance(tool, dict)
        ]
    return found | fitting(body, ECHOES) | echoed


# --- tools of responses ------------------------------------------------------------------

TOOL_ITEMS = ("_call", "_call_output", "mcp_list_tools", "mcp_approval_request", "compaction")
"""Endings of the types of tools' items."""
TOOL_EVENTS = (
    "response.function_call_arguments.",
    "response.custom_tool_call_input.",
    "response.mcp_",
    "response.web_search_call.",
    "response.file_search_call.",
    "response.code_interpreter_call",
    "response.image_generation_call.",
    "response.shell_call_",
    "response.compaction.",
)
"""Beginnings of the types of tools' events."""
NAMED_ITEMS = frozenset({"function_call", "custom_tool_call"})
"""Types of items that call a tool of the request by its name."""
NAMED_EVENTS = ("response.function_call_arguments.", "response.custom_tool_call_input.")
"""Beginnings of the types of their events."""
HANDED = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "tool_search_call": "arguments",
    "mcp_call": "arguments",
    "mcp_approval_request": "arguments",
    "web_search_call": "action",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
"""The field in which an item of each type passes something to its tool; prose may stand there."""
HANDED_KINDS: Table = {"queries": each(text), "code": text}
PIECES = {
    "response.function_call_arguments.": "arguments",
    "response.custom_tool_call_input.": "input",
    "response.mcp_call_arguments.": "arguments",
    "response.code_interpreter_call_code.": "code",
    "response.shell_call_command.": "command",
}
"""The same field of events, by the beginnings of their types."""
TOOL_ITEM: Table = {
    **fields(unspaced, "id call_id approval_request_id"),
    **fields(identifier, "type name server_label namespace"),
    "status": word(
        "in_progress", "completed", "incomplete", "failed", "searching", "interpreting",
        "generating", "calling",
    ),
    "encrypted_content": sealed,
    "max_output_length": number,
}  # fmt: skip
"""Fields of all tools' items."""
PICTURE: Table = {
    "background": word("transparent", "opaque", "auto"),
    "output_format": word("png", "webp", "jpeg"),
    "quality": word("low", "medium", "high", "auto"),
    "size": identifier,
}
TOOL_ITEM_FIELDS: Mapping[str, Table] = {
    "code_interpreter_call": {"container_id": identifier},
    "computer_call": {
        "pending_safety_checks": each(object_of({"id": unspaced, "code": identifier}))
    },
    "image_generation_call": {"result": sealed, **PICTURE},
    "mcp_list_tools": {
        "tools": each(object_of({"name": identifier, "input_schema": tree(scalar, depth=12)}))
    },
    "shell_call": {"environment": object_of(fields(identifier, "type container_id"))},
}
"""Further fields by type. Results of a server's own tools, a picture's prompt and explanations of
safety checks are prose, and not among them."""
TOOL_EVENT: Table = {
    **fields(identifier, "type name"),
    **fields(unspaced, "item_id call_id"),
    "output_index": number,
}
"""Fields of all tools' events."""
PICTURE_EVENT: Table = {
    "partial_image_b64": sealed,
    "partial_image_index": number,
    **PICTURE,
}


def is_tool_item(item: JSON) -> bool:
    """Whether an item of the output belongs to a tool."""
    return str(item.get("type")).endswith(TOOL_ITEMS)


def is_tool_event(kind: str) -> bool:
    """Whether events of a type belong to a tool."""
    return kind.startswith(TOOL_EVENTS)


def is_call(item: JSON) -> bool:
    """Whether an item passes something unjudged, to a tool or as a picture to the reader."""
    return item.get("type") in HANDED or item.get("type") == "image_generation_call"


def handed_over(item: JSON) -> JSON:
    """What an item passes to its tool: its arguments, code, commands or queries."""
    name = HANDED.get(str(item.get("type")))
    return {name: item[name]} if name in item else {}


def clean_tool_item(item: JSON) -> JSON:
    """A tool's item with only the fields of its type."""
    kind = str(item.get("type"))
    table = {**TOOL_ITEM, **TOOL_ITEM_FIELDS.get(kind, {})}
    if (name := HANDED.get(kind)) is not None:
        table[name] = HANDED_KINDS.get(name, anything)
    return fitting(item, table)


def clean_tool_event(data: JSON) -> JSON:
    """A tool's event with only the fields of its type."""
    kind, table = str(data.get("type")), dict(TOOL_EVENT)
    if kind.startswith("response.image_generation_call."):
        table |= PICTURE_EVENT
    for begin, name in PIECES.items():
        if kind.startswith(begin):
            table |= {"delta": text, name: text}
            if name == "command":
                table["command_index"] = number
    return fitting(data, table)
