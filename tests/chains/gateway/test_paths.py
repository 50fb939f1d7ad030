"""Calls that were meant for another path are told which, and all bodies are described."""

import logging
import time

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app, serving
from chains.gateway.protocols import PROTOCOLS
from guardrail import GuardrailConfig


@pytest.fixture
def client(guard):
    settings = GatewaySettings(protocols=tuple(PROTOCOLS))
    transport = httpx.ASGITransport(create_app(guard, settings))
    return httpx.AsyncClient(transport=transport, base_url="http://gateway")


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/v1/chekcs", "/v1/checks"),
        ("/v1/check", "/v1/checks"),
        ("/v1/ranks", "/v1/rank"),
        ("/v1/feedbak", "/v1/feedback"),
        ("/v1/chat/completion", "/v1/chat/completions"),
        ("/v1/response", "/v1/responses"),
        ("/checks", "/v1/checks"),
        ("/chat/completions", "/v1/chat/completions"),
        ("/healtz", "/healthz"),
        ("/dashbord", "/dashboard"),
    ],
)
async def test_a_misspelled_path_is_told_with_the_nearest(client, path, near):
    reply = await client.post(path, json={})
    assert reply.status_code == 404
    assert reply.json()["error"]["message"].endswith(f"did you mean {near}?")


async def test_a_long_path_is_compared_with_none(client):
    """Comparing takes the square of its length, on the event loop."""
    begin = time.process_time()
    for _ in range(20):
        reply = await client.post(f"/v1/check{'s' * 40_000}", json={})
        assert reply.status_code in (403, 404)
        assert "did you mean" not in reply.json()["error"]["message"]
    assert time.process_time() - begin < 20.0  # below 1 s; compared with each it takes minutes


async def test_another_method_is_told_the_right_one(client):
    reply = await client.get("/v1/checks")
    assert reply.status_code == 405
    assert reply.json()["error"]["message"] == "GET /v1/checks: use POST"


async def test_every_body_is_described(client):
    described = (await client.get("/openapi.json")).json()
    schemas = described["components"]["schemas"]
    posts = {path: item["post"] for path, item in described["paths"].items() if "post" in item}
    assert {"/v1/checks", "/v1/chat/completions", "/v1/embeddings", "/portkey/webhook"} <= set(
        posts
    )
    for path, call in posts.items():
        assert call["requestBody"]["content"]["application/json"]["schema"], path

    def fields(path):
        schema = posts[path]["requestBody"]["content"]["application/json"]["schema"]
        return schemas[schema["$ref"].rpartition("/")[2]]["properties"]

    assert {"answer", "evidence", "passages", "triples", "policy"} <= set(fields("/v1/checks"))
    assert "answers" in fields("/v1/rank")
    assert set(fields("/v1/feedback")) >= {"record_id", "thumb", "correction", "sentence"}
    assert "guardrail" in fields("/v1/chat/completions")
    assert references(described) <= {f"#/components/schemas/{name}" for name in schemas}


def references(value):
    """All ``$ref`` of a JSON document."""
    if isinstance(value, list):
        return {reference for item in value for reference in references(item)}
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own | references(list(value.values()))
    return set()


@pytest.mark.parametrize(
    ("upstream", "told"),
    [
        ("http://user:word@model:9/", "http://model:9/chat/completions"),
        ("http://model:9/v1", None),
        (None, None),
    ],
)
def test_an_upstream_without_a_path_is_told_what_is_called(monkeypatch, caplog, upstream, told):
    monkeypatch.setattr(serving.uvicorn, "run", lambda *_, **__: None)
    caplog.set_level(logging.WARNING)
    config = GuardrailConfig(judge="none", graph={"location": "none"})
    serving.run(config, GatewaySettings(port=0, upstream=upstream))
    assert (told or "has no path") in caplog.text if told else "has no path" not in caplog.text
    assert "word" not in caplog.text
