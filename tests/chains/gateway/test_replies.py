"""What a model's server says beside an answer: headers, errors, numbers that are none."""

import asyncio
import json
from contextlib import suppress

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import QUESTION, TRUE_START, scripted_guard
from tests.clock import PATIENCE_S

CHAT = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
RESPONSE = {"model": "m", "input": QUESTION}
CHOICE = {"index": 0, "finish_reason": "stop"}
COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "choices": [CHOICE | {"message": {"role": "assistant", "content": TRUE_START}}],
}


@pytest.fixture(scope="module")
def guard():
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        yield guard


@pytest.fixture
def asked(guard):
    """The reply of a gateway before a server that says one thing."""

    async def ask(path, body, reply, **settings):
        upstream = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: reply))
        settings = GatewaySettings(upstream="http://model/v1", **settings)
        app = create_app(guard, settings, client=upstream)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://gateway"
        ) as client:
            return await client.request("POST" if body else "GET", path, json=body)

    return ask


HELD = {
    "location": "http://elsewhere/",
    "access-control-allow-origin": "*",
    "access-control-allow-credentials": "true",
    "set-cookie": "a=b",
    "refresh": "0; url=http://elsewhere/",
    "x-notes": "text that nobody judged",
}
LET_THROUGH = {"x-request-id": "r", "retry-after": "1", "x-ratelimit-remaining-tokens": "5"}


@pytest.mark.parametrize("stream", [False, True])
async def test_only_known_headers_are_passed_on(asked, stream):
    if stream:
        content = {"content-type": "text/event-stream"}
        reply = httpx.Response(200, headers=HELD | LET_THROUGH | content, text="data: [DONE]\n\n")
    else:
        reply = httpx.Response(200, headers=HELD | LET_THROUGH, json=COMPLETION)
    got = await asked("/v1/chat/completions", CHAT | {"stream": stream}, reply)
    assert got.status_code == 200
    assert not set(HELD) & set(got.headers)
    assert LET_THROUGH.items() <= dict(got.headers).items()
    models = await asked("/v1/models", None, httpx.Response(200, headers=HELD, json={}))
    assert not set(HELD) & set(models.headers)


PROSE = "the answer that nobody judged"
IDS = (
    "x-request-id", "request-id", "openai-organization", "openai-model", "x-ratelimit-reset",
    "x-ms-region", "traceparent", "tracestate", "retry-after", "retry-after-ms", "x-should-retry",
    "anthropic-note", "cache-control", "content-disposition",
)  # fmt: skip


@pytest.mark.parametrize("value", [PROSE, "the\tanswer", "a" * 201, "\u00e9"])
@pytest.mark.parametrize("reply", ["whole", "stream", "error", "models"])
async def test_headers_hold_no_prose(asked, reply, value):
    headers = [(name.encode(), value.encode()) for name in IDS]
    kind = b"text/event-stream" if reply == "stream" else b"application/json"
    headers.append((b"content-type", kind + b"; note=" + value.encode()))
    content = "data: [DONE]\n\n" if reply == "stream" else json.dumps(COMPLETION)
    told = httpx.Response(429 if reply == "error" else 200, headers=headers, text=content)
    path = "models" if reply == "models" else "chat/completions"
    body = None if reply == "models" else CHAT | {"stream": reply == "stream"}
    got = await asked(f"/v1/{path}", body, told)
    assert got.status_code == told.status_code
    assert not set(IDS) & set(got.headers)
    assert value not in str(got.headers)


WAITING = {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "cache-control": "no-cache, no-store"}


async def test_headers_of_a_known_form_are_passed_on(asked):
    reply = httpx.Response(503, headers=WAITING, json={})
    got = await asked("/v1/chat/completions", CHAT, reply)
    assert WAITING.items() <= dict(got.headers).items()


async def test_an_error_of_none_beside_an_answer_is_no_error(asked):
    got = await asked(
        "/v1/chat/completions", CHAT, httpx.Response(200, json=COMPLETION | {"error": None})
    )
    assert got.status_code == 200


ENDLESS = ("Infinity", "-Infinity", "NaN", "1e999")


@pytest.mark.parametrize("number", ENDLESS)
@pytest.mark.parametrize("stream", [False, True])
async def test_numbers_that_are_none_do_not_leave(asked, number, stream):
    usage = f'"usage": {{"prompt_tokens": 3, "cost": {number}}}'
    if stream:
        chunk = {"id": "1", "choices": [CHOICE | {"delta": {"content": TRUE_START}}]}
        text = f"data: {json.dumps(chunk)[:-1]}, {usage}}}\n\ndata: [DONE]\n\n"
        reply = httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})
    else:
        text = f"{json.dumps(COMPLETION)[:-1]}, {usage}}}"
        reply = httpx.Response(200, text=text, headers={"content-type": "application/json"})
    got = await asked("/v1/chat/completions", CHAT | {"stream": stream}, reply)
    assert got.status_code == 200
    assert "Infinity" not in got.text
    assert "NaN" not in got.text
    assert '"prompt_tokens":3' in got.text.replace(" ", "")


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN"])
async def test_json_with_such_a_number_is_no_json(asked, number):
    """It is judged as the text that it is."""
    message = {"role": "assistant", "content": f'{{"year": {number}}}'}
    reply = httpx.Response(200, json={"choices": [CHOICE | {"message": message}]})
    body = CHAT | {"response_format": {"type": "json_object"}}
    got = (await asked("/v1/chat/completions", body, reply)).json()
    assert got["choices"][0]["message"]["guardrail"]["action"]


@pytest.mark.parametrize(
    ("answers", "told"), [(httpx.Response(401), "up"), (httpx.ConnectError("no"), "down")]
)
async def test_readyz_says_whether_the_upstream_is_up(guard, answers, told):
    probes = []

    def behind(request):
        probes.append(request)
        if isinstance(answers, Exception):
            raise answers
        return answers

    upstream = httpx.AsyncClient(transport=httpx.MockTransport(behind))
    app = create_app(guard, GatewaySettings(upstream="http://model/v1"), client=upstream)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
    ):
        await client.post("/v1/checks", json={"question": QUESTION, "answer": TRUE_START})
        for _ in range(3):
            reply = await client.get("/readyz")
            assert (reply.status_code, reply.json()) == (200, {"status": "ready", "upstream": told})
    assert len(probes) == 1
    assert "authorization" not in probes[0].headers


async def test_readyz_without_an_upstream(guard):
    app = create_app(guard, GatewaySettings())
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
    ):
        await client.post("/v1/checks", json={"question": QUESTION, "answer": TRUE_START})
        assert (await client.get("/readyz")).json()["upstream"] == "none"


@pytest.mark.parametrize("noise", [b"", b"\xa7\xff\x00", b"null", b"[" * 50_000, b"data: {\n\n"])
@pytest.mark.parametrize(("path", "body"), [("chat/completions", CHAT), ("responses", RESPONSE)])
async def test_a_stream_without_an_event_is_an_error(asked, path, body, noise):
    reply = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=noise)
    got = await asked(f"/v1/{path}", body | {"stream": True}, reply)
    assert "without one event" in json.loads(got.text.removeprefix("data: "))["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [100, 103])
async def test_a_server_that_only_says_wait_is_given_up(guard, status, stream):
    async def waiting(reader, writer):
        with suppress(ConnectionError):
            while True:
                writer.write(f"HTTP/1.1 {status} Wait\r\n\r\n".encode())
                await writer.drain()
                await asyncio.sleep(0.01)

    server = await asyncio.start_server(waiting, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    app = create_app(guard, GatewaySettings(upstream=address, timeout_s=0.2))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://gateway", timeout=PATIENCE_S
    ) as client:
        reply = await client.post("/v1/chat/completions", json=CHAT | {"stream": stream})
    server.close()
    assert reply.status_code == 504


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_that_is_not_final_is_none(asked, stream):
    reply = httpx.Response(101, json=COMPLETION)
    reply = await asked("/v1/chat/completions", CHAT | {"stream": stream}, reply)
    assert reply.status_code == 502


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
    got = await asked(f"/v1/{path}", body, httpx.Response(200, json=tainted))
    assert PROSE not in got.text
    assert got.json()["results"] == OF_NUMBERS["results"]
    assert got.json()["data"][:2] == OF_NUMBERS["data"]
    for reply in (httpx.Response(200, text=PROSE), httpx.Response(200, json=[PROSE])):
        got = await asked(f"/v1/{path}", body, reply)
        assert got.status_code == 502
        assert PROSE not in got.text
    failed = {"error": {"message": "no such model", "detail": PROSE}, "text": PROSE}
    got = await asked(f"/v1/{path}", body, httpx.Response(404, json=failed))
    assert (got.status_code, got.json()["error"]["message"]) == (404, "no such model")
    assert PROSE not in got.text
