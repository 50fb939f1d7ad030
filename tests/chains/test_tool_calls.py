"""Calls of tools that a request did not bring are dropped, and leave the others as they are."""

import pytest

from tests.chains.conftest import CANARY
from tests.chains.exchanges import (
    CHAT,
    RESPONSES,
    choice,
    chunk,
    completed,
    completion,
    guarded,
    judged,
    response,
    streamed,
    tools,
)

ORDER = tools("order")
CASES = {
    "the one brought": ({}, "order", True),
    "another": ({}, "other", False),
    "a name of another type": ({}, ["order"], False),
    "without a name": ({}, None, False),
    "where none may be called": ({"tool_choice": "none"}, "order", False),
    "with one of the server's": (
        {"tools": [*ORDER["tools"], {"type": "web_search"}]}, "other", True,
    ),
    "where the server keeps some": ({"prompt": {"id": "p"}}, "other", True),
}  # fmt: skip
rows = pytest.mark.parametrize(("more", "name", "leaves"), CASES.values(), ids=CASES)


def call(name, arguments=CANARY):
    return {"name": name, "arguments": arguments}


@rows
@pytest.mark.parametrize("form", ["tool_calls", "function_call"])
async def test_of_chat_completions(guard, more, name, leaves, form):
    held = {"id": "1", "index": 0, "type": "function", "function": call(name)}
    said = {form: [held] if form == "tool_calls" else call(name)}
    asked = ORDER | more
    whole = await judged(
        guard, CHAT, asked, completion() | {"choices": [choice(said, finish_reason=form)]}
    )
    for left in (whole, await streamed(guard, CHAT, asked, chunk(**said, ended=form))):
        assert (CANARY in left) == leaves
        assert (f'"finish_reason": "{form}"' in left) == leaves


@rows
async def test_of_responses(guard, more, name, leaves):
    asked = ORDER | more
    item = {"type": "function_call", "call_id": "c", **call(name)}
    assert (CANARY in await judged(guard, RESPONSES, asked, response(item))) == leaves
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": CANARY},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        completed(item),
    ]
    for last in range(1, len(events) + 1):
        left = await streamed(guard, RESPONSES, asked, *events[:last])
        assert (CANARY in left) == leaves


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
async def test_a_streamed_call_keeps_the_name_of_its_first_pieces(guard, names, leaves):
    chunks = [
        chunk(tool_calls=[{"index": 0, "function": {"arguments": text, "name": name}}])
        for text, name in zip(("{", "}", CANARY), names, strict=True)
    ]
    assert (CANARY in await streamed(guard, CHAT, ORDER, *chunks)) == leaves


@pytest.mark.parametrize("ended", [[], {}, 3, "tool_calls"])
@pytest.mark.parametrize("names", [("order", CANARY, "order"), (CANARY,)])
async def test_other_calls_leave_those_that_were_asked_for(guard, names, ended):
    """Without any left, the choice ends as that of any answer."""
    calls = [
        {"id": str(index), "type": "function", "function": call(name, name)}
        for index, name in enumerate(names)
    ]
    reply = {"choices": [choice({"tool_calls": calls}, finish_reason=ended)]}
    body, _ = await guarded(guard, CHAT, ORDER, reply)
    (found,) = body["choices"]
    left = [held["id"] for held in found["message"].get("tool_calls", ())]
    assert left == [str(index) for index, name in enumerate(names) if name == "order"]
    assert left or found["finish_reason"] in ("stop", None)
