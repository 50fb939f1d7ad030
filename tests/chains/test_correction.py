"""What the evidence contradicts is corrected through every way in, and told there."""

import json

import httpx
import pytest
from langchain.agents import create_agent
from openai import AsyncOpenAI

from chains import GuardedChatModel, GuardrailMiddleware, GuardrailRunnable, guard_openai
from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT_CORRECT, GuardrailConfig, Triple
from guardrail.bulk.run import run_bulk
from guardrail.bulk.scorer import BulkScorer
from tests.chains import fake_openai
from tests.chains.conftest import scripted_guard
from tests.chains.fake_openai import FakeOpenAI
from tests.chains.hotel import HOTEL_QUESTION
from tests.chains.test_middleware import scripted
from tests.chains.test_runnable import model

FACTS = [Triple("Kestrel Hotel", "rooms", "42"), Triple("Kestrel Hotel", "town", "Bergen")]
WRONG = "The Kestrel Hotel has 97 rooms."
SAID = f"The Kestrel Hotel stands in the town Bergen. {WRONG}"
RIGHT = "The Kestrel Hotel stands in the town Bergen. The Kestrel Hotel has 42 rooms."
CHAT = {"model": "plain", "messages": [{"role": "user", "content": HOTEL_QUESTION}]}


@pytest.fixture(scope="module")
def correcting():
    config = GuardrailConfig(policy=STRICT_CORRECT, graph="none")
    with scripted_guard(config=config, retriever=lambda question: FACTS) as guard:
        yield guard


@pytest.fixture
def http(monkeypatch):
    """A model's server that gives the answer with the error in it."""
    monkeypatch.setattr(fake_openai, "ANSWER", SAID)
    return httpx.AsyncClient(transport=httpx.ASGITransport(FakeOpenAI().app))


def client_of(way, guard, http):
    if way == "client":
        inner = AsyncOpenAI(base_url="http://model/v1", api_key="k", http_client=http)
        return guard_openai(inner, guard, policy="strict-correct", style="none")
    settings = GatewaySettings(upstream="http://model/v1", style="none")
    app = create_app(guard, settings, client=http)
    outer = httpx.AsyncClient(transport=httpx.ASGITransport(app))
    return AsyncOpenAI(base_url="http://model/v1", api_key="k", http_client=outer)


def assert_told(told, text):
    """That the text left corrected, and that what is told beside it says so."""
    assert text == RIGHT
    assert told["action"] == "correct"
    first, second = told["sentences"]
    assert first["correction"] is None
    assert second["correction"]["original"] == WRONG
    (span,) = [span for span in second["spans"] if span["kind"] == "corrected"]
    assert (span["text"], span["instead_of"]) == ("42", "97")


@pytest.mark.parametrize("way", ["client", "gateway"])
async def test_a_chat(way, correcting, http):
    reply = await client_of(way, correcting, http).chat.completions.create(**CHAT)
    message = reply.choices[0].message
    assert_told(message.guardrail, message.content)


@pytest.mark.parametrize("way", ["client", "gateway"])
async def test_a_chat_that_is_streamed(way, correcting, http):
    client = client_of(way, correcting, http)
    stream = await client.chat.completions.create(**CHAT, stream=True)
    chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    (told,) = [delta.guardrail for delta in deltas if "guardrail" in delta.model_extra]
    assert_told(told, "".join(delta.content or "" for delta in deltas))


@pytest.mark.parametrize("way", ["client", "gateway"])
async def test_a_response(way, correcting, http):
    client = client_of(way, correcting, http)
    reply = await client.responses.create(model="plain", input=HOTEL_QUESTION)
    assert_told(reply.output[1].content[0].guardrail, reply.output_text)


@pytest.mark.parametrize("way", ["client", "gateway"])
async def test_a_response_that_is_streamed(way, correcting, http):
    client = client_of(way, correcting, http)
    stream = await client.responses.create(model="plain", input=HOTEL_QUESTION, stream=True)
    events = [event async for event in stream]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    done = next(event.response for event in events if event.type == "response.completed")
    assert_told(done.output[1].content[0].guardrail, "".join(deltas))
    assert done.output_text == RIGHT


@pytest.mark.parametrize("kind", [GuardrailRunnable, GuardedChatModel])
@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_langchain(kind, way, correcting):
    guarded = kind(correcting, model(SAID), policy="strict-correct", style="none")
    message = guarded.invoke(HOTEL_QUESTION)
    if way == "stream":
        first, *rest = kind(correcting, model(SAID), policy="strict-correct", style="none").stream(
            HOTEL_QUESTION
        )
        message = sum(rest, first)
    assert_told(message.response_metadata["guardrail"], message.text)


def test_an_agent(correcting):
    middleware = [GuardrailMiddleware(correcting, policy="strict-correct", style="none")]
    state = create_agent(scripted(SAID), [], middleware=middleware).invoke(
        {"messages": [("user", HOTEL_QUESTION)]}
    )
    assert_told(state["guardrail"], state["messages"][-1].text)


async def test_mcp(correcting):
    mcp = pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")
    from chains.mcp_server import mcp_server

    asked = {"question": HOTEL_QUESTION, "answer": SAID, "policy": "strict-correct"}
    async with mcp.Client(mcp_server(correcting)) as client:
        told = (await client.call_tool("check_answer", asked)).structured_content
    assert_told(told, told["clean"])


def test_bulk(tmp_path):
    facts = [[fact.subject, fact.property, fact.value] for fact in FACTS]
    row = {"question": HOTEL_QUESTION, "answer": SAID, "triples": facts}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    scorer = BulkScorer(task="check", config=GuardrailConfig(policy=STRICT_CORRECT, graph="none"))
    run_bulk(scorer, str(tmp_path / "a.jsonl"), str(tmp_path / "out"))
    (told,) = (tmp_path / "out").glob("part-*.jsonl")
    found = json.loads(told.read_text())
    assert_told(found, found["text"])
