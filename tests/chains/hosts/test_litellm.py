"""LiteLLM: its content parts, and the calls of its ``generic_guardrail_api``."""

import asyncio
import json
import os
from functools import partial

import httpx
import pytest

from chains.evidence import Source
from chains.evidence.base import Found
from chains.gateway import GatewaySettings, litellm, serving
from chains.gateway.litellm import CALLS, LiteLLMGuardrail, PendingRequests
from chains.openai_request import GuardSettings
from guardrail import STRICT, GuardrailConfig
from guardrail.core.errors import GuardrailError
from guardrail.core.types import Passage, Problem, Triple
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


async def test_requests_that_wait_are_bounded_in_memory(empty, monkeypatch):
    """The oldest go first; a response whose request is gone says so."""
    monkeypatch.setattr(litellm, "STORE_BYTES", 250_000)
    pending = PendingRequests()
    host = partial(LiteLLMGuardrail(pending), guarding=GuardSettings(guard=empty))
    for call in range(20):
        await host(request_of(str(call), f"{RIGHT} {'x' * 50_000}."))
        await host(request_of(str(call), f"{RIGHT} {'x' * 50_000}."))  # the same call once more
    assert [call for call in range(20) if pending.get(str(call))] == [16, 17, 18, 19]
    _, (known,) = await host(response_of("19"))
    assert known.errors == ()
    assert known.action == "pass"
    _, (gone,) = await host(response_of("0"))
    assert any("is not stored" in problem.message for problem in gone.errors)
    handed_over = {"evidence": [{"text": "x" * 300_000}]}  # alone above the bound
    await host(request_of("large", "") | {"additional_provider_specific_params": handed_over})
    assert pending.get("large") is pending.get("19") is None


async def test_requests_that_wait_are_bounded_in_number(empty):
    pending = PendingRequests()
    host = partial(LiteLLMGuardrail(pending), guarding=GuardSettings(guard=empty))
    for call in range(CALLS + 10):
        await host(request_of(str(call), RIGHT))
    assert [pending.get(call) is None for call in ("9", "10")] == [True, False]
    assert json.loads(json.dumps((await host(response_of("1")))[0]))["action"]


def test_a_request_goes_to_one_worker_and_its_response_to_another(monkeypatch):
    replies = []

    async def called(body):
        app = serving.worker_app()
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://gateway") as client,
        ):
            replies.append((await client.post(PATH, json=body)).json())

    text = "Mary Shelley was a writer."
    triples = {"evidence": [{"triple": ["Mary Shelley", "occupation", "writer"]}]}
    bodies = [
        request_of("shared", "") | {"additional_provider_specific_params": triples},
        response_of("shared") | {"texts": [text]},
        response_of("other") | {"texts": [text]},
    ]

    def workers(*_, **__):
        for body in bodies:
            asyncio.run(called(body))

    monkeypatch.setattr(serving.uvicorn, "run", workers)
    config = GuardrailConfig(judge="none", graph={"location": "none"}, policy=STRICT)
    before = dict(os.environ)
    serving.run(config, GatewaySettings(workers=2, protocols="litellm"))
    assert dict(os.environ) == before
    assert [reply["action"] for reply in replies] == ["NONE", "GUARDRAIL_INTERVENED", "BLOCKED"]
    assert "[Mary Shelley, occupation: writer]" in replies[1]["texts"][0]


def test_a_request_is_kept_as_it_is():
    passage = Passage(text="Zoë \ud800 \u0000", id="1", url="https://h.example")
    triple = Triple(subject="Ada", property="born", value="1815", subject_id="Q7259")
    problem = Problem(part="evidence", message="cut")
    held = Found((triple, passage), (Source.TOOLS, Source.CALLER), "Who?", (problem,))
    pending = PendingRequests()
    pending.add("call \ud800", "What\udfff?", held, "gpt")
    assert pending.get("call \ud800") == ("What\udfff?", held, "gpt")
    assert pending.get("call") is None


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(GuardrailError, match="cannot be stored"):
        PendingRequests(str(tmp_path / "nowhere" / "requests.sqlite"))
