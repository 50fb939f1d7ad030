"""Only the status and the error object of a failed reply leave, and no other text."""

import asyncio
import json

import httpx
import pytest
from openai import OpenAI

from chains import guard_openai
from chains.gateway import GatewaySettings, create_app
from tests.chains.conftest import CANARY, FALSE_MIDDLE
from tests.chains.exchanges import (
    ASKED,
    CHAT,
    RESPONSES,
    completed,
    completion,
    delta,
    events_of,
    exchange,
    guarded,
    message,
    response,
)

PATHS = {"chat/completions": ASKED[CHAT], "responses": ASKED[RESPONSES]}
SAID = {"message": "no such model", "type": "invalid_request_error", "param": "model", "code": 7}
TAINTED = SAID | {"failed_generation": CANARY, "innererror": {"text": CANARY}}
ITEM = message(FALSE_MIDDLE)
OUTPUTS = completion(FALSE_MIDDLE) | {"output": [ITEM], "text": CANARY}
NAMELESS = dict.fromkeys(SAID)


def unspecified(status):
    text = f"the model's server answered with an unspecified error with status {status}"
    return NAMELESS | {"message": text}


PROSE = dict.fromkeys(("type", "param", "code"), f"It is {CANARY}") | {"message": "busy"}
LONG = {"message": "m" * 5_000, "type": "t" * 5_000, "param": [CANARY], "code": {"a": CANARY}}
REPLIES = {
    "an error": (429, {"json": {"error": TAINTED, **OUTPUTS}}, 429, SAID),
    "a page": (500, {"text": f"<script>{CANARY}</script>"}, 500, unspecified(500)),
    "a stream": (500, {"text": f"data: {json.dumps(OUTPUTS)}\n\n"}, 500, unspecified(500)),
    "an answer": (500, {"json": OUTPUTS}, 500, unspecified(500)),
    "a list": (500, {"json": [CANARY]}, 500, unspecified(500)),
    "an error with success": (200, {"json": {"error": TAINTED, "note": CANARY}}, 502, SAID),
    "a text": (404, {"json": {"error": "no"}}, 404, NAMELESS | {"message": "no"}),
    "a text with success": (200, {"json": {"error": CANARY}}, 502, unspecified(200)),
    "prose in its names": (503, {"json": {"error": PROSE}}, 503, NAMELESS | {"message": "busy"}),
    "long texts": (
        400, {"json": {"error": LONG}}, 400,
        NAMELESS | {"message": "m" * 1_000, "type": "t" * 200},
    ),
}  # fmt: skip


def through_gateway(guard, path, body, reply):
    """The reply of a gateway before a server that gives one reply."""

    async def call():
        upstream = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: reply))
        app = create_app(guard, GatewaySettings(upstream="http://model/v1"), client=upstream)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://gateway"
        ) as client:
            return await client.post(f"/v1/{path}", json=body)

    return asyncio.run(call())


def client_of(guard, reply):
    inner = httpx.Client(transport=httpx.MockTransport(lambda request: reply))
    bare = OpenAI(base_url="http://model/v1", api_key="k", http_client=inner, max_retries=0)
    return guard_openai(bare, guard)


def through_client(guard, path, body, reply):
    """The same on the wire of a guarded client."""
    return client_of(guard, reply)._client.post(f"http://model/v1/{path}", json=body)


each_way = pytest.mark.parametrize("way", [through_gateway, through_client])


@each_way
def test_an_unknown_status_is_reported_as_one_of_the_upstream(guard, way):
    for status in (600, 999):
        got = way(guard, "responses", PATHS["responses"], httpx.Response(status, json={}))
        assert got.status_code == 502
        assert str(status) in got.json()["error"]["message"]


@each_way
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("status", "content", "left", "error"), REPLIES.values(), ids=REPLIES)
def test_of_an_error_reply_leaves_its_error_alone(guard, way, path, status, content, left, error):
    for stream in (False, True) if status != 200 else (False,):
        reply = httpx.Response(status, **content, headers={"retry-after": "3"})
        got = way(guard, path, PATHS[path] | {"stream": stream}, reply)
        assert (got.status_code, got.json()) == (left, {"error": error})
        assert got.headers["content-type"] == "application/json"
        assert got.headers["retry-after"] == "3"


# --- streams -----------------------------------------------------------------------------

CHUNK = {"choices": [{"index": 0, "delta": {"content": FALSE_MIDDLE}}]}
EVENTS = {
    "a chunk": (CHAT, CHUNK),
    "a completed response": (RESPONSES, completed(ITEM)),
    "a piece of text": (RESPONSES, delta(FALSE_MIDDLE)),
    "an event without a type": (RESPONSES, {"response": {"output": [ITEM]}}),
}


@pytest.mark.parametrize(("endpoint", "event"), EVENTS.values(), ids=EVENTS)
async def test_only_the_error_of_an_event_leaves(guard, endpoint, event):
    for error, expected in ((TAINTED, SAID), (CANARY, None)):
        [left], _ = await events_of(guard, endpoint, {}, event | {"error": error})
        assert CANARY not in json.dumps(left)
        assert expected in (None, left["error"])
        assert left.keys() - {"error"} in (set(), {"type", "sequence_number"})
    for nothing in (None, "", {}):
        left, _ = await events_of(guard, endpoint, {}, event | {"error": nothing})
        assert CANARY not in json.dumps(left)
        assert [item for item in left if item.get("error")] == []


async def test_the_event_of_an_error_has_the_protocols_fields(guard):
    event = {**TAINTED, "type": "error", "delta": CANARY, "response": {"output": [ITEM]}}
    left, _ = await events_of(guard, RESPONSES, {}, event)
    error = {"code": 7, "message": "no such model", "param": "model"}
    assert left == [error | {"type": "error", "sequence_number": 0}]


@pytest.mark.parametrize("error", [TAINTED, None, "text", {}, {"message": [CANARY]}, [CANARY]])
async def test_a_failed_response_has_a_bounded_error(guard, error):
    failed = response(status="failed", error=error)
    whole, _ = await guarded(guard, RESPONSES, {}, failed)
    left, _ = await events_of(guard, RESPONSES, {}, {"type": "response.failed", "response": failed})
    for found in (whole, left[-1]["response"]):
        assert CANARY not in json.dumps(found)
        assert error != TAINTED or found["error"] == {"code": 7, "message": "no such model"}


async def test_names_of_events_are_not_passed_on(guard):
    stream = exchange(guard, CHAT, {"stream": True}).stream()
    out = await stream.feed(f"event: {CANARY}\ndata: [DONE]\n\n".encode())
    assert out == b"data: [DONE]\n\n"
