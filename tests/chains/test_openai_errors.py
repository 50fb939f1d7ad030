"""Of an error of the model's server leaves the status and the error object, and no other text."""

import asyncio
import json

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from chains import guard_openai
from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import CANARY, FALSE_MIDDLE, QUESTION, scripted_guard

ASKED = {
    "chat/completions": {"model": "m", "messages": [{"role": "user", "content": QUESTION}]},
    "responses": {"model": "m", "input": QUESTION},
}
CHOICE = {"index": 0, "message": {"role": "assistant", "content": FALSE_MIDDLE}}
ITEM = {"type": "message", "content": [{"type": "output_text", "text": FALSE_MIDDLE}]}
SAID = {"message": "no such model", "type": "invalid_request_error", "param": "model", "code": 7}
NEVER_SAID = (None, "text", {}, {"message": [CANARY]}, [CANARY])
TAINTED = SAID | {"failed_generation": CANARY, "innererror": {"text": CANARY}}
OUTPUTS = {"choices": [CHOICE], "output": [ITEM], "text": CANARY}
STATUSES = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    404: openai.NotFoundError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
    503: openai.InternalServerError,
}


@pytest.fixture(scope="module")
def guard():
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        yield guard


def through_gateway(guard, path, body, reply):
    """The reply of a gateway before a server that says one thing."""

    async def ask():
        upstream = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: reply))
        app = create_app(guard, GatewaySettings(upstream="http://model/v1"), client=upstream)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://gateway"
        ) as client:
            return await client.post(f"/v1/{path}", json=body)

    return asyncio.run(ask())


def through_client(guard, path, body, reply):
    """The same from the wire of a guarded client."""
    inner = httpx.Client(transport=httpx.MockTransport(lambda request: reply))
    client = guard_openai(
        OpenAI(base_url="http://model/v1", api_key="k", http_client=inner, max_retries=0), guard
    )
    return client._client.post(f"http://model/v1/{path}", json=body)


def through_async_client(guard, path, body, reply):
    async def ask():
        inner = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: reply))
        bare = AsyncOpenAI(base_url="http://model/v1", api_key="k", http_client=inner)
        return await guard_openai(bare, guard)._client.post(f"http://model/v1/{path}", json=body)

    return asyncio.run(ask())


WAYS = (through_gateway, through_client, through_async_client)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("way", WAYS)
def test_of_an_error_reply_leaves_its_error_alone(guard, way, path, stream):
    asked = ASKED[path] | {"stream": stream}
    reply = httpx.Response(429, json={"error": TAINTED, **OUTPUTS}, headers={"retry-after": "3"})
    got = way(guard, path, asked, reply)
    assert (got.status_code, got.json()) == (429, {"error": SAID})
    assert got.headers["content-type"] == "application/json"
    assert got.headers["retry-after"] == "3"


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("way", WAYS)
def test_a_reply_without_an_error_object_names_its_status(guard, way, path):
    page = {"content-type": "text/html"}
    event = {"content-type": "text/event-stream"}
    for reply in (
        httpx.Response(500, text=f"<script>{CANARY}</script>", headers=page),
        httpx.Response(500, text=f"data: {json.dumps(OUTPUTS)}\n\n", headers=event),
        httpx.Response(500, json=OUTPUTS),
        httpx.Response(500, json=[CANARY]),
    ):
        got = way(guard, path, ASKED[path] | {"stream": True}, reply)
        assert got.status_code == 500
        assert got.headers["content-type"] == "application/json"
        assert "status 500" in got.json()["error"].pop("message")
        assert CANARY not in got.text


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("way", WAYS)
def test_an_error_with_a_status_of_success_leaves_alone(guard, way, path):
    got = way(
        guard, path, ASKED[path], httpx.Response(200, json={"error": TAINTED, "note": CANARY})
    )
    assert (got.status_code, got.json()) == (502, {"error": SAID})


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("way", WAYS)
def test_a_text_in_place_of_an_error_is_told_where_the_status_tells_of_one(guard, way, path):
    got = way(guard, path, ASKED[path], httpx.Response(404, json={"error": "no such model"}))
    assert got.json()["error"] == dict.fromkeys(SAID) | {"message": "no such model"}
    got = way(guard, path, ASKED[path], httpx.Response(200, json={"error": CANARY}))
    assert got.status_code == 502
    assert "status 200" in got.json()["error"]["message"]
    assert CANARY not in got.text


@pytest.mark.parametrize("way", WAYS)
def test_an_error_has_no_prose_but_its_message(guard, way):
    error = dict.fromkeys(("type", "param", "code"), f"It is {CANARY}") | {"message": "busy"}
    for status in (200, 503):
        reply = httpx.Response(status, json={"error": error})
        told = way(guard, "responses", ASKED["responses"], reply).json()["error"]
        assert told == {"message": "busy", "type": None, "param": None, "code": None}


@pytest.mark.parametrize("status", [600, 999])
@pytest.mark.parametrize("way", WAYS)
def test_a_status_that_tells_of_no_error_is_one_of_the_upstream(guard, way, status):
    got = way(guard, "chat/completions", ASKED["chat/completions"], httpx.Response(status, json={}))
    assert got.status_code == 502
    assert str(status) in got.json()["error"]["message"]


@pytest.mark.parametrize("way", WAYS)
def test_texts_of_an_error_are_bounded(guard, way):
    long = {"message": "m" * 5_000, "type": "t" * 5_000, "param": [CANARY], "code": {"a": CANARY}}
    reply = httpx.Response(400, json={"error": long})
    error = way(guard, "responses", ASKED["responses"], reply).json()["error"]
    assert error == {"message": "m" * 1_000, "type": "t" * 200, "param": None, "code": None}


@pytest.mark.parametrize("status", STATUSES)
def test_clients_raise_the_error_of_the_status(guard, status):
    reply = httpx.Response(status, json={"error": TAINTED, **OUTPUTS})
    inner = httpx.Client(transport=httpx.MockTransport(lambda request: reply))
    bare = OpenAI(base_url="http://model/v1", api_key="k", http_client=inner, max_retries=0)
    for create in ("chat.completions", "responses"):
        made = guard_openai(bare, guard)
        for name in create.split("."):
            made = getattr(made, name)
        for stream in (False, True):
            with pytest.raises(STATUSES[status], match="no such model") as caught:
                made.create(**ASKED[create.replace(".", "/")], stream=stream)
            assert (caught.value.param, caught.value.body) == ("model", SAID)


# --- streams -----------------------------------------------------------------------------

WHERE = {"item_id": "m", "output_index": 0, "content_index": 0}
CHUNK = {"choices": [{"index": 0, "delta": {"content": FALSE_MIDDLE}}]}
EVENTS = {
    "a chunk": ("chat/completions", {**CHUNK, "error": TAINTED}),
    "a completed response": (
        "responses",
        {"type": "response.completed", "response": {"output": [ITEM]}, "error": TAINTED},
    ),
    "a piece of text": (
        "responses",
        {"type": "response.output_text.delta", **WHERE, "delta": FALSE_MIDDLE, "error": TAINTED},
    ),
    "an event of no type": ("responses", {"response": {"output": [ITEM]}, "error": TAINTED}),
}


def streamed(guard, path, *events):
    """Events that leave the gateway."""
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    reply = httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})
    got = through_gateway(guard, path, ASKED[path] | {"stream": True}, reply)
    lines = [line.removeprefix("data: ") for line in got.text.splitlines() if "data: " in line]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("path", "event"), EVENTS.values(), ids=EVENTS)
def test_of_an_event_with_an_error_leaves_the_error_alone(guard, path, event):
    [told] = streamed(guard, path, event)
    assert told.pop("error") == SAID
    assert told in ({}, {"type": "error", "sequence_number": 0})


@pytest.mark.parametrize("nothing", [None, "", {}])
@pytest.mark.parametrize(("path", "event"), EVENTS.values(), ids=EVENTS)
def test_an_error_that_is_none_leaves_an_event_what_it_is(guard, path, event, nothing):
    told = streamed(guard, path, event | {"error": nothing})
    assert CANARY not in json.dumps(told)
    errors = [item["error"] for item in told if item.get("error")]
    ends = event.get("type") == "response.completed"
    # Without an end of its own the stream is cut off, and says so.
    assert [error["code"] for error in errors] == ([] if ends else ["upstream_broke_off"])
    if ends:
        assert told[-1]["type"] == "response.completed"


@pytest.mark.parametrize(("path", "event"), EVENTS.values(), ids=EVENTS)
def test_a_text_in_place_of_an_error_does_not_leave_in_a_stream(guard, path, event):
    [told] = streamed(guard, path, event | {"error": CANARY})
    assert told["error"]["message"]
    assert CANARY not in json.dumps(told)


def test_the_event_of_an_error_has_the_protocols_fields_alone(guard):
    event = {**TAINTED, "type": "error", "delta": CANARY, "response": {"output": [ITEM]}}
    [told] = streamed(guard, "responses", event)
    assert told == {
        "type": "error", "code": 7, "message": "no such model", "param": "model",
        "sequence_number": 0,
    }  # fmt: skip


@pytest.mark.parametrize("error", [TAINTED, *NEVER_SAID])
def test_a_failed_response_says_why_in_bounds(guard, error):
    failed = {"id": "r", "status": "failed", "output": [], "error": error}
    for told in (
        streamed(guard, "responses", {"type": "response.failed", "response": failed})[-1],
        {"response": through_gateway(
            guard, "responses", ASKED["responses"],
            httpx.Response(200, json=failed)).json()},
    ):  # fmt: skip
        assert CANARY not in json.dumps(told)
        if error == TAINTED:
            assert told["response"]["error"] == {"code": 7, "message": "no such model"}


def test_names_of_events_are_not_passed_on(guard):
    content = f"event: {CANARY}\ndata: [DONE]\n\n"
    reply = httpx.Response(200, text=content, headers={"content-type": "text/event-stream"})
    asked = ASKED["chat/completions"] | {"stream": True}
    got = through_gateway(guard, "chat/completions", asked, reply)
    assert CANARY not in got.text
    assert "[DONE]" in got.text
