"""LiteLLM: its content parts, and the calls of its ``generic_guardrail_api``."""

import json

from chains.evidence import Source
from chains.gateway.protocols.litellm import CALLS, LiteLLMGuardrail
from chains.openai_text import Guarding
from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, Asked, found, pages, recorded
from tests.chains.hotel import HOTEL_QUESTION, RIGHT, SECRET

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


def request_of(call, text):
    return {
        "input_type": "request",
        "litellm_call_id": call,
        "texts": [HOTEL_QUESTION],
        "structured_messages": [{"role": "tool", "content": text}],
    }


def response_of(call):
    return {"input_type": "response", "litellm_call_id": call, "texts": [RIGHT]}


async def test_requests_that_wait_are_bounded_in_memory(empty):
    """The oldest go first; a response whose request is gone says so."""
    host = LiteLLMGuardrail(Guarding(guard=empty), kept_bytes=250_000)
    for call in range(20):
        await host(request_of(str(call), f"{RIGHT} {'x' * 50_000}."))
        await host(request_of(str(call), f"{RIGHT} {'x' * 50_000}."))  # the same call once more
        kept = [held.size for held in host._asked.values()]
        assert sum(kept) == host._size <= 250_000
    assert list(host._asked) == ["16", "17", "18", "19"]
    _, (known,) = await host(response_of("19"))
    assert known.errors == ()
    assert known.action == "pass"
    _, (gone,) = await host(response_of("0"))
    assert any("no request is kept" in problem.message for problem in gone.errors)
    await host(request_of("large", "x" * 300_000 + "."))  # alone above the bound
    assert host._size == sum(held.size for held in host._asked.values())


async def test_requests_that_wait_are_bounded_in_number(empty):
    host = LiteLLMGuardrail(Guarding(guard=empty))
    for call in range(CALLS + 10):
        await host(request_of(str(call), RIGHT))
    assert len(host._asked) == CALLS
    assert json.loads(json.dumps((await host(response_of("1")))[0]))["action"]
