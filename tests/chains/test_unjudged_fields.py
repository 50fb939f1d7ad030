"""No field that only a model's server fills carries text past the judge."""

import json
from dataclasses import replace

import pytest

from chains.caller import wants_json
from chains.evidence.base import EvidenceSettings
from chains.openai_chat import ChatStream
from chains.openai_exchange import Endpoint, Exchange, Reply
from chains.openai_fields import NAMED_ITEMS
from chains.openai_request import GuardedRequest, GuardSettings
from chains.openai_response_stream import ResponseStream
from chains.openai_sse import Event
from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import CANARY, QUESTION, scripted_guard

TRUE = "Mary Shelley was a writer."
CHATS = {
    "alternatives to tokens": {
        "logprobs": {
            "content": [
                {
                    "token": TRUE,
                    "logprob": -0.1,
                    "bytes": list(CANARY.encode()),
                    "top_logprobs": [{"token": CANARY, "logprob": -0.2}],
                }
            ],
            "refusal": [{"token": CANARY, "logprob": 0.0}],
        },
        "message": {"role": "assistant", "content": TRUE},
    },
    "tokens of another text": {
        "logprobs": {"content": [{"token": CANARY, "logprob": 0.0}]},
        "message": {"role": "assistant", "content": TRUE},
    },
    "annotations beside nothing": {
        "message": {"role": "assistant", "content": "", "annotations": [{"text": CANARY}]},
    },
    "a refusal beside an answer": {
        "message": {"role": "assistant", "content": TRUE, "refusal": f"Is it? {CANARY}"},
    },
    "fields of no protocol": {
        "message": {"role": "assistant", "content": TRUE, "reasoning": CANARY},
        "note": CANARY,
    },
}
MESSAGE = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "content": [
        {
            "type": "output_text",
            "text": TRUE,
            "annotations": [{"title": CANARY}],
            "logprobs": [{"token": TRUE, "logprob": 0.0, "top_logprobs": [{"token": CANARY}]}],
        }
    ],
}
ITEMS = {
    "a tool of a server": {"type": "mcp_call", "id": "t", "name": "look", "output": CANARY},
    "a failed one": {"type": "mcp_call", "id": "t", "name": "look", "error": CANARY},
    "code that printed": {
        "type": "code_interpreter_call",
        "id": "c",
        "outputs": [{"type": "logs", "logs": CANARY}],
    },
    "a shell": {"type": "shell_call_output", "id": "s", "output": [{"stdout": CANARY}]},
    "a search": {"type": "file_search_call", "id": "f", "results": [{"text": CANARY}]},
    "reasoning": {"type": "reasoning", "id": "r", "summary": [{"text": CANARY}]},
}


@pytest.fixture(scope="module")
def guarding():
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        yield GuardSettings(guard=guard, policy=STRICT)


TEXT = f"{CANARY} was born on Mars"
CALL = {"id": TEXT, "type": "function", "function": {"name": TEXT, "arguments": "{}"}}
TOOL = {"type": "function", "name": "save", "function": {"name": "save"}}


async def judged(guarding, endpoint, asked, reply):
    exchange = Exchange(guarding, endpoint, asked)
    return (await exchange.judge(Reply(200, (), json.dumps(reply).encode()))).reply.body.decode()


@pytest.mark.parametrize("choice", CHATS.values(), ids=CHATS)
async def test_of_chat_completions(guarding, choice):
    asked = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    reply = {
        "id": "1",
        "object": "chat.completion",
        "metadata": {"note": CANARY},
        "choices": [{"index": 0, "finish_reason": "stop", **choice}],
    }
    told = await judged(guarding, Endpoint.CHAT, asked, reply)
    assert CANARY not in told
    assert (TRUE in told) == bool(choice["message"]["content"])


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
async def test_of_responses(guarding, item):
    asked = {"model": "m", "input": QUESTION, "tools": [TOOL]}
    reply = {
        "id": "1",
        "object": "response",
        "status": "incomplete",
        "incomplete_details": {"reason": CANARY},
        "metadata": {"note": CANARY},
        "output": [item, MESSAGE],
    }
    told = await judged(guarding, Endpoint.RESPONSES, asked, reply)
    assert CANARY not in told
    assert TRUE in told


@pytest.mark.parametrize("ended", [[], {}, 3, "tool_calls"])
async def test_a_call_that_was_not_asked_for_ends_as_any_answer(guarding, ended):
    asked = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    choice = {
        "index": 0,
        "finish_reason": ended,
        "message": {"content": None, "tool_calls": [CALL]},
    }
    told = await judged(guarding, Endpoint.CHAT, asked, {"id": "1", "choices": [choice]})
    assert CANARY not in told
    assert "tool_calls" not in told


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
ITEM_FIELDS = ("id", "role", "status", "phase")
CHAT_ASKED = {"model": "m", "messages": [{"role": "user", "content": QUESTION}], "tools": [TOOL]}
RESPONSE_ASKED = {"model": "m", "input": QUESTION, "tools": [TOOL]}


async def streamed(guarding, asked, *events, responses=False):
    """What leaves of a stream, as one text."""
    kind = ResponseStream if responses else ChatStream
    stream = kind(GuardedRequest(guarding, asked, responses=responses))
    told = [item for event in events for item in await stream.feed(Event.of(event))]
    return " ".join(str(event) for event in [*told, *await stream.finish()])


@pytest.mark.parametrize("value", PROSE, ids=range(len(PROSE)))
async def test_no_field_of_a_completion_holds_what_is_not_of_its_kind(guarding, value):
    for name in (*HEADS, *ENDED, "role", "refusal", "function_call", "tool_calls"):
        message = {"role": "assistant", "content": TRUE}
        choice = {"index": 0, "finish_reason": "stop"}
        place = {} if name in HEADS else choice if name in ENDED else message
        place[name] = value
        reply = {"id": "1", "choices": [choice | {"message": message}]}
        chunk = {"id": "1", "choices": [choice | {"delta": message}]}
        if name in HEADS:
            reply, chunk = reply | place, chunk | place
        told = await judged(guarding, Endpoint.CHAT, CHAT_ASKED, reply)
        told += await streamed(guarding, CHAT_ASKED, chunk)
        assert CANARY not in told, name
        assert told.count(TRUE) == 2, name


@pytest.mark.parametrize("value", PROSE, ids=range(len(PROSE)))
async def test_no_field_of_a_response_holds_what_is_not_of_its_kind(guarding, value):
    for name in (*RESPONSE, *(f"item {field}" for field in ITEM_FIELDS)):
        reply = {"id": "r", "object": "response", "status": "completed", "output": [MESSAGE]}
        if name.startswith("item "):
            reply["output"] = [MESSAGE | {name.removeprefix("item "): value}]
        else:
            reply[name] = value
        told = await judged(guarding, Endpoint.RESPONSES, RESPONSE_ASKED, reply)
        told += await streamed(
            guarding,
            RESPONSE_ASKED,
            {"type": "response.created", "response": reply},
            {"type": "response.output_item.added", "output_index": 0, "item": reply["output"][0]},
            {"type": "response.completed", "response": reply},
            responses=True,
        )
        assert CANARY not in told, name
        assert told.count(TRUE) == 2, name


async def test_what_is_of_its_kind_stays(guarding):
    severe = {"hate": {"filtered": False, "severity": "safe"}}
    head = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "m",
        "system_fingerprint": "fp_1", "service_tier": "default",
        "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
        "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": severe}],
    }  # fmt: skip
    choice = {"index": 0, "finish_reason": "length", "content_filter_results": severe}
    signed = {"google": {"thought_signature": "c2lnbmVk" * 100}}
    call = {
        "id": "call_1" * 100, "type": "function", "extra_content": signed,
        "function": {"name": "save", "arguments": TEXT},
    }  # fmt: skip
    message = {"role": "assistant", "content": TRUE, "tool_calls": [call]}
    reply = head | {"choices": [choice | {"message": message}]}
    told = json.loads(await judged(guarding, Endpoint.CHAT, CHAT_ASKED, reply))
    assert head.items() <= told.items()
    assert choice.items() <= told["choices"][0].items()
    assert told["choices"][0]["message"]["tool_calls"] == [call]


async def test_a_response_echoes_what_was_sent_without_keys_of_tools(guarding):
    tool = {"type": "mcp", "server_label": "s", "authorization": "key", "headers": {"k": "key"}}
    said = {"temperature": 0.5, "user": "a b", "metadata": {"k": "a b"}, "reasoning": {"a": "b"}}
    asked = RESPONSE_ASKED | said | {"tools": [tool]}
    reply = dict.fromkeys((*said, "tools", "top_p", "truncation"), TEXT) | {"top_p": 1.0}
    told = json.loads(
        await judged(guarding, Endpoint.RESPONSES, asked, reply | {"output": [MESSAGE]})
    )
    assert said.items() <= told.items()
    assert told["tools"] == [{"type": "mcp", "server_label": "s"}]
    assert told["top_p"] == 1.0
    assert "truncation" not in told


# --- tools -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call", "call_id": "c", "name": "save", "arguments": "{}"},
        {"type": "web_search_call", "id": "w", "status": "completed"},
        {"type": f"{TEXT}_call", "id": "w"},
    ],
)
async def test_a_tools_item_has_the_fields_of_one(guarding, item):
    foreign = {"text": TEXT, "response": {"output": [TEXT]}, "content": [TEXT], "status": TEXT}
    reply = {"id": "r", "output": [item | foreign, MESSAGE]}
    told = await judged(guarding, Endpoint.RESPONSES, RESPONSE_ASKED, reply)
    told += await streamed(
        guarding,
        RESPONSE_ASKED,
        {"type": "response.output_item.added", "output_index": 0, "item": item | foreign},
        responses=True,
    )
    assert CANARY not in told
    assert ("save" in told) == ("name" in item)


@pytest.mark.parametrize(
    "kind", ["response.function_call_arguments.delta", "response.mcp_call.failed", "response.mcp_"]
)
async def test_a_tools_event_has_the_fields_of_one(guarding, kind):
    event = {"type": kind, "item_id": "f", "output_index": 0, "delta": '{"a":', "note": TEXT}
    event |= {"text": TEXT, "response": {"output": [MESSAGE]}, "item": {"text": TEXT}, "name": TEXT}
    event |= {"code_word": LONG, "obfuscation": LONG}
    told = await streamed(guarding, RESPONSE_ASKED, event, responses=True)
    assert CANARY not in told
    assert TRUE not in told
    assert kind in told


async def test_types_of_events_hold_no_text(guarding):
    for kind in (f"response.mcp_{TEXT}", f"response.output_item.{CANARY}"):
        event = {"type": kind, "output_index": 0, "item": MESSAGE}
        assert CANARY not in await streamed(guarding, RESPONSE_ASKED, event, responses=True)


HANDED = {
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "tool_search_call": ("arguments",),
    "mcp_call": ("arguments",),
    "mcp_approval_request": ("arguments",),
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "computer_call": ("action",),
    "local_shell_call": ("action",),
    "shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "image_generation_call": (),
    "mcp_list_tools": (),
    "compaction": (),
    "shell_call_output": (),
    "another_call": (),
}
"""Types of items, and the fields in which each hands something to its tool."""
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
    "action", "approval_request_id", "arguments", "background", "call_id", "code", "command",
    "container_id", "delta", "encrypted_content", "environment", "id", "input", "item_id", "name",
    "namespace", "operation", "output", "output_format", "partial_image_b64",
    "pending_safety_checks", "quality", "queries", "result", "results", "revised_prompt",
    "server_label", "size", "status", "text", "tools",
)  # fmt: skip
"""Of the items and events of all tools."""


@pytest.mark.parametrize("tools", [[], [TOOL]])
@pytest.mark.parametrize("kind", HANDED)
async def test_no_field_of_a_tools_item_but_what_it_hands_over_holds_text(guarding, kind, tools):
    asked = {"model": "m", "input": QUESTION, "tools": tools}
    prose = (TEXT, [TEXT], {"a": TEXT}, [{"message": TEXT, "a": [TEXT]}])
    fields = [name for name in FIELDS if not tools or name not in HANDED[kind]]
    for value in prose:
        item = {"type": kind} | dict.fromkeys(fields, value)
        item |= {"name": "save"} if kind in NAMED_ITEMS else {}
        reply = {"id": "r", "status": "completed", "output": [item, MESSAGE]}
        told = await judged(guarding, Endpoint.RESPONSES, asked, reply)
        told += await streamed(
            guarding,
            asked,
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": reply},
            responses=True,
        )
        assert CANARY not in told
        assert (kind in told) == bool(tools)


@pytest.mark.parametrize("kind", PIECES)
async def test_no_field_of_a_tools_event_but_what_it_hands_over_holds_text(guarding, kind):
    fields = [name for name in FIELDS if name not in PIECES[kind]]
    for value in (TEXT, [TEXT], {"a": TEXT}):
        event = {"type": f"response.{kind}", "output_index": 0} | dict.fromkeys(fields, value)
        told = await streamed(guarding, RESPONSE_ASKED, event, responses=True)
        assert CANARY not in told
        assert kind in told


async def test_what_a_tools_item_hands_over_stays(guarding):
    for kind, fields in HANDED.items():
        for name in fields:
            item = {"type": kind, "id": "i", name: [TEXT] if name == "queries" else TEXT}
            item |= {"name": "save"} if kind in NAMED_ITEMS else {}
            reply = {"id": "r", "output": [item]}
            told = await judged(guarding, Endpoint.RESPONSES, RESPONSE_ASKED, reply)
            assert json.loads(told)["output"] == [item]
    picture = {"type": "image_generation_call", "id": "i", "result": "iVBORw0KGgo=" * 200}
    reply = {"id": "r", "output": [picture | {"revised_prompt": TEXT}]}
    told = await judged(guarding, Endpoint.RESPONSES, RESPONSE_ASKED, reply)
    assert json.loads(told)["output"] == [picture]


@pytest.mark.parametrize("calls", [TEXT, [TEXT], {"a": TEXT}, [[TEXT]], [None], 3, [{}]])
async def test_what_is_no_call_of_a_tool_is_none(guarding, calls):
    for policy in (STRICT, STRICT.changed(structured=True)):
        message = {"role": "assistant", "content": TRUE, "tool_calls": calls}
        message["function_call"] = calls
        reply = {"id": "1", "choices": [{"index": 0, "message": message}]}
        asked = replace(guarding, policy=policy)
        told = await judged(asked, Endpoint.CHAT, CHAT_ASKED, reply)
        told += await streamed(guarding, CHAT_ASKED, {"choices": [{"index": 0, "delta": message}]})
        assert CANARY not in told
        assert told.count(TRUE) == 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("tools", [None, [{"type": "file_search", "vector_store_ids": ["v"]}]])
@pytest.mark.parametrize("counts", [False, True])
async def test_a_search_in_a_reply_is_its_evidence_where_a_setting_says_so(
    guarding, tools, counts, stream
):
    found = "Mary Wollstonecraft kept a red parrot."
    asked = {"model": "m", "input": QUESTION} | ({"tools": tools} if tools else {})
    search = {"type": "file_search_call", "id": "f", "results": [{"text": found, "score": 0.9}]}
    message = {**MESSAGE, "content": [{"type": "output_text", "text": found, "annotations": []}]}
    guarding = replace(guarding, evidence=EvidenceSettings(reply_searches=counts))
    reply = {"id": "1", "output": [search, message]}
    if stream:
        done = {"type": "response.output_item.done", "output_index": 0, "item": search}
        end = {"type": "response.completed", "response": reply}
        told = await streamed(guarding, asked, done, end, responses=True)
    else:
        told = await judged(guarding, Endpoint.RESPONSES, asked, reply)
    assert ("red parrot" in told) == (counts and bool(tools))


@pytest.mark.parametrize("index", [[], "x", None, -1, 1.5, {}])
async def test_places_of_another_type_are_no_fault(guarding, index):
    asked = GuardedRequest(guarding, {"model": "m", "input": QUESTION}, responses=True)
    stream = ResponseStream(asked)
    data = {"type": "response.output_text.delta", "output_index": index, "delta": TRUE}
    await stream.feed(Event.of(data, "response.output_text.delta"))


@pytest.mark.parametrize("kind", [[], {}, None, 3])
def test_a_format_of_another_type_asks_for_no_json(kind):
    assert not wants_json({"response_format": {"type": kind}})
    assert not wants_json({"text": {"format": {"type": kind}}})
