"""What people read of a fact's citation is its label and its page: no URN, no id of a node."""

import httpx
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from openai import AsyncOpenAI

from chains import EvidenceMode, EvidenceSettings, GuardrailRunnable, guard_openai
from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, GuardrailConfig
from tests.chains import fake_openai
from tests.chains.conftest import scripted_guard
from tests.chains.fake_openai import FakeOpenAI
from tests.chains.hotel import DOCUMENTS

GRAPH = """
@prefix : <http://example.org/thing/> .
@prefix p: <http://example.org/property/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:1 rdfs:label "Merlin Hotel"@en ; p:rooms "42" ; p:chef <urn:staff:9> .
<urn:staff:9> rdfs:label "Otto Vik"@en ; p:cooks "fish" .
p:rooms rdfs:label "rooms"@en . p:chef rdfs:label "chef"@en . p:cooks rdfs:label "cooks"@en .
"""
QUESTION = "How many rooms does the Merlin Hotel have, and who is Otto Vik?"
SAID = "The Merlin Hotel has 42 rooms. Otto Vik cooks fish. Dogs are welcome."
DOGS = [document for document in DOCUMENTS if document.title == "Dogs"]
TEXTS = {
    "kalma": (
        "The Merlin Hotel has 42 [Merlin Hotel, rooms: 42] rooms. Otto Vik cooks fish "
        "[Otto Vik, cooks: fish]. Dogs are welcome [1].\n\n[1] Dogs (https://h.example/dogs)"
    ),
    "footnotes": (
        "The Merlin Hotel has 42 [1] rooms. Otto Vik cooks fish [2]. Dogs are welcome [3].\n\n"
        "[1] Merlin Hotel, rooms: 42  \n[2] Otto Vik, cooks: fish  \n[3] Dogs (https://h.example/dogs)"
    ),
}
TITLES = ["Merlin Hotel, rooms: 42", "Otto Vik, cooks: fish", "Dogs"]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A guardrail on a graph whose ids are IRIs, one of them with a page."""
    path = tmp_path_factory.mktemp("graph") / "own.ttl"
    path.write_text(GRAPH)
    config = GuardrailConfig(graph={"location": str(path)}, policy=STRICT)
    with scripted_guard(config=config, retriever=None) as guard:
        yield guard


@pytest.mark.parametrize("style", TEXTS)
@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_chain_with_evidence_beside_the_graph(own, style, way):
    model = GenericFakeChatModel(messages=iter([AIMessage(SAID)]))
    chain = GuardrailRunnable(
        own, model, evidence=lambda _: DOGS, evidence_mode="both", style=style
    )
    if way == "invoke":
        message = chain.invoke(QUESTION)
    else:
        first, *rest = chain.stream(QUESTION)
        message = sum(rest, first)
    assert message.content == TEXTS[style]
    cited = message.response_metadata["guardrail"]["citations"]
    assert [item["title"] for item in cited] == TITLES
    assert [item.get("url") for item in cited] == [
        "http://example.org/thing/1", None, "https://h.example/dogs",
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["client", "gateway"])
@pytest.mark.parametrize("endpoint", ["chat", "responses"])
async def test_openai_with_evidence_beside_the_graph(own, way, endpoint, monkeypatch):
    monkeypatch.setattr(fake_openai, "ANSWER", SAID)
    http = httpx.AsyncClient(transport=httpx.ASGITransport(FakeOpenAI().app))
    if way == "gateway":
        settings = GatewaySettings(upstream="http://model/v1", evidence_mode="both")
        app = create_app(own, settings, client=http)
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app))
    client = AsyncOpenAI(base_url="http://model/v1", api_key="k", http_client=http)
    if way == "client":
        client = guard_openai(client, own, evidence=EvidenceSettings(mode=EvidenceMode.BOTH))
    extra = {"guardrail": {"evidence": [dog.model_dump() for dog in DOGS]}}
    if endpoint == "chat":
        asked = [{"role": "user", "content": QUESTION}]
        reply = await client.chat.completions.create(
            model="plain", messages=asked, extra_body=extra
        )
        text = reply.choices[0].message.content
        cited = [annotation.url_citation for annotation in reply.choices[0].message.annotations]
    else:
        reply = await client.responses.create(model="plain", input=QUESTION, extra_body=extra)
        text, cited = reply.output_text, reply.output[-1].content[0].annotations
    assert text == TEXTS["kalma"]
    assert [item.title for item in cited] == TITLES
    assert [item.url for item in cited] == [
        "http://example.org/thing/1", "", "https://h.example/dogs",
    ]  # fmt: skip


def test_a_node_with_a_page_shows_it():
    """The people graph knows the page of every person."""
    question, said = "Who was Mary Shelley?", "Her mother was Mary Wollstonecraft."
    with scripted_guard(config=GuardrailConfig(policy=STRICT), retriever=None) as guard:
        model = GenericFakeChatModel(messages=iter([AIMessage(said)]))
        chain = GuardrailRunnable(
            guard, model, evidence=lambda _: DOGS, evidence_mode="both", style="footnotes"
        )
        message = chain.invoke(question)
    cited = message.response_metadata["guardrail"]["citations"]
    page = "https://www.wikidata.org/wiki/Q47152"
    hers = [item for item in cited if item["extras"]["triple"]["entity"] == "Q47152"]
    assert hers
    for her in hers:
        assert her["url"] == page
        assert f"{her['title']} ({page})" in message.content
    assert "urn:" not in str(message)
