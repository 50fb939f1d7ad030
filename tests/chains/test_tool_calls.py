"""Calls of tools that a request did not bring stay here, beside those that it did."""

import json

import pytest

from chains.openai_chat import ChatStream
from chains.openai_exchange import Endpoint
from chains.openai_request import GuardedRequest, GuardSettings
from chains.openai_response_stream import ResponseStream
from chains.openai_sse import Event
from guardrail import STRICT
from tests.chains.conftest import CANARY, QUESTION, scripted_guard
from tests.chains.test_unjudged_fields import judged

OF_CHAT = {"type": "function", "function": {"name": "order"}}
OF_RESPONSES = {"type": "function", "name": "order"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
RESPONSE = {"model": "m", "input": QUESTION}
BROUGHT = {
    "the one brought": ({}, "order", True),
    "another": ({}, "other", False),
    "a name that is none": ({}, ["order"], False),
    "without a name": ({}, None, False),
    "where none may be called": ({"tool_choice": "none"}, "order", False),
    "beside one of the server's": ({"tools": [{"type": "web_search"}]}, "other", True),
    "where the server keeps some": ({"prompt": {"id": "p"}}, "other", True),
}
rows = pytest.mark.parametrize(("more", "name", "leaves"), BROUGHT.values(), ids=list(BROUGHT))


@pytest.fixture(scope="module")
def guarding():
    with scripted_guard() as guard:
        yield GuardSettings(guard=guard, policy=STRICT)


def with_tools(asked, tool, more):
    return asked | more | {"tools": [tool, *more.get("tools", ())]}


def call(name, arguments=CANARY):
    return {"name": name, "arguments": arguments}


async def streamed(stream, *events):
    """What leaves of a stream, as one text."""
    out = [piece for event in events for piece in await stream.feed(event)]
    return "".join(event.data for event in [*out, *await stream.finish()])


@rows
@pytest.mark.parametrize("form", ["tool_calls", "function_call"])
async def test_of_chat_completions(guarding, more, name, leaves, form):
    asked = with_tools(CHAT, OF_CHAT, more)
    held = {"id": "1", "index": 0, "type": "function", "function": call(name)}
    message = {form: [held] if form == "tool_calls" else call(name)}
    choice = {"index": 0, "finish_reason": form}
    whole = await judged(
        guarding, Endpoint.CHAT, asked, {"id": "1", "choices": [choice | {"message": message}]}
    )
    chunk = {"id": "1", "choices": [choice | {"delta": message}]}
    stream = await streamed(ChatStream(GuardedRequest(guarding, asked)), Event.of(chunk))
    for told in (whole, stream):
        assert (CANARY in told) == leaves
        assert (f'"finish_reason": "{form}"' in told.replace('":"', '": "')) == leaves


@rows
async def test_of_responses(guarding, more, name, leaves):
    asked = with_tools(RESPONSE, OF_RESPONSES, more)
    item = {"type": "function_call", "call_id": "c", **call(name)}
    reply = {"id": "1", "object": "response", "status": "completed", "output": [item]}
    assert (CANARY in await judged(guarding, Endpoint.RESPONSES, asked, reply)) == leaves
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": CANARY},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": reply},
    ]
    for last in range(1, len(events) + 1):
        stream = ResponseStream(GuardedRequest(guarding, asked, responses=True))
        told = await streamed(stream, *(Event.of(event, event["type"]) for event in events[:last]))
        assert (CANARY in told) == leaves


@pytest.mark.parametrize(
    ("names", "leaves"),
    [
        (["order", None, None], True),
        (["order", "order", ""], True),
        (["or", "der", None], True),
        ([None, None, None], False),
        (["other", None, "order"], False),
        (["order", CANARY, None], False),
    ],
)
async def test_a_streams_call_has_the_name_that_it_had_first(guarding, names, leaves):
    stream = ChatStream(GuardedRequest(guarding, with_tools(CHAT, OF_CHAT, {})))
    pieces = [{"arguments": "{"}, {"arguments": "}"}, {"arguments": CANARY}]
    chunks = [
        {"id": "1", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": (
            piece | ({"name": name} if name is not None else {}))}]}}]}
        for piece, name in zip(pieces, names, strict=True)
    ]  # fmt: skip
    told = await streamed(stream, *map(Event.of, chunks))
    assert (CANARY in told) == leaves


async def test_calls_that_were_asked_for_stay_beside_others(guarding):
    asked = with_tools(CHAT, OF_CHAT, {})
    calls = [
        {"id": str(index), "type": "function", "function": call(name, name)}
        for index, name in enumerate(("order", CANARY, "order"))
    ]
    choice = {"index": 0, "finish_reason": "tool_calls", "message": {"tool_calls": calls}}
    told = await judged(guarding, Endpoint.CHAT, asked, {"id": "1", "choices": [choice]})
    message = json.loads(told)["choices"][0]["message"]
    assert [held["id"] for held in message["tool_calls"]] == ["0", "2"]
