"""Events of a hostile server: errors end a stream, and odd values cause no fault."""

import pytest

from chains.openai_wire import MAX_PARTS, Endpoint, UnreadableReplyError
from tests.chains.exchanges import (
    CHAT,
    RESPONSES,
    TRUE,
    chunk,
    completed,
    completion,
    delta,
    events_of,
    guarded,
    message,
    pieces_of,
    response,
    streamed,
)

HIDDEN = "zephyrcanary"
BUSY = {"message": "busy"}
ERRORS = [
    (CHAT, {"error": BUSY}),
    (RESPONSES, {"error": BUSY}),
    (RESPONSES, {"type": "error", **BUSY}),
    (RESPONSES, {"type": "response.failed", "response": {"status": "failed", "error": BUSY}}),
]


@pytest.mark.parametrize(("endpoint", "error"), ERRORS)
async def test_a_stream_ends_with_its_first_error(guard, endpoint, error):
    hidden = {"delta": HIDDEN, "output": HIDDEN}
    failed = {"status": "failed", "error": {"message": HIDDEN}}
    more = [{"error": {"message": HIDDEN}}, {"type": "error", "message": HIDDEN}]
    more += [{"type": f"response.{kind}", "response": failed} for kind in ("failed", "created")]
    left = await streamed(guard, endpoint, {}, error | hidden, *more)
    assert left.count("busy") == 1
    assert HIDDEN not in left


@pytest.mark.parametrize(
    "odd", [[], {}, [[]], {"a": HIDDEN}, [HIDDEN], 3, 1.5, -1, True, "x", None]
)
async def test_values_of_another_type_cause_no_fault(guard, odd):
    added = {"type": "response.output_item.added", "item": odd}
    events = [
        added,
        added | {"item": {"type": odd}},
        {"type": odd, "item": {"type": odd}},
        {"type": "response.created", "response": odd},
        {"type": "response.content_part.added", "part": odd},
        {"type": "response.content_part.added", "part": {"type": odd}},
        delta(odd) | {"output_index": odd, "content_index": odd},
        delta(odd, "refusal") | {"output_index": 5},
        {"type": "response.refusal.done", "output_index": 5},
        completed() | {"response": odd},
    ]
    assert HIDDEN not in await streamed(guard, RESPONSES, {}, *events)
    body, _ = await guarded(guard, RESPONSES, {}, response({"type": odd}, message(TRUE)))
    assert TRUE[:-1] in str(body)
    chats = [{"choices": odd}, {"choices": [odd]}, {"choices": [{"index": odd, "delta": odd}]}]
    assert HIDDEN not in await streamed(guard, CHAT, {}, *chats)


@pytest.mark.parametrize("endpoint", Endpoint)
async def test_text_after_the_end_of_an_answer_is_an_error(guard, endpoint):
    said, more = pieces_of(endpoint, f"{TRUE} "), pieces_of(endpoint, "She wrote novels. ")
    said = said[:-1] if endpoint is RESPONSES else said  # without the end of the response
    assert "writer" in await streamed(guard, endpoint, {}, *said)
    with pytest.raises(UnreadableReplyError, match="after the end"):
        await streamed(guard, endpoint, {}, *said, *more)


async def test_a_stream_has_the_one_choice_that_was_asked_for(guard):
    choices = [chunk(index=n, content=TRUE, ended="stop")["choices"][0] for n in range(3)]
    left, stream = await events_of(guard, CHAT, {}, {"choices": choices})
    assert {choice["index"] for event in left for choice in event["choices"]} == {0}
    assert len(stream.answers) == 1


async def test_a_reply_has_as_many_choices_as_one_may_ask_for(guard):
    with pytest.raises(UnreadableReplyError, match="more than 128 choices"):
        await guarded(guard, CHAT, {}, completion(*["Hello."] * (MAX_PARTS + 1)))
    _, answers = await guarded(guard, CHAT, {"n": 3}, completion(*["Hello."] * 3))
    assert len(answers) == 3


async def test_a_response_has_as_many_parts_as_are_judged(guard):
    half = message(*["Hello."] * (MAX_PARTS // 2))
    await guarded(guard, RESPONSES, {}, response(half, half))
    with pytest.raises(UnreadableReplyError, match="more than 128 parts"):
        await guarded(guard, RESPONSES, {}, response(half, half, "Hello."))
    deltas = [delta("Hello. ") | {"content_index": index} for index in range(MAX_PARTS + 1)]
    await streamed(guard, RESPONSES, {}, *deltas[:-1])
    with pytest.raises(UnreadableReplyError, match="more than 128 parts"):
        await streamed(guard, RESPONSES, {}, *deltas)
