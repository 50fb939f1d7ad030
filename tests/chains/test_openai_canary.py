"""Hundreds of randomly chunked streams, each with a sentence that the judge must reject."""

import random

import httpx
import pytest
from openai import AsyncOpenAI

from chains import guard_openai
from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import CANARY, QUESTION, scripted_guard
from tests.chains.fake_openai import FakeOpenAI

STREAMS = 150


@pytest.fixture(scope="module")
def guard():
    config = GuardrailConfig(policy=STRICT)
    with scripted_guard(config=config) as guard:
        guard.warm_up()
        yield guard


def _client(way, guard, fake):
    http = httpx.AsyncClient(transport=fake.in_process())
    if way == "gateway":
        app = create_app(guard, GatewaySettings(upstream="http://model/v1"), client=http)
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app))
    client = AsyncOpenAI(base_url="http://model/v1", api_key="k", http_client=http)
    return guard_openai(client, guard) if way == "client" else client


async def _bytes_seen(client, endpoint):
    """All that a consumer gets, raw."""
    if endpoint == "chat":
        asked = {"messages": [{"role": "user", "content": QUESTION}]}
        call = client.chat.completions.with_streaming_response.create
    else:
        asked = {"input": QUESTION}
        call = client.responses.with_streaming_response.create
    async with call(model="plain", stream=True, **asked) as response:
        return b"".join([chunk async for chunk in response.iter_bytes()])


@pytest.mark.parametrize("way", ["client", "gateway"])
async def test_no_byte_of_a_rejected_sentence_is_seen(way, guard):
    fake = FakeOpenAI()
    client = _client(way, guard, fake)
    rng = random.Random(3)
    for seed in range(STREAMS):
        fake.seed = seed
        seen = await _bytes_seen(client, rng.choice(["chat", "responses"]))
        for secret in (CANARY.encode(), CANARY[:8].encode(), b"May 1999"):
            assert secret not in seen
        assert b"Mary Wollstonecraft" in seen


@pytest.mark.parametrize("endpoint", ["chat", "responses"])
async def test_without_the_guardrail_it_is_seen(endpoint):
    fake = FakeOpenAI()
    assert CANARY.encode() in await _bytes_seen(_client("bare", None, fake), endpoint)
