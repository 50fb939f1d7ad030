"""Streams of a hostile server: linear in time, bounded in memory, never a fault of ours."""

import asyncio
import json

import httpx
import openai
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.runnables import RunnableGenerator
from langchain_core.runnables.utils import AddableDict
from starlette.testclient import TestClient

from chains import GuardedChatModel, GuardrailRunnable, guard_openai, openai_sse
from chains.gateway import GatewaySettings, create_app
from chains.openai_client import EVENT_STREAM
from chains.openai_exchange import Endpoint, Exchange
from chains.openai_request import GuardSettings
from chains.openai_sse import Event, EventDecoder
from chains.openai_wire import UnreadableReplyError
from guardrail import STRICT
from tests.chains.test_stream_events import ASKED
from tests.growth import grows_linearly, timed


def decoded(text, size):
    decoder = EventDecoder()
    data = text.encode()
    found = [
        event
        for start in range(0, len(data), size)
        for event in decoder.feed(data[start : start + size])
    ]
    return found + decoder.finish()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_chunks_of_any_size_give_the_same_events(size, end):
    text = end.join(["data: ä", "data: b", "", ": note", "event: x", "data: c", "", ""])
    assert decoded(text, size) == [Event("ä\nb"), Event("c", "x")]


def test_a_line_in_small_chunks_takes_linear_time():
    def seconds(length):
        decoder = EventDecoder()
        with timed() as took:
            for _ in range(length):
                decoder.feed(b"xxxxxxxx")
        return took()

    assert grows_linearly(seconds, 40_000)


@pytest.mark.parametrize("piece", [b"x" * 1_000, b"data: x\n" * 100], ids=["a line", "lines"])
def test_an_event_without_end_is_refused(monkeypatch, piece):
    monkeypatch.setattr(openai_sse, "MOST_CHARACTERS", 10_000)
    pieces = iter([piece] * 100)
    with pytest.raises(UnreadableReplyError, match="characters"):
        list(map(EventDecoder().feed, pieces))
    assert next(pieces, None) is not None


def test_many_short_events_are_not_one_long_one(monkeypatch):
    monkeypatch.setattr(openai_sse, "MOST_CHARACTERS", 10_000)
    decoder = EventDecoder()
    assert sum(len(decoder.feed(b"data: x\n\n")) for _ in range(10_000)) == 10_000


def test_json_without_end_is_none():
    assert Event("[" * 200_000).json() is None


PLACE = {"output_index": 0, "content_index": 0}
JSON_FORMAT = {"response_format": {"type": "json_object"}}


def chat(**delta):
    return {"choices": [{"index": 0, "delta": delta}]}


def response(kind, text):
    return {"type": f"response.{kind}.delta", **PLACE, "delta": text}


def stream_of(guard, endpoint, policy=STRICT, asked=None, **bounds):
    guarding = GuardSettings(guard=guard, policy=policy, **bounds)
    return Exchange(guarding, endpoint, ASKED[endpoint] | (asked or {})).stream()


@pytest.mark.parametrize(
    ("endpoint", "event"),
    [
        (Endpoint.CHAT, chat(content="word ")),
        (Endpoint.CHAT, chat(refusal="word ")),
        (Endpoint.CHAT, chat(reasoning="word ")),
        (Endpoint.RESPONSES, response("output_text", "word ")),
        (Endpoint.RESPONSES, response("refusal", "word ")),
        (Endpoint.RESPONSES, {"type": "response.reasoning.delta", "delta": "word "}),
    ],
)
async def test_a_stream_has_the_bound_of_a_whole_reply(guard, endpoint, event):
    stream = stream_of(guard, endpoint, max_reply_bytes=10_000)
    data = f"data: {json.dumps(event)}\n\n".encode()
    for _ in range(10_000 // len(data)):
        await stream.feed(data)
    with pytest.raises(UnreadableReplyError, match="more than 10,000 bytes"):
        await stream.feed(data)


@pytest.mark.parametrize(
    ("endpoint", "make", "asked", "dry_run"),
    [
        (Endpoint.CHAT, lambda text: chat(refusal=text), {}, False),
        (Endpoint.CHAT, lambda text: chat(content=text), JSON_FORMAT, False),
        (Endpoint.CHAT, lambda text: chat(content=text), {}, False),
        (Endpoint.RESPONSES, lambda text: response("refusal", text), {}, False),
        (Endpoint.RESPONSES, lambda text: response("output_text", text), {}, True),
    ],
    ids=["refusal", "json", "behind the bound of an answer", "part refused", "part shown"],
)
def test_pieces_take_linear_time(guard, endpoint, make, asked, dry_run):
    """Appended to one text, the later ones took 90 times as long for ten times as many."""
    data = f"data: {json.dumps(make('x' * 1_000))}\n\n".encode()

    async def feed(count):
        stream = stream_of(guard, endpoint, STRICT.changed(dry_run=dry_run), asked)
        for _ in range(200):  # with what is judged
            await stream.feed(data)
        with timed() as took:
            for _ in range(count):
                await stream.feed(data)
        return took()

    assert grows_linearly(lambda count: asyncio.run(feed(count)), 2_000)


def test_many_events_in_one_chunk_are_written_once(guard):
    """In one chunk, as a packed stream comes."""
    event = f"data: {json.dumps(chat(content='x' * 1_000))}\n\n".encode()

    async def feed(count):
        stream = stream_of(guard, Endpoint.CHAT, STRICT.changed(dry_run=True))
        with timed() as took:
            await stream.feed(event * count)
        return took()

    assert grows_linearly(lambda count: asyncio.run(feed(count)), 1_000)


LONG_REPLY = json.dumps({"choices": [{"index": 0, "message": {"content": "x" * 20_000}}]}).encode()
LONG_STREAM = f"data: {json.dumps(chat(content='x' * 100))}\n\n".encode() * 200


def server(request):
    """A server whose replies are longer than they may be."""
    if json.loads(request.content).get("stream"):
        return httpx.Response(200, headers={"content-type": EVENT_STREAM}, content=LONG_STREAM)
    return httpx.Response(200, json=json.loads(LONG_REPLY))


@pytest.mark.parametrize("n", [1, 2])
def test_a_guarded_client_reads_so_much_of_a_reply(guard, n):
    asked = {"model": "m", "messages": ASKED[Endpoint.CHAT]["messages"]}
    inner = httpx.Client(transport=httpx.MockTransport(server))
    client = openai.OpenAI(api_key="k", base_url="http://m/v1", http_client=inner, max_retries=0)
    bounded = guard_openai(client, guard, max_reply_bytes=10_000)
    with pytest.raises(openai.InternalServerError, match="more than 10,000 bytes"):
        bounded.chat.completions.create(**asked, n=n)
    with pytest.raises(UnreadableReplyError, match="more than 10,000 bytes"):
        list(bounded.chat.completions.create(**asked, stream=True))
    assert guard_openai(client, guard).chat.completions.create(**asked).choices


async def test_a_guarded_client_that_waits_reads_so_much_too(guard):
    asked = {"model": "m", "messages": ASKED[Endpoint.CHAT]["messages"]}
    inner = httpx.AsyncClient(transport=httpx.MockTransport(server))
    client = openai.AsyncOpenAI(
        api_key="k", base_url="http://m/v1", http_client=inner, max_retries=0
    )
    bounded = guard_openai(client, guard, max_reply_bytes=10_000)
    with pytest.raises(openai.InternalServerError, match="more than 10,000 bytes"):
        await bounded.chat.completions.create(**asked)
    stream = await bounded.chat.completions.create(**asked, stream=True)
    with pytest.raises(UnreadableReplyError, match="more than 10,000 bytes"):
        [chunk async for chunk in stream]


def test_the_gateway_reads_so_much_of_a_stream(guard):
    settings = GatewaySettings(upstream="http://m/v1", max_reply_bytes=10_000)
    inner = httpx.AsyncClient(transport=httpx.MockTransport(server))
    with TestClient(create_app(guard, settings, client=inner)) as client:
        told = client.post("/v1/chat/completions", json=ASKED[Endpoint.CHAT])
    assert "more than 10,000 bytes" in told.text
    assert "xxxx" not in told.text


def messages(text):
    return AIMessageChunk(content=text)


def beside(text):
    return AIMessageChunk(content="", additional_kwargs={"reasoning_content": text})


def calls(text):
    return AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(args=text, index=0)])


def below_a_key(text):
    return AddableDict({"answer": text})


@pytest.mark.parametrize("make", [str, messages, beside, calls, below_a_key])
@pytest.mark.parametrize("mode", ["sentence", "buffer"])
@pytest.mark.parametrize("policy", [STRICT, STRICT.changed(dry_run=True)], ids=["strict", "dry"])
async def test_a_runnable_reads_so_much_of_a_stream(guard, make, mode, policy):
    """Without an end the text held for the verdict had none either."""
    read = []

    def endless(_):
        while True:
            read.append(1)
            yield make("word " * 20)

    async def endless_too(_):
        for piece in endless(_):
            yield piece

    source = RunnableGenerator(endless, endless_too)
    options = {"policy": policy, "stream_mode": mode, "max_reply_bytes": 10_000}
    bounded = GuardrailRunnable(guard, source, answer_key="answer", **options)
    with pytest.raises(UnreadableReplyError, match="more than 10,000 bytes"):
        list(bounded.stream("Who?"))
    assert len(read) <= 101
    with pytest.raises(UnreadableReplyError, match="more than 10,000 bytes"):
        [piece async for piece in bounded.astream("Who?")]


def test_data_that_grow_count_once(guard):
    """A parser of JSON gives all that it has so far, again and again."""
    grown = [{"text": "word " * number} for number in range(200)]

    def grow(_):
        yield from grown

    bounded = GuardrailRunnable(guard, RunnableGenerator(grow), max_reply_bytes=2_000)
    assert list(bounded.stream("Who?"))[-1] == grown[-1]


def test_a_guarded_chat_model_has_the_bound_too(guard):
    model = GenericFakeChatModel(messages=iter([AIMessage("word " * 10_000)]))
    bounded = GuardedChatModel(guard, model, max_reply_bytes=10_000)
    with pytest.raises(UnreadableReplyError, match="more than 10,000 bytes"):
        list(bounded.stream("Who?"))
