"""LiteLLM: its content parts, and the calls of its ``generic_guardrail_api``."""

from chains.evidence import Source
from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, Asked, found, pages, recorded
from tests.chains.hotel import HOTEL_QUESTION, SECRET

PATH = "http://gateway/beta/litellm_basic_guardrail_api"


def chat():
    return {"model": "plain", "messages": recorded("litellm_request")["structured_messages"]}


def test_parts_in_order():
    evidence, sources = found(chat())
    assert evidence == [
        ("The Kestrel Hotel has 42 rooms.", *GUIDE),
        ("Breakfast costs 12 euros.", *PRICES),
    ]
    assert sources == (Source.PARTS,)


async def test_citations_have_title_and_url(empty, monkeypatch):
    asked = Asked(empty, monkeypatch)
    message = await asked.chat(chat())
    assert message["content"] == NOTES
    assert pages(message) == [GUIDE, PRICES]
    assert [part["type"] for part in asked.sent["messages"][0]["content"]] == ["text"] * 3
    assert asked.sent["messages"][0]["content"][-1]["text"] == HOTEL_QUESTION


async def test_a_response_is_judged_by_the_evidence_of_its_request(empty, monkeypatch):
    asked = Asked(empty, monkeypatch, protocols="litellm")
    first = await asked.http.post(PATH, json=recorded("litellm_request"))
    assert first.json() == {"action": "NONE"}
    reply = await asked.http.post(PATH, json=recorded("litellm_response"))
    assert reply.json()["action"] == "GUARDRAIL_INTERVENED"
    assert reply.json()["texts"] == [NOTES]
    assert SECRET not in reply.text
