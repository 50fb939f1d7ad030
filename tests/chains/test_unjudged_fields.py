"""No field that only a model's server fills carries text past the judge."""

import pytest

from tests.chains.conftest import CANARY
from tests.chains.exchanges import (
    CHAT,
    RESPONSES,
    TRUE,
    choice,
    chunk,
    completed,
    completion,
    guarded,
    judged,
    message,
    response,
    streamed,
    tools,
)

TEXT = f"{CANARY} was born on Mars"
TOOL = tools("save")
TOKEN = {"token": TRUE, "logprob": -0.1, "top_logprobs": [{"token": CANARY, "logprob": -0.2}]}
CHATS = {
    "alternatives to tokens": ({"content": TRUE}, {"logprobs": {"content": [TOKEN]}}),
    "bytes of tokens": ({"content": TRUE},
        {"logprobs": {"content": [TOKEN | {"bytes": list(CANARY.encode())}], "refusal": [TOKEN]}}),
    "tokens of another text": ({"content": TRUE},
        {"logprobs": {"content": [{"token": CANARY, "logprob": 0.0}]}}),
    "annotations without text": ({"content": "", "annotations": [{"text": CANARY}]}, {}),
    "a refusal with an answer": ({"content": TRUE, "refusal": f"Is it? {CANARY}"}, {}),
    "unknown fields": ({"content": TRUE, "reasoning": CANARY}, {"note": CANARY}),
}  # fmt: skip
SEARCH = {"type": "file_search_call", "id": "f", "results": [{"text": CANARY}]}
ITEMS = {
    "a server's tool": {"type": "mcp_call", "id": "t", "name": "look", "output": CANARY},
    "its failure": {"type": "mcp_call", "id": "t", "name": "look", "error": CANARY},
    "printed output": {"type": "code_interpreter_call", "outputs": [{"logs": CANARY}]},
    "a shell": {"type": "shell_call_output", "id": "s", "output": [{"stdout": CANARY}]},
    "a search": SEARCH,
    "reasoning": {"type": "reasoning", "id": "r", "summary": [{"text": CANARY}]},
    "tokens": message(TRUE)
    | {
        "content": [{"type": "output_text", "text": "", "logprobs": [TOKEN], "annotations": [TEXT]}]
    },
}


@pytest.mark.parametrize(("said", "fields"), CHATS.values(), ids=CHATS)
async def test_of_chat_completions(guard, said, fields):
    reply = completion(metadata={"note": CANARY}) | {"choices": [choice(said, **fields)]}
    left = await judged(guard, CHAT, {}, reply)
    assert CANARY not in left
    assert (TRUE[:-1] in left) == bool(said["content"])


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
async def test_of_responses(guard, item):
    reply = response(item, TRUE, incomplete_details={"reason": CANARY}, metadata={"note": CANARY})
    left = await judged(guard, RESPONSES, TOOL, reply)
    assert CANARY not in left
    assert TRUE[:-1] in left


# --- kinds of fields ---------------------------------------------------------------------

LONG = CANARY + "-" * 1_000
"""No white space, and longer than any name."""
PROSE = (TEXT, LONG, [TEXT], {TEXT: 1}, {"a": TEXT}, {"a": {"b": [TEXT, {"c": TEXT}]}}, [{TEXT: 1}])
HEADS = ("id", "object", "created", "model", "usage", "system_fingerprint", "service_tier",
         "prompt_filter_results")  # fmt: skip
ENDED = ("finish_reason", "content_filter_results", "index")
RESPONSE = (
    "id", "object", "created_at", "status", "error", "incomplete_details", "model", "background",
    "conversation", "service_tier", "usage", "instructions", "text", "reasoning", "tools",
    "prompt", "user", "truncation", "temperature", "metadata", "tool_choice", "top_p", "store",
    "previous_response_id", "prompt_cache_key", "safety_identifier", "parallel_tool_calls",
)  # fmt: skip


@pytest.mark.parametrize("value", PROSE, ids=range(len(PROSE)))
async def test_no_field_of_a_completion_holds_a_value_of_another_kind(guard, value):
    for name in (*HEADS, *ENDED, "role", "refusal", "function_call", "tool_calls"):
        field = {name: value}
        said = {"content": TRUE} | (field if name not in (*HEADS, *ENDED) else {})
        one = choice(said, **(field if name in ENDED else {}))
        head = field if name in HEADS else {}
        left = await judged(guard, CHAT, TOOL, {"id": "1", "choices": [one]} | head)
        delta = {"id": "1", "choices": [one | {"delta": one["message"]}]} | head
        left += await streamed(guard, CHAT, TOOL, delta)
        assert CANARY not in left, name
        assert left.count(TRUE[:-1]) >= 2, name


@pytest.mark.parametrize("value", PROSE, ids=range(len(PROSE)))
async def test_no_field_of_a_response_holds_a_value_of_another_kind(guard, value):
    replies = {name: response(TRUE, **{name: value}) for name in RESPONSE}
    for name in ("id", "role", "status", "phase"):
        replies[f"item {name}"] = response(message(TRUE) | {name: value})
    for name, reply in replies.items():
        left = await judged(guard, RESPONSES, TOOL, reply)
        added = {"type": "response.output_item.added", "item": reply["output"][0]}
        events = (
            {"type": f"response.{kind}", "response": reply} for kind in ("created", "completed")
        )
        left += await streamed(guard, RESPONSES, TOOL, added, *events)
        assert CANARY not in left, name
        assert left.count(TRUE[:-1]) >= 2, name


async def test_a_value_of_its_kind_stays(guard):
    severe = {"hate": {"filtered": False, "severity": "safe"}}
    head = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "m",
        "system_fingerprint": "fp_1", "service_tier": "default",
        "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
        "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": severe}],
    }  # fmt: skip
    call = {
        "id": "call_1" * 100, "type": "function", "function": {"name": "save", "arguments": TEXT},
        "extra_content": {"google": {"thought_signature": "c2lnbmVk" * 100}},
    }  # fmt: skip
    ended = {"finish_reason": "length", "content_filter_results": severe}
    reply = head | {"choices": [choice({"content": TRUE, "tool_calls": [call]}, **ended)]}
    left, _ = await guarded(guard, CHAT, TOOL, reply)
    assert head.items() <= left.items()
    assert ended.items() <= left["choices"][0].items()
    assert left["choices"][0]["message"]["tool_calls"] == [call]


async def test_a_response_echoes_what_was_sent_without_keys_of_tools(guard):
    tool = {"type": "mcp", "server_label": "s", "authorization": "key", "headers": {"k": "key"}}
    sent = {"temperature": 0.5, "user": "a b", "metadata": {"k": "a b"}, "reasoning": {"a": "b"}}
    fields = dict.fromkeys((*sent, "tools", "truncation"), TEXT) | {"top_p": 1.0}
    left, _ = await guarded(guard, RESPONSES, sent | {"tools": [tool]}, response(TRUE, **fields))
    assert sent.items() <= left.items()
    assert left["tools"] == [{"type": "mcp", "server_label": "s"}]
    assert left["top_p"] == 1.0
    assert "truncation" not in left


# --- tools -------------------------------------------------------------------------------

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
    "image_generation_call": None,
    "mcp_list_tools": None,
    "compaction": None,
    "shell_call_output": None,
    "another_call": None,
}
"""Types of items, and the field in which each hands something to its tool."""
PIECES = {
    "function_call_arguments.delta": ("delta", "arguments"),
    "custom_tool_call_input.done": ("delta", "input"),
    "mcp_call_arguments.delta": ("delta", "arguments"),
    "mcp_call.completed": (),
    "mcp_list_tools.failed": (),
    "web_search_call.searching": (),
    "file_search_call.searching": (),
    "code_interpreter_call_code.delta": ("delta", "code"),
    "code_interpreter_call.completed": (),
    "image_generation_call.partial_image": (),
    "shell_call_command.delta": ("delta", "command"),
    "shell_call_output_content.delta": (),
    "compaction.done": (),
}
FIELDS = (
    "action", "approval_request_id", "arguments", "background", "call_id", "code", "code_word",
    "command", "container_id", "content", "delta", "encrypted_content", "environment", "id",
    "input", "item", "item_id", "name", "namespace", "note", "obfuscation", "operation", "output",
    "output_format", "partial_image_b64", "pending_safety_checks", "quality", "queries",
    "response", "result", "results", "revised_prompt", "server_label", "size", "status", "text",
    "tools",
)  # fmt: skip
"""Of the items and events of all tools, and of none."""


@pytest.mark.parametrize("asked", [{}, TOOL], ids=["without tools", "with tools"])
@pytest.mark.parametrize("kind", HANDED)
async def test_a_tools_item_has_the_fields_of_one(guard, kind, asked):
    """No field holds text but what the item hands to its tool, if the request has tools."""
    named = {"name": "save"} if kind in ("function_call", "custom_tool_call") else {}
    for value in (TEXT, [TEXT], {"a": TEXT}, [{"message": TEXT, "a": [TEXT]}]):
        fields = {name: value for name in FIELDS if not asked or name != HANDED[kind]}
        item = {"type": kind} | fields | named
        done = {"type": "response.output_item.done", "output_index": 0, "item": item}
        left = await judged(guard, RESPONSES, asked, response(item, TRUE))
        left += await streamed(guard, RESPONSES, asked, done, completed(item, TRUE))
        assert CANARY not in left
        assert (kind in left) == bool(asked)


@pytest.mark.parametrize("kind", PIECES)
async def test_a_tools_event_has_the_fields_of_one(guard, kind):
    for value in (TEXT, [TEXT], {"a": TEXT}):
        fields = {name: value for name in FIELDS if name not in PIECES[kind]}
        event = {"type": f"response.{kind}", "output_index": 0} | fields
        left = await streamed(guard, RESPONSES, TOOL, event)
        assert CANARY not in left
        assert kind in left


async def test_types_hold_no_text(guard):
    kinds = (f"response.mcp_{TEXT}", f"response.output_item.{CANARY}")
    events = [{"type": kind, "output_index": 0, "item": message(TRUE)} for kind in kinds]
    assert CANARY not in await streamed(guard, RESPONSES, TOOL, *events)
    assert CANARY not in await judged(guard, RESPONSES, TOOL, response({"type": f"{TEXT}_call"}))
    for calls in (TEXT, [TEXT], {"a": TEXT}, [[TEXT]], [None], 3, [{}]):
        delta = chunk(tool_calls=calls, function_call=calls)
        assert CANARY not in await streamed(guard, CHAT, TOOL, delta)


async def test_what_a_tools_item_hands_over_stays(guard):
    items = [
        {"type": kind, "id": "i", name: [TEXT] if name == "queries" else TEXT, "name": "save"}
        for kind, name in HANDED.items()
        if name is not None
    ]
    items.append({"type": "image_generation_call", "id": "i", "result": "iVBORw0KGgo=" * 200})
    left, _ = await guarded(guard, RESPONSES, TOOL, response(*items))
    assert left["output"] == items


async def test_a_search_in_a_reply_is_no_evidence(guard):
    found = "Mary Wollstonecraft kept a red parrot."
    request = {"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}
    search = SEARCH | {"results": [{"text": found, "score": 0.9}]}
    done = {"type": "response.output_item.done", "output_index": 0, "item": search}
    assert "red parrot" not in await judged(guard, RESPONSES, request, response(search, found))
    left = await streamed(guard, RESPONSES, request, done, completed(search, found))
    assert "red parrot" not in left
