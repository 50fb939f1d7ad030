"""Recorded requests of hosts, sent to a gateway before a scripted model."""

import json
from pathlib import Path

import httpx

from tests.chains import fake_openai
from tests.chains.fake_openai import FakeOpenAI, client_over
from tests.chains.hotel import MORE, RIGHT, SAID

FOLDER = Path(__file__).parent / "recorded"
GUIDE = ("Kestrel guide", "https://h.example/guide")
PRICES = ("Prices", "https://h.example/prices")
NOTES = (
    f"{RIGHT[:-1]} [1]. {MORE[:-1]} [2].\n\n"
    "[1] Kestrel guide (https://h.example/guide)  \n[2] Prices (https://h.example/prices)"
)


def recorded(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


async def answered(guard, monkeypatch, body, said=SAID, path="chat/completions"):
    """The reply of a gateway to a request, and the request that its model got."""
    monkeypatch.setattr(fake_openai, "ANSWER", said)
    model = FakeOpenAI()
    client = client_over("gateway", guard, model.app)
    reply = await client.post(f"/{path}", cast_to=httpx.Response, body=body)
    return reply.json(), model.requests[-1]


def pages(message):
    """Title and url of each citation of a chat message, in order."""
    cited = [item["url_citation"] for item in message["annotations"]]
    return [(item["title"], item["url"]) for item in cited]
