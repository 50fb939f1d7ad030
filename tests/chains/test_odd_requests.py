"""Requests of any shape: each is read, or refused by an error that says what is wrong.

Every value of requests that use all that is read is replaced by values of every kind of JSON;
hypothesis adds bodies that nobody would think of.
"""

import json
from contextlib import suppress

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai import OpenAI

from benchmarks.fuzz.bodies import CHAT, HOSTS, RESPONSES, keys_of
from benchmarks.fuzz.inputs import ODD, json_values, odd_bodies
from chains import guard_openai
from chains.evidence.base import EvidenceSettings
from chains.gateway import GatewaySettings, create_app
from chains.gateway.protocols import PROTOCOLS
from chains.openai_exchange import Exchange
from chains.openai_request import GuardSettings
from chains.openai_wire import Endpoint
from guardrail import BEST_OF_N
from guardrail.core.errors import GuardrailError
from tests.chains.exchanges import as_reply, reply_of
from tests.chains.hotel import RIGHT

BODIES = {Endpoint.CHAT: CHAT, Endpoint.RESPONSES: RESPONSES}
PLACES = EvidenceSettings(marks=("<c>", "</c>"))


def read(guard, endpoint, body):
    """An exchange; None for a body that was refused in words."""
    try:
        return Exchange(GuardSettings(guard=guard, evidence=PLACES), endpoint, body)
    except GuardrailError:
        return None


@pytest.mark.parametrize("endpoint", Endpoint)
def test_a_value_of_another_kind_is_read_or_refused(empty, endpoint):
    exchanges = [read(empty, endpoint, body) for body in odd_bodies(BODIES[endpoint])]
    assert sum(exchange is not None for exchange in exchanges) > len(exchanges) / 2


@pytest.mark.parametrize("endpoint", Endpoint)
async def test_what_is_asked_again_keeps_to_the_protocol(empty, endpoint):
    """Also the turns of a regeneration are put behind messages of any shape."""
    sent = []

    async def send(body):
        sent.append(body)
        return as_reply(reply_of(endpoint, RIGHT.replace("42", "97")))

    policy = BEST_OF_N.changed(candidates=1, attempts=2)
    key = "messages" if endpoint is Endpoint.CHAT else "input"
    for odd in ODD:
        guarding = GuardSettings(guard=empty, policy=policy, evidence=PLACES)
        body = {"model": "m", key: odd, "guardrail": {"evidence": [RIGHT]}}
        await Exchange(guarding, endpoint, body).whole(send)
        assert isinstance(sent[-1][key], list)
        assert [item["role"] for item in sent[-1][key][-2:]] == ["assistant", "user"]


async def test_a_server_that_refuses_several_choices_is_asked_for_each(empty):
    sent = []

    async def send(body):
        sent.append(body.get("n"))
        reply = as_reply(reply_of(Endpoint.CHAT, RIGHT))
        return reply._replace(status=400) if body.get("n", 1) > 1 else reply

    guarding = GuardSettings(guard=empty, policy=BEST_OF_N.changed(candidates=3), evidence=PLACES)
    asked = {"role": "user", "content": "How many rooms?"}
    body = {"model": "m", "messages": [asked], "guardrail": {"evidence": [RIGHT]}}
    reply = await Exchange(guarding, Endpoint.CHAT, body).whole(send)
    assert sent == [3, None, None, None]
    assert len(reply.answers) == 3


KEYS = keys_of([CHAT, RESPONSES])
WORDS = ("tool", "user", "text", "tool_result", "function_call_output", "message")
JSON_VALUES = json_values(KEYS, WORDS)


@pytest.mark.parametrize("endpoint", Endpoint)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.dictionaries(st.sampled_from(KEYS), JSON_VALUES, max_size=6))
def test_any_body_is_read_or_refused(empty, endpoint, body):
    read(empty, endpoint, body)


@pytest.mark.parametrize("name", PROTOCOLS)
async def test_a_call_of_another_gateway_is_answered_or_refused(empty, name):
    for body in HOSTS[name]:
        protocol = PROTOCOLS[name]()
        for odd in odd_bodies(body):
            with suppress(GuardrailError):
                reply, _ = await protocol.answer(odd, GuardSettings(guard=empty, evidence=PLACES))
                json.dumps(reply)


@pytest.mark.parametrize(
    "content", [b"[]", b"3", b"{", b'"odd"', b"\xff", b'{"a": "\\ud800"}', b'{"a":' * 100_000]
)
async def test_a_body_that_is_no_object_is_refused(empty, content):
    client = guard_openai(OpenAI(base_url="http://model/v1", api_key="k"), empty)
    request = httpx.Request("POST", "http://model/v1/chat/completions", content=content)
    reply = client._client._transport.handle_request(request)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "invalid_request"
    gateway = httpx.AsyncClient(
        transport=httpx.ASGITransport(
            create_app(empty, GatewaySettings(upstream="http://model/v1"))
        )
    )
    headers = {"content-type": "application/json"}
    address = "http://gateway/v1/chat/completions"
    refused = await gateway.post(address, content=content, headers=headers)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == reply.json()["error"]["message"]
