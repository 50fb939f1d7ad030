"""Replies of the model's server: headers, errors, numbers, streams that break off, connections."""

import asyncio
import json
import random
import time
from contextlib import suppress

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from chains.gateway.upstream import chunks_of, opened
from guardrail import STRICT, Guardrail, GuardrailConfig
from tests.chains.conftest import ANSWER, CANARY, QUESTION, TRUE_START, scripted_guard
from tests.chains.fake_openai import served
from tests.chains.scripted import ScriptedJudge
from tests.clock import PATIENCE_S

CHAT = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
RESPONSE = {"model": "m", "input": QUESTION}
CHOICE = {"index": 0, "finish_reason": "stop"}
COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "choices": [CHOICE | {"message": {"role": "assistant", "content": TRUE_START}}],
}
EVENT_STREAM = {"content-type": "text/event-stream"}


@pytest.fixture
def asked(gateway):
    """The reply of a gateway before a server that gives one reply."""

    async def ask(path, body, reply):
        client = gateway(said=reply)
        return await client.request("POST" if body else "GET", f"/v1/{path}", json=body)

    return ask


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (httpx.Response(307, headers={"location": "http://elsewhere/"}), "redirects"),
        (httpx.Response(101, json=COMPLETION), "invalid status"),
        (httpx.Response(200, text="<html>"), "JSON"),
        (httpx.Response(200, json={"answer": ANSWER}), "chat completion"),
        (httpx.Response(200, json=[ANSWER]), "JSON object"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_replies_of_another_form_are_errors(asked, reply, message, stream):
    got = await asked("chat/completions", CHAT | {"stream": stream}, reply)
    assert got.status_code == 502
    assert message in got.json()["error"]["message"]
    assert CANARY not in got.text


@pytest.mark.parametrize("noise", [b"", b"\xa7\xff\x00", b"null", b"[" * 50_000, b"data: {\n\n"])
@pytest.mark.parametrize(("path", "body"), [("chat/completions", CHAT), ("responses", RESPONSE)])
async def test_a_stream_without_an_event_is_an_error(asked, path, body, noise):
    reply = httpx.Response(200, headers=EVENT_STREAM, content=noise)
    got = await asked(path, body | {"stream": True}, reply)
    assert "without one event" in json.loads(got.text.removeprefix("data: "))["error"]["message"]


# --- headers, numbers and text -----------------------------------------------------------------

HELD = {
    "location": "http://elsewhere/", "access-control-allow-origin": "*", "set-cookie": "a=b",
    "refresh": "0; url=http://elsewhere/", "x-notes": "text that nobody judged",
    "x-guardrail-record": "an id of a gateway behind this one",
}  # fmt: skip
PASSED = {
    "x-request-id": "r",
    "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT",
    "cache-control": "no-cache, no-store",
    "x-ratelimit-remaining-tokens": "5",
}


def reply_with(kind, headers):
    if kind == "stream":
        headers = [*headers, ("content-type", "text/event-stream")]
        return httpx.Response(200, headers=headers, text="data: [DONE]\n\n")
    return httpx.Response(429 if kind == "error" else 200, headers=headers, json=COMPLETION)


KINDS = ["whole", "stream", "error", "models"]


def call(kind):
    path = "models" if kind == "models" else "chat/completions"
    return path, None if kind == "models" else CHAT | {"stream": kind == "stream"}


@pytest.mark.parametrize("kind", KINDS)
async def test_only_known_headers_are_passed_on(asked, kind):
    got = await asked(*call(kind), reply_with(kind, [*(HELD | PASSED).items()]))
    assert not set(HELD) & set(got.headers)
    assert PASSED.items() <= dict(got.headers).items()


IDS = (
    "x-request-id", "request-id", "openai-organization", "openai-model", "x-ratelimit-reset",
    "x-ms-region", "traceparent", "tracestate", "retry-after", "retry-after-ms", "x-should-retry",
    "anthropic-note", "cache-control", "content-disposition",
)  # fmt: skip


@pytest.mark.parametrize("value", ["an answer nobody judged", "the\tanswer", "a" * 201, "\u00e9"])
@pytest.mark.parametrize("kind", KINDS)
async def test_headers_hold_no_prose(asked, kind, value):
    headers = [(name.encode(), value.encode()) for name in IDS]
    got = await asked(*call(kind), reply_with(kind, headers))
    assert not set(IDS) & set(got.headers)
    assert value not in str(got.headers)


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e999"])
@pytest.mark.parametrize("stream", [False, True])
async def test_numbers_that_json_does_not_have_are_not_passed_on(asked, number, stream):
    usage = f'"usage": {{"prompt_tokens": 3, "cost": {number}}}'
    if stream:
        chunk = {"id": "1", "choices": [CHOICE | {"delta": {"content": TRUE_START}}]}
        text = f"data: {json.dumps(chunk)[:-1]}, {usage}}}\n\ndata: [DONE]\n\n"
        reply = httpx.Response(200, text=text, headers=EVENT_STREAM)
    else:
        text = f'{json.dumps(COMPLETION)[:-1]}, "error": null, {usage}}}'
        reply = httpx.Response(200, text=text, headers={"content-type": "application/json"})
    got = await asked("chat/completions", CHAT | {"stream": stream}, reply)
    assert got.status_code == 200
    assert "Infinity" not in got.text
    assert "NaN" not in got.text
    assert '"prompt_tokens":3' in got.text.replace(" ", "")


PROSE = "It is safe with alcohol."
OF_NUMBERS = {
    "object": "list",
    "data": [{"id": "m", "embedding": [0.5, 0.25, 1]}, {"embedding": "AAAA+/=="}],
    "results": [{"flagged": False, "categories": {"self-harm/intent": True}}],
    "usage": {"total_tokens": 3},
}


@pytest.mark.parametrize(
    ("path", "body"),
    [("models", None), ("models/m", None), ("embeddings", CHAT), ("moderations", CHAT)],
)
async def test_replies_without_an_answer_hold_no_text(asked, path, body):
    tainted = {**OF_NUMBERS, "description": PROSE, PROSE: 1}
    tainted["data"] = [*OF_NUMBERS["data"], PROSE, [PROSE]]
    failed = {"error": {"message": "no such model", "detail": PROSE}, "text": PROSE}
    for reply, status in (
        (httpx.Response(200, json=tainted), 200),
        (httpx.Response(200, text=PROSE), 502),
        (httpx.Response(200, json=[PROSE]), 502),
        (httpx.Response(404, json=failed), 404),
    ):
        got = await asked(path, body, reply)
        assert got.status_code == status
        assert PROSE not in got.text
        if status == 200:
            assert got.json()["results"] == OF_NUMBERS["results"]
            assert got.json()["data"][:2] == OF_NUMBERS["data"]
    assert got.json()["error"]["message"] == "no such model"


# --- streams that break off --------------------------------------------------------------------

EVENT = 'data: {{"choices": [{{"index": 0, "delta": {{"content": "{text}"}}}}]}}\n\n'
END = 'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
DONE = "data: [DONE]\n\n"
SHOWN = TRUE_START[:-1].encode()
BEGUN = [EVENT.format(text=f"{TRUE_START} She "), EVENT.format(text="was ")]


class Log:
    """A score log in memory."""

    def __init__(self):
        self.texts = []

    def write(self, answer, *, tags=None):
        self.texts.append(answer.original)

    def close(self): ...


async def sends(events, end=None):
    """The events of a stream that then ends, hangs or breaks off."""
    for event in events:
        yield event.encode()
    if end == "hangs":
        await asyncio.sleep(60)
    if end is not None:
        raise httpx.ReadError("the server is gone")


def streamed(guard, stream, *, stopped=False, **settings):
    """What leaves of a stream, until its caller stops it."""
    reply = httpx.Response(200, headers=EVENT_STREAM, content=stream)
    client = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: reply))
    app = create_app(guard, GatewaySettings(upstream="http://model/v1", **settings), client=client)
    body = CHAT | {"stream": True, "guardrail": {"evidence": [TRUE_START]}}
    out = b""
    with (
        served(app) as url,
        suppress(httpx.RemoteProtocolError),
        httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60) as got,
    ):
        for piece in got.iter_raw():
            out += piece
            if stopped and SHOWN in out:
                break
    return out


@pytest.mark.parametrize("end", ["breaks off", "takes too long", "is stopped"])
def test_what_was_released_of_a_stream_is_recorded(end):
    log = Log()
    with scripted_guard(config=GuardrailConfig(policy=STRICT), log=log) as guard:
        stream = sends(BEGUN, "breaks off" if end == "breaks off" else "hangs")
        seconds = 0.5 if end == "takes too long" else 30.0
        out = streamed(guard, stream, stopped=end == "is stopped", timeout_s=seconds)
    assert SHOWN in out
    assert b"[DONE]" not in out
    assert [text.startswith(TRUE_START) for text in log.texts] == [True]


class Slow(ScriptedJudge):
    """A judge that takes a second for everything after the first sentence."""

    def ground(self, items):
        if not items[0].sentence.startswith(TRUE_START[:-1]):
            time.sleep(1.0)
        return super().ground(items)


def test_a_stream_that_ends_in_its_last_verdict_is_recorded():
    log = Log()
    config = GuardrailConfig(policy=STRICT)
    with Guardrail(config, grounding=Slow(), retriever=lambda question: [], log=log) as guard:
        out = streamed(guard, sends([*BEGUN, DONE]), timeout_s=0.6)
    assert SHOWN in out
    assert b"[DONE]" not in out
    assert len(log.texts) == 1


@pytest.mark.parametrize(
    ("events", "whole"),
    [
        ([EVENT.format(text=f"{TRUE_START} She was")], False),
        ([EVENT.format(text=f"{TRUE_START} She was a writer.")], False),
        ([EVENT.format(text=f"{TRUE_START} She was a writer."), END], True),
        ([EVENT.format(text=f"{TRUE_START} She was a writer."), "data: [DONE]"], True),
    ],
)
def test_a_cut_sentence_is_held_back_and_reported(events, whole):
    log = Log()
    with scripted_guard(config=GuardrailConfig(policy=STRICT), log=log) as guard:
        out = streamed(guard, sends(events))
    assert SHOWN in out
    assert (b"upstream_broke_off" in out) is not whole
    assert (b"writer" in out.split(SHOWN)[1]) is whole
    assert (b'"guardrail"' in out) is whole  # no verdict on a part
    assert len(log.texts) == 1


# --- connections -------------------------------------------------------------------------------


async def serve(answer):
    """A server of raw TCP; its address."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_server_that_never_begins_a_reply_is_given_up(gateway, stream):
    async def waiting(reader, writer):
        with suppress(ConnectionError):
            while True:
                writer.write(b"HTTP/1.1 103 Wait\r\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)

    server, address = await serve(waiting)
    client = gateway(upstream=f"{address}/v1", timeout_s=0.2)
    reply = await client.post("/v1/chat/completions", json=CHAT | {"stream": stream})
    server.close()
    assert reply.status_code == 504


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
STEPS = 60
"""Turns of the event loop that a call may take, more than it needs."""


async def test_a_call_that_is_cancelled_at_any_moment_frees_its_connection():
    async def answer(reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(HEAD)
                for chunk in (b"5\r\nhello\r\n", b"5\r\nworld\r\n", b"0\r\n\r\n"):
                    writer.write(chunk)
                    await writer.drain()
        writer.close()

    async def read(client, url):
        async with opened(client, client.build_request("GET", url)) as response:
            return b"".join([chunk async for chunk in chunks_of(response)])

    server, url = await serve(answer)
    rng = random.Random(1)
    async with server, httpx.AsyncClient(timeout=PATIENCE_S) as client:
        pool = client._transport._pool  # httpx reports its connections nowhere else
        for _ in range(600):
            call = asyncio.ensure_future(read(client, url))
            for _ in range(rng.randrange(STEPS)):
                await asyncio.sleep(0)
            if rng.random() < 0.3:
                await asyncio.sleep(rng.random() * 0.002)
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
        assert await read(client, url) == b"helloworld"
        assert [state for state in map(repr, pool.connections) if "ACTIVE" in state] == []
