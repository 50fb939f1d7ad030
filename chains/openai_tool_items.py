"""Items and events of tools in responses, with the fields that the protocol gives them alone."""

from __future__ import annotations

from collections.abc import Mapping

from chains.openai_codes import (
    Table,
    anything,
    each,
    fitting,
    identifier,
    number,
    object_of,
    scalar,
    sealed,
    text,
    tree,
    unspaced,
    word,
)
from chains.openai_wire import JSON

__all__ = [
    "EVENT",
    "clean_tool_event",
    "clean_tool_item",
    "handed_over",
    "is_call",
    "is_tool_event",
    "of_a_tool",
]

TOOL_ITEMS = (
    "_call",
    "_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "compaction",
)
"""Endings of the types of items that are a tool's business, not an answer."""

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
"""Beginnings of the types of events that are a tool's business."""

HEADS: Table = {
    "id": unspaced,
    "call_id": unspaced,
    "type": identifier,
    "status": word(
        "in_progress", "completed", "incomplete", "failed", "searching", "interpreting",
        "generating", "calling",
    ),
    "name": identifier,
    "server_label": identifier,
    "namespace": identifier,
    "encrypted_content": sealed,
    "approval_request_id": unspaced,
    "max_output_length": number,
}  # fmt: skip
"""What names a tool's item and hands nothing over."""

HANDED: Mapping[str, Table] = {
    "function_call": {"arguments": anything},
    "custom_tool_call": {"input": anything},
    "tool_search_call": {"arguments": anything},
    "mcp_call": {"arguments": anything},
    "mcp_approval_request": {"arguments": anything},
    "web_search_call": {"action": anything},
    "file_search_call": {"queries": each(text)},
    "code_interpreter_call": {"code": text},
    "computer_call": {"action": anything},
    "local_shell_call": {"action": anything},
    "shell_call": {"action": anything},
    "apply_patch_call": {"operation": anything},
}
"""What an item of each type hands to its tool, in the field of that type alone: prose may stand
there, as in the arguments of any call."""

PICTURE: Table = {
    "background": word("transparent", "opaque", "auto"),
    "output_format": word("png", "webp", "jpeg"),
    "quality": word("low", "medium", "high", "auto"),
    "size": identifier,
}
BESIDE: Mapping[str, Table] = {
    "code_interpreter_call": {"container_id": identifier},
    "computer_call": {
        "pending_safety_checks": each(object_of({"id": unspaced, "code": identifier}))
    },
    "image_generation_call": {"result": sealed, **PICTURE},
    "mcp_list_tools": {
        "tools": each(object_of({"name": identifier, "input_schema": tree(scalar, depth=12)}))
    },
    "shell_call": {
        "environment": object_of({"type": identifier, "container_id": identifier})
    },
}  # fmt: skip
"""Fields of single types of items that can hold no prose. What a server's own tools told it
(``output``, ``results``), the prompt that it made for a picture and what it says of a safety check
are no part of any."""

PIECES: Mapping[str, Table] = {
    "response.function_call_arguments.": {"delta": text, "arguments": text},
    "response.custom_tool_call_input.": {"delta": text, "input": text},
    "response.mcp_call_arguments.": {"delta": text, "arguments": text},
    "response.code_interpreter_call_code.": {"delta": text, "code": text},
    "response.shell_call_command.": {"delta": text, "command": text, "command_index": number},
    "response.image_generation_call.": {
        "partial_image_b64": sealed, "partial_image_index": number, **PICTURE,
    },
}  # fmt: skip
"""What events of single kinds hand over, by the beginnings of their types."""

EVENT: Table = {
    "type": identifier,
    "item_id": unspaced,
    "output_index": number,
    "call_id": unspaced,
    "name": identifier,
}


def of_a_tool(item: JSON) -> bool:
    """Whether an item of the output is a tool's business."""
    return str(item.get("type")).endswith(TOOL_ITEMS)


def is_call(item: JSON) -> bool:
    """Whether an item hands something over unjudged: to a tool, or a picture to the reader."""
    return item.get("type") in HANDED or item.get("type") == "image_generation_call"


def is_tool_event(kind: str) -> bool:
    """Whether events of a type are a tool's business."""
    return kind.startswith(TOOL_EVENTS)


def clean_tool_item(item: JSON) -> JSON:
    """A tool's item with only what the protocol gives one of its type."""
    kind = str(item.get("type"))
    return fitting(item, {**HEADS, **HANDED.get(kind, {}), **BESIDE.get(kind, {})})


def handed_over(item: JSON) -> JSON:
    """What an item hands to its tool: its arguments, code, commands or queries."""
    handed = HANDED.get(str(item.get("type")), {})
    return {name: item[name] for name in handed if name in item}


def clean_tool_event(data: JSON) -> JSON:
    """A tool's event with only what the protocol gives one of its type."""
    kind = str(data.get("type"))
    pieces = (table for begin, table in PIECES.items() if kind.startswith(begin))
    return fitting(data, {**EVENT, **next(pieces, {})})
