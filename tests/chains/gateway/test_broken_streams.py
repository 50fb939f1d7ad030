"""A stream that breaks off: what has left of it is in the log."""

import asyncio
import gc
import time
import weakref

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from chains.gateway.settings import PROTOCOL_PATHS as PROTOCOLS
from guardrail import STRICT, Guardrail, GuardrailConfig
from tests.chains.conftest import QUESTION, TRUE_START, scripted_guard
from tests.chains.scripted import ScriptedJudge

EVENT = 'data: {{"choices": [{{"index": 0, "delta": {{"content": "{text}"}}}}]}}\n\n'
CALL = {
    "model": "m",
    "stream": True,
    "messages": [{"role": "user", "content": QUESTION}],
    "guardrail": {"evidence": [TRUE_START]},
}


class Memory:
    """A score log in memory."""

    def __init__(self):
        self.texts = []

    def write(self, answer, *, tags=None):
        self.texts.append(answer.original)

    def close(self):
        pass


class Breaking(httpx.AsyncByteStream):
    """A stream of which something has come when it breaks off, or hangs."""

    def __init__(self, hangs, whole=False):
        self._hangs, self._whole = hangs, whole

    async def __aiter__(self):
        yield EVENT.format(text=f"{TRUE_START} She ").encode()
        yield EVENT.format(text="was ").encode()
        if self._whole:
            yield b"data: [DONE]\n\n"
        if self._hangs:
            await asyncio.sleep(60)
        raise httpx.ReadError("the server is gone")


async def asked(app, seen):
    """Call as a server does; ends when the application does."""
    body = httpx.Request("POST", "http://gateway", json=CALL).content
    left = [{"type": "http.request", "body": body, "more_body": False}]
    path = "/v1/chat/completions"
    headers = [(b"content-type", b"application/json"), (b"host", b"gateway")]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST"}
    scope |= {"scheme": "http", "path": path, "raw_path": path.encode(), "root_path": ""}
    scope |= {"query_string": b"", "headers": headers, "client": ("127.0.0.1", 1)}

    async def receive():
        return left.pop() if left else await asyncio.sleep(60)

    async def send(message):
        seen.append(message.get("body", b""))

    await app(scope, receive, send)


@pytest.mark.parametrize("end", ["broken off", "too late", "stopped"])
async def test_what_has_left_of_a_stream_is_recorded(end):
    log = Memory()
    upstream = httpx.AsyncClient(
        transport=httpx.MockTransport(
            lambda request: httpx.Response(
                200,
                headers={"content-type": "text/event-stream"},
                stream=Breaking(hangs=end != "broken off"),
            )
        )
    )
    with scripted_guard(config=GuardrailConfig(policy=STRICT), log=log) as guard:
        seconds = 0.5 if end == "too late" else 30.0
        settings = GatewaySettings(upstream="http://model/v1", timeout_s=seconds)
        app = create_app(guard, settings, client=upstream)
        seen = []
        async with app.router.lifespan_context(app):
            call = asyncio.create_task(asked(app, seen))
            if end == "stopped":
                while TRUE_START[:-1].encode() not in b"".join(seen):
                    await asyncio.sleep(0.01)
                call.cancel()
            await asyncio.gather(call, return_exceptions=True)
    assert TRUE_START[:-1].encode() in b"".join(seen)
    assert b"[DONE]" not in b"".join(seen)
    assert [text.startswith(TRUE_START) for text in log.texts] == [True]


class Slow(ScriptedJudge):
    """A judge that takes its time for what comes after the first sentence."""

    def ground(self, items):
        if not items[0].sentence.startswith(TRUE_START[:-1]):
            time.sleep(1.0)
        return super().ground(items)


async def test_what_is_cut_in_its_last_verdict_is_recorded():
    log = Memory()
    said = httpx.MockTransport(
        lambda request: httpx.Response(
            200,
            headers={"content-type": "text/event-stream"},
            stream=Breaking(hangs=False, whole=True),
        )
    )
    config = GuardrailConfig(policy=STRICT)
    with Guardrail(config, grounding=Slow(), retriever=lambda question: [], log=log) as guard:
        settings = GatewaySettings(upstream="http://model/v1", timeout_s=0.6)
        app = create_app(guard, settings, client=httpx.AsyncClient(transport=said))
        seen = []
        async with app.router.lifespan_context(app):
            await asked(app, seen)
    assert TRUE_START[:-1].encode() in b"".join(seen)
    assert b"[DONE]" not in b"".join(seen)
    assert len(log.texts) == 1


async def test_a_gateway_that_is_gone_is_not_kept_in_memory():
    with scripted_guard(config=GuardrailConfig()) as guard:
        app = create_app(guard, GatewaySettings(protocols=tuple(PROTOCOLS)))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            for path in ("/healthz", "/docs", "/", "/openapi.json"):
                assert (await client.get(path)).status_code == 200
        gone = weakref.ref(app.state.gateway)
        del app, transport, client
    gc.collect()
    assert gone() is None


class Cut(httpx.AsyncByteStream):
    """A stream that ends as if it were whole, in the middle of a sentence or behind its end."""

    def __init__(self, events):
        self._events = events

    async def __aiter__(self):
        for event in self._events:
            yield event.encode()


END = 'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
SHOWN = TRUE_START[:-1].encode()


@pytest.mark.parametrize(
    ("events", "last", "broken"),
    [
        ([EVENT.format(text=f"{TRUE_START} She was")], b"", True),
        ([EVENT.format(text=f"{TRUE_START} She was a writer.")], b"", True),
        ([EVENT.format(text=f"{TRUE_START} She was a writer."), END], b"writer", False),
        ([EVENT.format(text=f"{TRUE_START} She was a writer."), "data: [DONE]"], b"writer", False),
    ],
)
async def test_what_is_cut_off_is_held_back_and_reported(events, last, broken):
    reply = httpx.MockTransport(
        lambda request: httpx.Response(
            200, headers={"content-type": "text/event-stream"}, stream=Cut(events)
        )
    )
    log = Memory()
    with scripted_guard(config=GuardrailConfig(policy=STRICT), log=log) as guard:
        settings = GatewaySettings(upstream="http://model/v1")
        app = create_app(guard, settings, client=httpx.AsyncClient(transport=reply))
        seen = []
        async with app.router.lifespan_context(app):
            await asked(app, seen)
    out = b"".join(seen)
    assert SHOWN in out
    assert (b"upstream_broke_off" in out) is broken
    if broken:
        assert b"She was" not in out.split(SHOWN)[1]
        assert b'"guardrail"' not in out  # no verdict on a part
    else:
        assert last in out
    assert len(log.texts) == 1
