"""Events of a hostile server: text beside an error stays here, values of odd kinds are no fault."""

import json

import pytest

from chains.openai_chat import MAX_CHOICES
from chains.openai_exchange import Endpoint, Exchange, Reply
from chains.openai_request import GuardSettings
from chains.openai_responses import MAX_PARTS
from chains.openai_wire import UnreadableReplyError
from guardrail import STRICT
from tests.chains.conftest import QUESTION

HIDDEN = "zephyrcanary"
ASKED = {
    Endpoint.CHAT: {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": QUESTION}],
    },
    Endpoint.RESPONSES: {"model": "m", "stream": True, "input": QUESTION},
}


async def left(guard, endpoint, *events):
    """What leaves of a stream."""
    stream = Exchange(GuardSettings(guard=guard, policy=STRICT), endpoint, ASKED[endpoint]).stream()
    out = b""
    for event in events:
        out += await stream.feed(f"data: {json.dumps(event)}\n\n".encode())
    return (out + await stream.finish()).decode()


@pytest.mark.parametrize("endpoint", Endpoint)
async def test_what_stands_beside_an_error_stays_here(guard, endpoint):
    hidden = {"type": "response.output_text.delta", "delta": HIDDEN, "output": HIDDEN}
    shown = await left(guard, endpoint, hidden | {"error": {"message": "busy"}})
    assert "busy" in shown
    assert HIDDEN not in shown


ERRORS = {
    Endpoint.CHAT: [{"error": {"message": "busy"}}],
    Endpoint.RESPONSES: [
        {"error": {"message": "busy"}},
        {"type": "error", "message": "busy"},
        {"type": "response.failed", "response": {"status": "failed", "error": {"message": "busy"}}},
    ],
}


@pytest.mark.parametrize(
    ("endpoint", "error"),
    [(endpoint, error) for endpoint in Endpoint for error in ERRORS[endpoint]],
)
async def test_a_stream_ends_with_its_first_error(guard, endpoint, error):
    behind = [{"error": {"message": HIDDEN}}, {"type": "error", "message": HIDDEN}]
    failed = {"status": "failed", "error": {"message": HIDDEN}}
    behind += [{"type": f"response.{kind}", "response": failed} for kind in ("failed", "created")]
    shown = await left(guard, endpoint, error, *behind)
    assert shown.count("busy") == 1
    assert HIDDEN not in shown


async def test_a_response_that_begins_tells_of_no_error(guard):
    failed = {"status": "failed", "error": {"message": HIDDEN}}
    kinds = ("response.created", "response.in_progress", "response.queued")
    events = [{"type": kind, "response": failed} for kind in kinds]
    assert HIDDEN not in await left(guard, Endpoint.RESPONSES, *events)


async def test_an_error_of_null_is_none(guard):
    said = {"content": "Mary Shelley was a writer. "}
    delta = {"index": 0, "delta": said, "finish_reason": "stop"}
    shown = await left(guard, Endpoint.CHAT, {"error": None, "choices": [delta]})
    assert "writer" in shown


@pytest.mark.parametrize("odd", [[[]], 3, "x", None])
async def test_values_of_another_kind_are_no_fault(guard, odd):
    for kind, field in (
        ("response.created", "response"),
        ("response.completed", "response"),
        ("response.content_part.added", "part"),
        ("response.output_item.added", "item"),
    ):
        await left(guard, Endpoint.RESPONSES, {"type": kind, field: odd})


@pytest.mark.parametrize("endpoint", Endpoint)
async def test_text_behind_the_end_of_an_answer_is_an_error(guard, endpoint):
    said, more = "Mary Shelley was a writer. ", "She wrote novels. Ada too. "
    place = {"output_index": 0, "content_index": 0}
    delta = {"type": "response.output_text.delta", **place}
    events = {
        Endpoint.CHAT: [
            {"choices": [{"index": 0, "delta": {"content": said}, "finish_reason": "stop"}]},
            {"choices": [{"index": 0, "delta": {"content": more}}]},
        ],
        Endpoint.RESPONSES: [
            delta | {"delta": said},
            {"type": "response.output_text.done", **place},
            delta | {"delta": more},
        ],
    }[endpoint]
    assert "writer" in await left(guard, endpoint, *events[:-1])
    with pytest.raises(UnreadableReplyError, match="after the end"):
        await left(guard, endpoint, *events)


@pytest.mark.parametrize("odd", [{"a": HIDDEN}, [HIDDEN], 3, True])
async def test_a_delta_that_is_no_text_is_none(guard, odd):
    for kind in ("output_text", "refusal"):
        place = {"output_index": 0, "content_index": 0}
        delta = {"type": f"response.{kind}.delta", **place, "delta": odd}
        end = {"type": f"response.{kind}.done", **place}
        shown = await left(guard, Endpoint.RESPONSES, delta, end)
        assert '"delta"' not in shown


async def test_a_stream_has_the_one_choice_that_was_asked_for(guard):
    said = {"content": "Mary Shelley was a writer. "}
    stream = Exchange(
        GuardSettings(guard=guard, policy=STRICT), Endpoint.CHAT, ASKED[Endpoint.CHAT]
    ).stream()
    choices = [{"index": index, "delta": said, "finish_reason": "stop"} for index in range(3)]
    out = await stream.feed(f"data: {json.dumps({'choices': choices})}\n\n".encode())
    shown = (out + await stream.finish()).decode()
    assert "writer" in shown
    assert '"index": 1' not in shown
    assert len(stream.answers) == 1


async def test_a_reply_has_as_many_choices_as_one_may_ask_for(guard):
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}}
    exchange = Exchange(
        GuardSettings(guard=guard, policy=STRICT), Endpoint.CHAT, ASKED[Endpoint.CHAT]
    )
    many = json.dumps({"choices": [choice] * (MAX_CHOICES + 1)}).encode()
    with pytest.raises(UnreadableReplyError, match="more than 128 choices"):
        await exchange.judge(Reply(200, (), many))
    some = await exchange.judge(Reply(200, (), json.dumps({"choices": [choice] * 3}).encode()))
    assert len(some.answers) == 3  # all are judged: other gateways keep the reply that they have


async def test_a_response_has_as_many_parts_as_are_judged(guard):
    part = {"type": "output_text", "text": "Hello."}
    message = {"type": "message", "role": "assistant", "content": [part] * (MAX_PARTS // 2)}
    exchange = Exchange(
        GuardSettings(guard=guard, policy=STRICT), Endpoint.RESPONSES, ASKED[Endpoint.RESPONSES]
    )
    many = json.dumps({"output": [message] * 3}).encode()
    with pytest.raises(UnreadableReplyError, match="more than 128 parts"):
        await exchange.judge(Reply(200, (), many))
    await exchange.judge(Reply(200, (), json.dumps({"output": [message] * 2}).encode()))


async def test_a_streamed_response_has_as_many_parts_as_are_judged(guard):
    deltas = [
        {
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": index,
            "delta": "Hello. ",
        }
        for index in range(MAX_PARTS + 1)
    ]
    with pytest.raises(UnreadableReplyError, match="more than 128 parts"):
        await left(guard, Endpoint.RESPONSES, *deltas)
    await left(guard, Endpoint.RESPONSES, *deltas[:-1])
