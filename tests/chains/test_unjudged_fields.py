"""No field that only a model's server fills carries text past the judge."""

import json

import pytest

from chains.caller import wants_json
from chains.openai_asked import Asked
from chains.openai_chat import ChatStream
from chains.openai_exchange import Endpoint, Exchange, Reply
from chains.openai_response_stream import ResponseStream
from chains.openai_sse import Event
from chains.openai_text import Guarding
from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import CANARY, QUESTION, scripted_guard

TRUE = "Mary Wollstonecraft was a writer."
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
        yield Guarding(guard=guard, policy=STRICT)


NO_TEXTS = ("id", "object", "model", "system_fingerprint", "service_tier")
"""Fields of a chat completion that hold a code."""
REPEATED = ("model", "instructions", "tools", "tool_choice", "prompt", "text", "user")
"""Fields in which a response repeats its request."""
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


def chat(**more):
    message = {"role": TEXT, "content": TRUE}
    choice = {"index": 0, "finish_reason": TEXT, "content_filter_results": {TEXT: TEXT}}
    choice |= {"message": message} | more
    codes = dict.fromkeys(NO_TEXTS, TEXT)
    return codes | {"usage": {"prompt_tokens": 3, "told": [TEXT]}, "choices": [choice]}


@pytest.mark.parametrize("tools", [{}, {"tools": [TOOL]}])
async def test_fields_of_codes_hold_no_text(guarding, tools):
    asked = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]} | tools
    called = {"role": "assistant", "content": TRUE, "tool_calls": [CALL]}
    for reply in (chat(), chat(message=called)):
        told = await judged(guarding, Endpoint.CHAT, asked, reply)
        assert CANARY not in told
        assert TRUE in told
        assert json.loads(told)["usage"]["prompt_tokens"] == 3
        assert json.loads(told)["model"] == "m"


async def test_fields_of_codes_of_a_stream_hold_no_text(guarding):
    asked = {"model": "m", "messages": [{"role": "user", "content": QUESTION}], "tools": [TOOL]}
    stream = ChatStream(Asked(guarding, asked))
    whole = chat()
    delta = {"role": TEXT, "content": TRUE, "tool_calls": [CALL]}
    (choice,) = whole["choices"]
    chunk = whole | {"choices": [choice | {"delta": delta}]}
    told = "".join(str(event) for event in [*await stream.feed(Event.of(chunk))])
    assert CANARY not in told
    assert TRUE in told


async def test_what_a_response_repeats_is_what_was_asked(guarding):
    asked = {"model": "m", "input": QUESTION, "instructions": "Be brief, please.", "tools": [TOOL]}
    item = {"type": "mcp_list_tools", "id": "t", "tools": [{"name": "a", "description": TEXT}]}
    reply = {"id": TEXT, "object": "response", "usage": {"told": TEXT}, "status": "completed"}
    reply |= dict.fromkeys(REPEATED, TEXT) | {"error": {"message": TEXT}}
    told = await judged(guarding, Endpoint.RESPONSES, asked, reply | {"output": [item, MESSAGE]})
    assert CANARY not in told
    body = json.loads(told)
    assert (body["instructions"], body["tools"]) == (asked["instructions"], [TOOL])
    assert TRUE in told


async def test_calls_of_tools_that_were_not_asked_for_stay_here(guarding):
    item = {"type": "function_call", "call_id": "c", "name": "save", "arguments": TEXT}
    asked = {"model": "m", "input": QUESTION}
    reply = {"id": "1", "object": "response", "status": "completed", "output": [item, MESSAGE]}
    assert CANARY not in await judged(guarding, Endpoint.RESPONSES, asked, reply)
    stream = ResponseStream(Asked(guarding, asked, responses=True))
    delta = {"type": "response.function_call_arguments.delta", "delta": TEXT}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    for event in (delta, added):
        assert await stream.feed(Event.of(event, event["type"])) == []


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


@pytest.mark.parametrize("tools", [None, [{"type": "file_search", "vector_store_ids": ["v"]}]])
async def test_a_search_is_evidence_only_where_it_was_asked_for(guarding, tools):
    found = "Mary Wollstonecraft kept a red parrot."
    asked = {"model": "m", "input": QUESTION} | ({"tools": tools} if tools else {})
    search = {"type": "file_search_call", "id": "f", "results": [{"text": found, "score": 0.9}]}
    message = {**MESSAGE, "content": [{"type": "output_text", "text": found, "annotations": []}]}
    told = await judged(
        guarding, Endpoint.RESPONSES, asked, {"id": "1", "output": [search, message]}
    )
    answer = json.loads(told)["output"][-1]
    assert ("red parrot" in answer["content"][0]["text"]) == bool(tools)


@pytest.mark.parametrize("index", [[], "x", None, -1, 1.5, {}])
async def test_places_of_another_type_are_no_fault(guarding, index):
    asked = Asked(guarding, {"model": "m", "input": QUESTION}, responses=True)
    stream = ResponseStream(asked)
    data = {"type": "response.output_text.delta", "output_index": index, "delta": TRUE}
    await stream.feed(Event.of(data, "response.output_text.delta"))


@pytest.mark.parametrize("kind", [[], {}, None, 3])
def test_a_format_of_another_type_asks_for_no_json(kind):
    assert not wants_json({"response_format": {"type": kind}})
    assert not wants_json({"text": {"format": {"type": kind}}})
