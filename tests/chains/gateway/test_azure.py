"""Azure's clients call the gateway at the addresses that they know."""

import httpx
import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI
from starlette.applications import Starlette
from starlette.routing import Mount

from chains.gateway import GatewaySettings, create_app
from tests.chains.conftest import CANARY, QUESTION, TRUE_START
from tests.chains.fake_openai import served

MESSAGES = [{"role": "user", "content": QUESTION}]
VERSION = "2024-10-21"
BODY = {"messages": MESSAGES}


@pytest.fixture
def gateway(upstream, strict_guard, in_process):
    def make(**settings):
        return in_process(
            create_app(strict_guard, GatewaySettings(**{"upstream": upstream, **settings}))
        )

    return make


@pytest.mark.parametrize("stream", [False, True])
async def test_azures_own_client_gets_judged_answers(gateway, fake, stream):
    client = AsyncAzureOpenAI(
        azure_endpoint="http://gateway", api_key="key-of-azure", api_version=VERSION,
        http_client=gateway(), max_retries=0,
    )  # fmt: skip
    reply = await client.chat.completions.create(model="plain", messages=MESSAGES, stream=stream)
    if stream:
        pieces = [choice.delta.content async for chunk in reply for choice in chunk.choices]
        text = "".join(filter(None, pieces))
    else:
        text = reply.choices[0].message.content
    assert TRUE_START.rstrip(".") in text
    assert CANARY not in text
    assert fake.requests[-1]["model"] == "plain"
    assert fake.headers[-1]["api-key"] == "key-of-azure"


async def test_azures_second_address_is_that_of_openai(gateway):
    client = AsyncOpenAI(base_url="http://gateway/openai/v1", api_key="k", http_client=gateway())
    reply = await client.responses.create(model="plain", input=QUESTION)
    assert CANARY not in reply.output_text
    assert [model.id async for model in client.models.list()] == ["plain"]


async def test_the_deployment_is_the_model_where_the_body_names_none(gateway, fake):
    path = f"/openai/deployments/plain/chat/completions?api-version={VERSION}"
    reply = await gateway().post(path, json=BODY)
    assert reply.status_code == 200
    assert fake.requests[-1]["model"] == "plain"


async def test_keys_and_routes_hold_there_as_well(gateway):
    path = "/openai/deployments/plain/chat/completions"
    client = gateway(keys="first", upstream_key="u", routes="plain=annotate")
    assert (await client.post(path, json=BODY)).status_code == 401
    reply = await client.post(path, json=BODY, headers={"api-key": "first"})
    assert reply.status_code == 200
    assert CANARY in reply.json()["choices"][0]["message"]["content"]  # marked, not removed


@pytest.mark.parametrize(
    "path",
    [
        "/openai/deployments/plain/completions",
        "/openai/deployments/plain/assistants",
        "/openai/deployments/%2E%2E/chat/completions",
        "/openai/deployments/plain",
        "/openai/files",
    ],
)
async def test_what_is_not_judged_stays_closed_there(gateway, path):
    reply = await gateway().post(path, json={"model": "plain", "prompt": "x"})
    assert reply.status_code in (403, 404)
    assert CANARY not in reply.text


async def test_an_azure_resource_is_called_as_azure_is(fake, strict_guard, in_process):
    seen = []

    async def azure(scope, receive, send):
        if scope["type"] == "http":
            seen.append((scope["path"], scope["query_string"].decode()))
            scope = {**scope, "path": scope["path"].replace("/openai", "/v1", 1)}
        await fake.app(scope, receive, send)

    with served(Starlette(routes=[Mount("/", azure)])) as url:
        settings = GatewaySettings(upstream=f"{url}/openai", upstream_key="key-of-the-resource")
        client = in_process(create_app(strict_guard, settings))
        path = f"/openai/deployments/plain/chat/completions?api-version={VERSION}"
        reply = await client.post(path, json=BODY)
    assert reply.status_code == 200
    assert CANARY not in reply.text
    assert seen == [("/openai/deployments/plain/chat/completions", f"api-version={VERSION}")]
    assert fake.headers[-1]["api-key"] == "key-of-the-resource"
    assert "authorization" not in fake.headers[-1]


async def test_other_paths_stay_what_they_are(gateway):
    reply: httpx.Response = await gateway().get("/openai/")
    assert reply.status_code == 404
