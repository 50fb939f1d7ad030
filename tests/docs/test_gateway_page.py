"""The bodies that the gateway's page shows are taken, and its replies are what comes back."""

import json

import httpx

from chains.gateway import GatewaySettings, create_app
from guardrail import Guardrail, GuardrailConfig
from tests.docs.pages import ROOT, blocks

PATHS = {"check.json": "/v1/checks", "rank.json": "/v1/rank", "feedback.json": "/v1/feedback"}


async def test_the_replies_are_those_of_the_page(tmp_path):
    shown = [block for block in blocks(ROOT / "docs" / "gateway.md") if block.language == "json"]
    places = {item.title: place for place, item in enumerate(shown) if item.title}
    assert set(places) == set(PATHS)
    with Guardrail(GuardrailConfig(log=tmp_path / "scores.sqlite")) as guard:
        transport = httpx.ASGITransport(create_app(guard, GatewaySettings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            for title, path in PATHS.items():
                reply = await client.post(path, json=json.loads(shown[places[title]].text))
                assert reply.status_code == 200, reply.text
                assert holds(reply.json(), json.loads(shown[places[title] + 1].text)), title


def holds(whole, part):
    """Whether a document holds all of another one."""
    if isinstance(part, dict):
        return all(key in whole and holds(whole[key], value) for key, value in part.items())
    if isinstance(part, list):
        pairs = zip(whole, part, strict=True) if len(whole) == len(part) else [({}, {"": 0})]
        return all(holds(item, other) for item, other in pairs)
    return whole == part
