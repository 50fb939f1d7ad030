"""Items and events of tools in responses, with the fields that the protocol gives them alone."""

from __future__ import annotations

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

__all__ = ["CALL_HEADS", "clean_tool_event", "clean_tool_item", "is_tool_event", "of_a_tool"]

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
    "tools": each(object_of({"name": identifier, "input_schema": tree(scalar, depth=12)})),
}  # fmt: skip
CALL_HEADS = frozenset(HEADS)
"""Fields of a tool's item that name it and hand nothing over."""

ITEM: Table = {
    **HEADS,
    "action": anything,
    "arguments": anything,
    "background": word("transparent", "opaque", "auto"),
    "code": text,
    "container_id": identifier,
    "environment": anything,
    "input": anything,
    "max_output_length": number,
    "operation": anything,
    "output_format": word("png", "webp", "jpeg"),
    "pending_safety_checks": anything,
    "quality": word("low", "medium", "high", "auto"),
    "queries": anything,
    "result": text,
    "revised_prompt": text,
    "size": identifier,
}
"""A tool's item; what its server's own tools told it (``output``, ``results``) is no part."""

EVENT: Table = {
    "type": identifier,
    "item_id": unspaced,
    "output_index": number,
    "call_id": unspaced,
    "name": identifier,
    "delta": text,
    "arguments": text,
    "input": text,
    "code": text,
    "command": text,
    "command_index": number,
    "partial_image_b64": sealed,
    "partial_image_index": number,
    "background": ITEM["background"],
    "output_format": ITEM["output_format"],
    "quality": ITEM["quality"],
    "size": identifier,
}


def of_a_tool(item: JSON) -> bool:
    """Whether an item of the output is a tool's business."""
    return str(item.get("type")).endswith(TOOL_ITEMS)


def is_tool_event(kind: str) -> bool:
    """Whether events of a type are a tool's business."""
    return kind.startswith(TOOL_EVENTS)


def clean_tool_item(item: JSON) -> JSON:
    """A tool's item with only what the protocol gives one."""
    return fitting(item, ITEM)


def clean_tool_event(data: JSON) -> JSON:
    """A tool's event with only what the protocol gives one."""
    return fitting(data, EVENT)
