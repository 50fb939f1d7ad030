"""Requests of any shape: each is read, or refused by an error that says what is wrong.

Every value of requests that use all that is read is replaced by values of every kind of JSON;
hypothesis adds bodies that nobody would think of.
"""

import json
from contextlib import suppress
from copy import deepcopy

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai import OpenAI

from chains import guard_openai
from chains.evidence import EvidenceSettings
from chains.gateway import GatewaySettings, create_app
from chains.gateway.protocols import PROTOCOLS
from chains.openai_exchange import Endpoint, Exchange, Reply
from chains.openai_text import Guarding
from guardrail import BEST_OF_N, STRICT, GuardrailConfig
from guardrail.core.errors import GuardrailError
from tests.chains.conftest import scripted_guard
from tests.chains.hosts.asking import recorded
from tests.chains.hotel import HOTEL_QUESTION, RIGHT

ODD = (
    None, True, 3, 1.5, "", "odd", "{", "\ud800", [], [3], [None], [[]], {}, {"a": 1}, [{}],
    {"id": []}, {"text": {}}, {"name": ["a"]},
)  # fmt: skip
FIELD = {
    "evidence": [
        RIGHT,
        {"text": RIGHT, "id": "d1", "title": "Rooms", "url": "https://h.example", "triple": None},
        {"triple": ["Kestrel", "rooms", 42]},
        {"page_content": RIGHT, "metadata": {"source": "rooms.md", "title": "Rooms"}, "id": "d2"},
    ],
    "policy": "strict",
    "strictness": "balanced",
}
CHAT = {
    "model": "m",
    "n": 1,
    "stream": False,
    "stream_options": {"include_usage": True},
    "response_format": {"type": "text"},
    "system": [{"type": "text", "text": "<c>The pool is open.</c>"}],
    "groundingSources": [RIGHT],
    "qna": {"query": HOTEL_QUESTION},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": HOTEL_QUESTION},
                {"type": "grounding_source", "text": RIGHT, "id": "d1", "title": "T", "url": "u"},
                {"guardContent": {"text": {"text": RIGHT, "qualifiers": ["grounding_source"]}}},
                {"type": "document", "source": {"type": "text", "data": RIGHT}, "title": "T"},
                {"searchResult": {"source": "u", "title": "T", "content": [{"text": RIGHT}]}},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"text": RIGHT}]},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c2", "name": "look", "input": {}}],
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "name": "look",
            "content": [{"title": "T", "body": RIGHT, "price": 3, "metadata": {"id": 1}}],
        },
        {"role": "user", "content": HOTEL_QUESTION},
    ],
    "guardrail": FIELD,
}
RESPONSES = {
    "model": "m",
    "stream": False,
    "instructions": "<c>The pool is open.</c>",
    "text": {"format": {"type": "text"}},
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Rooms?"}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"rooms": 42}'},
        {
            "type": "file_search_call",
            "results": [
                {"text": RIGHT, "file_id": "f", "filename": "f.md", "attributes": {"url": "u"}}
            ],
        },
        {"role": "user", "content": HOTEL_QUESTION},
    ],
    "guardrail": FIELD,
}
REPLIES = {
    Endpoint.CHAT: {"choices": [{"index": 0, "message": {"role": "assistant", "content": RIGHT}}]},
    Endpoint.RESPONSES: {
        "output": [{"type": "message", "content": [{"type": "output_text", "text": RIGHT}]}]
    },
}
BODIES = {Endpoint.CHAT: CHAT, Endpoint.RESPONSES: RESPONSES}
PLACES = EvidenceSettings(marks=("<c>", "</c>"))


def paths(value, path=()):
    """Where each value of a body stands, the body itself left out."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, held in inner:
        yield (*path, key)
        if isinstance(held, dict | list):
            yield from paths(held, (*path, key))


def odd_bodies(body):
    """The body, once for each of its values and each odd one in its place."""
    for path in paths(body):
        for odd in ODD:
            changed = deepcopy(body)
            *outer, last = path
            held = changed
            for key in outer:
                held = held[key]
            held[last] = odd
            yield changed


@pytest.fixture(scope="module")
def guard():
    config = GuardrailConfig(graph={"location": "none"}, policy=STRICT)
    with scripted_guard(config=config, retriever=lambda question: []) as guard:
        yield guard


def read(guard, endpoint, body):
    """An exchange; None for a body that was refused in words."""
    try:
        return Exchange(Guarding(guard=guard, evidence=PLACES), endpoint, body)
    except GuardrailError:
        return None


@pytest.mark.parametrize("endpoint", Endpoint)
def test_a_value_of_another_kind_is_read_or_refused(guard, endpoint):
    exchanges = [read(guard, endpoint, body) for body in odd_bodies(BODIES[endpoint])]
    assert sum(exchange is not None for exchange in exchanges) > len(exchanges) / 2


@pytest.mark.parametrize("endpoint", Endpoint)
async def test_what_is_asked_again_keeps_to_the_protocol(guard, endpoint):
    """Also the turns of a regeneration are put behind messages of any shape."""
    sent = []

    async def send(body):
        sent.append(body)
        return Reply(200, (), json.dumps(wrong).encode())

    wrong = json.loads(json.dumps(REPLIES[endpoint]).replace("42", "97"))
    policy = BEST_OF_N.changed(candidates=1, attempts=2)
    key = "messages" if endpoint is Endpoint.CHAT else "input"
    for odd in ODD:
        guarding = Guarding(guard=guard, policy=policy, evidence=PLACES)
        body = {"model": "m", key: odd, "guardrail": {"evidence": [RIGHT]}}
        await Exchange(guarding, endpoint, body).whole(send)
        assert isinstance(sent[-1][key], list)
        assert [item["role"] for item in sent[-1][key][-2:]] == ["assistant", "user"]


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = st.sampled_from(
    sorted({key for body in (CHAT, RESPONSES) for path in paths(body) for key in path
            if isinstance(key, str)})
)  # fmt: skip
WORDS = st.sampled_from(["tool", "user", "text", "tool_result", "function_call_output", "message"])
JSON_VALUES = st.recursive(
    LEAVES | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize("endpoint", Endpoint)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.dictionaries(KEYS, JSON_VALUES, max_size=6))
def test_any_body_is_read_or_refused(guard, endpoint, body):
    read(guard, endpoint, body)


PROTOCOL_BODIES = {
    "litellm": [recorded("litellm_request"), recorded("litellm_response")],
    "portkey": [recorded("portkey")],
    "fms": [
        {
            "content": RIGHT,
            "context_type": "docs",
            "context": [RIGHT],
            "detector_params": {"question": HOTEL_QUESTION},
        }
    ],
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PROTOCOLS)
async def test_a_call_of_another_gateway_is_answered_or_refused(guard, name):
    for body in PROTOCOL_BODIES[name]:
        answer = PROTOCOLS[name][1](Guarding(guard=guard, evidence=PLACES))
        for odd in odd_bodies(body):
            with suppress(GuardrailError):
                told, _ = await answer(odd)
                json.dumps(told)


@pytest.mark.parametrize("content", [b"[]", b"3", b"{", b'"odd"', b"\xff", b'{"a": "\\ud800"}'])
async def test_a_body_that_is_no_object_is_refused(guard, content):
    client = guard_openai(OpenAI(base_url="http://model/v1", api_key="k"), guard)
    request = httpx.Request("POST", "http://model/v1/chat/completions", content=content)
    reply = client._client._transport.handle_request(request)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "invalid_request"
    gateway = httpx.AsyncClient(
        transport=httpx.ASGITransport(
            create_app(guard, GatewaySettings(upstream="http://model/v1"))
        )
    )
    headers = {"content-type": "application/json"}
    address = "http://gateway/v1/chat/completions"
    refused = await gateway.post(address, content=content, headers=headers)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == reply.json()["error"]["message"]
