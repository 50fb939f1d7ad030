"""Streams of a hostile server: linear in time, bounded in memory."""

import asyncio
import json

import httpx
import openai
import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.runnables import RunnableGenerator
from langchain_core.runnables.utils import AddableDict
from starlette.testclient import TestClient

from chains import GuardedChatModel, GuardrailRunnable, guard_openai
from chains.gateway import GatewaySettings, create_app
from chains.openai_wire import Event, EventDecoder, UnreadableReplyError
from guardrail import STRICT
from tests.chains.exchanges import (
    ASKED,
    CHAT,
    JSON_FORMAT,
    RESPONSES,
    chunk,
    completion,
    delta,
    exchange,
    written,
)
from tests.chains.models import model
from tests.growth import grows_linearly, timed

BOUND = {"max_reply_bytes": 10_000}
WORD = "x" * 1_000
too_large = pytest.raises(UnreadableReplyError, match="more than 10,000 bytes")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_chunks_of_any_size_give_the_same_events(size, end):
    text = end.join(["data: ä", "data: b", "", ": note", "event: x", "data: c", "", ""])
    data, decoder = text.encode(), EventDecoder()
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    found = [event for piece in chunks for event in decoder.feed(piece)]
    assert found + decoder.finish() == [Event("ä\nb"), Event("c", "x")]


def test_a_line_in_small_chunks_takes_linear_time():
    def seconds(length):
        decoder = EventDecoder()
        with timed() as took:
            for _ in range(length):
                decoder.feed(b"xxxxxxxx")
        return took()

    assert grows_linearly(seconds, 40_000)


@pytest.mark.parametrize(
    ("endpoint", "data"),
    [
        (CHAT, b"x" * 1_000),
        (CHAT, b"data: x\n" * 100),
        (CHAT, written(chunk(content="word "))),
        (CHAT, written(chunk(refusal="word "))),
        (CHAT, written(chunk(reasoning="word "))),
        (RESPONSES, written(delta("word "))),
        (RESPONSES, written(delta("word ", "refusal"))),
        (RESPONSES, written(delta("word ", "reasoning"))),
    ],
)
async def test_an_event_without_end_is_refused(guard, endpoint, data):
    """A stream has the bound of a whole reply, whatever comes in it."""
    stream = exchange(guard, endpoint, {"stream": True}, **BOUND).stream()
    for _ in range(10_000 // len(data)):
        await stream.feed(data)
    with too_large:
        await stream.feed(data)


@pytest.mark.parametrize(
    ("endpoint", "event", "asked", "dry_run", "together"),
    [
        (CHAT, chunk(refusal=WORD), {}, False, False),
        (CHAT, chunk(content=WORD), JSON_FORMAT[CHAT], False, False),
        (CHAT, chunk(content=WORD), {}, False, False),
        (CHAT, chunk(content=WORD), {}, True, True),
        (RESPONSES, delta(WORD), {}, True, False),
    ],
    ids=["refusal", "json", "behind the bound of an answer", "in one chunk", "part shown"],
)
def test_pieces_take_linear_time(guard, endpoint, event, asked, dry_run, together):
    """Appended to one text, the later ones took 90 times as long for ten times as many."""
    data = written(event)

    async def feed(count):
        policy = STRICT.changed(dry_run=dry_run)
        stream = exchange(guard, endpoint, asked, policy=policy).stream()
        for _ in range(200):  # with what is judged
            await stream.feed(data)
        with timed() as took:
            for _ in range(1 if together else count):
                await stream.feed(data * count if together else data)
        return took()

    assert grows_linearly(lambda count: asyncio.run(feed(count)), 2_000)


def server(request):
    """A server whose replies are longer than they may be."""
    if json.loads(request.content).get("stream"):
        content = written(chunk(content="x" * 100)) * 200
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=content)
    return httpx.Response(200, json=completion("x" * 20_000))


@pytest.mark.parametrize("n", [1, 2])
async def test_a_guarded_client_has_the_bound(guard, n):
    http = httpx.AsyncClient(transport=httpx.MockTransport(server))
    client = openai.AsyncOpenAI(
        http_client=http, api_key="k", base_url="http://m/v1", max_retries=0
    )
    chat = guard_openai(client, guard, **BOUND).chat.completions
    with pytest.raises(openai.InternalServerError, match="more than 10,000 bytes"):
        await chat.create(**ASKED[CHAT], n=n)
    with too_large:
        [chunk async for chunk in await chat.create(**ASKED[CHAT], stream=True)]
    unbounded = guard_openai(client, guard).chat.completions
    assert (await unbounded.create(**ASKED[CHAT])).choices


def test_the_gateway_has_the_bound(guard, monkeypatch):
    monkeypatch.setattr("chains.gateway.upstream.MOST_REPLY_BYTES", 10_000)
    settings = GatewaySettings(upstream="http://m/v1")
    inner = httpx.AsyncClient(transport=httpx.MockTransport(server))
    with TestClient(create_app(guard, settings, client=inner)) as client:
        reply = client.post("/v1/chat/completions", json=ASKED[CHAT])
    assert "more than 10,000 bytes" in reply.text
    assert "xxxx" not in reply.text


KINDS = {
    "texts": str,
    "messages": AIMessageChunk,
    "reasoning": lambda text: AIMessageChunk("", additional_kwargs={"reasoning_content": text}),
    "calls": lambda text: AIMessageChunk(
        "", tool_call_chunks=[tool_call_chunk(args=text, index=0)]
    ),
    "mappings": lambda text: AddableDict({"answer": text}),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("mode", ["sentence", "buffer"])
@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_runnable_has_the_bound(guard, make, mode, dry_run):
    read = []

    def endless(_):
        while True:
            read.append(1)
            yield make("word " * 20)

    async def aendless(_):
        for one in endless(_):
            yield one

    options = {"policy": STRICT.changed(dry_run=dry_run), "stream_mode": mode} | BOUND
    source = RunnableGenerator(endless, aendless)
    bounded = GuardrailRunnable(guard, source, answer_key="answer", **options)
    with too_large:
        list(bounded.stream("Who?"))
    assert len(read) <= 101
    with too_large:
        [one async for one in bounded.astream("Who?")]


def test_growing_data_count_once(guard):
    """A parser of JSON yields all that it has so far, again and again."""
    grown = [{"text": "word " * number} for number in range(200)]

    def grow(_):
        yield from grown

    bounded = GuardrailRunnable(guard, RunnableGenerator(grow), max_reply_bytes=2_000)
    assert list(bounded.stream("Who?"))[-1] == grown[-1]


def test_a_guarded_chat_model_has_the_bound(guard):
    with too_large:
        list(GuardedChatModel(guard, model("word " * 10_000), **BOUND).stream("Who?"))
