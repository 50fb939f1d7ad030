"""Calls that were meant for another path are told which, and all bodies are described."""

import logging

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app, serving
from chains.gateway.settings import PROTOCOL_PATHS as PROTOCOLS
from guardrail import GuardrailConfig


@pytest.fixture
def client(guard):
    settings = GatewaySettings(protocols=tuple(PROTOCOLS))
    transport = httpx.ASGITransport(create_app(guard, settings))
    return httpx.AsyncClient(transport=transport, base_url="http://gateway")


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
