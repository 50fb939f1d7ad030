"""Recorded requests of hosts, sent to a gateway before a scripted model."""

import json
from pathlib import Path

import httpx

from chains.evidence import EvidenceSettings, RequestField
from chains.evidence.openai import request_evidence
from chains.gateway import GatewaySettings, create_app
from tests.chains import fake_openai
from tests.chains.fake_openai import FakeOpenAI
from tests.chains.hotel import MORE, RIGHT, SAID

FOLDER = Path(__file__).parent / "recorded"
GUIDE = ("Kestrel guide", "https://h.example/guide")
PRICES = ("Prices", "https://h.example/prices")
NOTES = (
    f"{RIGHT[:-1]} [1]. {MORE[:-1]} [2].\n\n"
    "[1] Kestrel guide (https://h.example/guide)  \n[2] Prices (https://h.example/prices)"
)


def recorded(name):
    """A payload as its host sends it."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def chat_request(name):
    """A recorded chat request; LiteLLM's hook repeats its messages."""
    if name != "litellm":
        return recorded(name)
    return {"model": "plain", "messages": recorded("litellm_request")["structured_messages"]}


def found(body):
    """Evidence of a chat request as (text, title, url), in order, and where it came from."""
    evidence = request_evidence(body, RequestField(), EvidenceSettings())
    return [(item.text, item.title, item.url) for item in evidence.evidence], evidence.sources


class Asked:
    """A gateway before a model with a given answer.

    Attributes:
        http: Client of the gateway.
        upstream: Client of the model itself.
        sent: The last request that the model got.
    """

    def __init__(self, guard, monkeypatch, said=SAID, **settings):
        monkeypatch.setattr(fake_openai, "ANSWER", said)
        self._model = FakeOpenAI()
        self.upstream = httpx.AsyncClient(transport=httpx.ASGITransport(self._model.app))
        settings = GatewaySettings(upstream="http://model/v1", **settings)
        app = create_app(guard, settings, client=self.upstream)
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://gateway/v1"
        )

    @property
    def sent(self):
        return self._model.requests[-1]

    def seed(self, seed):
        """Of the sizes of the pieces that streams come in."""
        self._model.seed = seed

    async def chat(self, body):
        """The message of the reply to a chat request."""
        reply = await self.http.post("/chat/completions", json=body)
        assert reply.status_code == 200, reply.text
        return reply.json()["choices"][0]["message"]


def pages(message):
    """Title and url of each citation of a chat message, in order."""
    cited = [item["url_citation"] for item in message["annotations"]]
    return [(item["title"], item["url"]) for item in cited]
