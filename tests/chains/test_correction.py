"""A contradicted value is corrected through every way in, and the verdict shows the correction."""

import json

import pytest

from chains import GuardrailMiddleware, GuardrailRunnable
from guardrail import STRICT_CORRECT, GuardrailConfig, Triple
from guardrail.bulk.run import run_bulk
from guardrail.bulk.scorer import BulkScorer
from tests.chains import fake_openai
from tests.chains.conftest import scripted_guard
from tests.chains.fake_openai import FakeOpenAI, client_over
from tests.chains.hotel import HOTEL_QUESTION
from tests.chains.models import agent, model, run, verdict

FACTS = [Triple("Kestrel Hotel", "rooms", "42"), Triple("Kestrel Hotel", "town", "Bergen")]
WRONG = "The Kestrel Hotel has 97 rooms."
SAID = f"The Kestrel Hotel stands in the town Bergen. {WRONG}"
RIGHT = "The Kestrel Hotel stands in the town Bergen. The Kestrel Hotel has 42 rooms."
CHAT = {"model": "plain", "messages": [{"role": "user", "content": HOTEL_QUESTION}]}
RESPONSE = {"model": "plain", "input": HOTEL_QUESTION}
OPTIONS = {"policy": "strict-correct", "style": "none"}


@pytest.fixture(scope="module")
def correcting():
    config = GuardrailConfig(policy=STRICT_CORRECT, graph="none")
    with scripted_guard(config=config, retriever=lambda question: FACTS) as guard:
        yield guard


async def chat(client):
    reply = await client.chat.completions.create(**CHAT)
    return reply.choices[0].message.guardrail, reply.choices[0].message.content


async def streamed_chat(client):
    chunks = [chunk async for chunk in await client.chat.completions.create(**CHAT, stream=True)]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    (details,) = [delta.guardrail for delta in deltas if "guardrail" in delta.model_extra]
    return details, "".join(delta.content or "" for delta in deltas)


async def response(client):
    reply = await client.responses.create(**RESPONSE)
    return reply.output[1].content[0].guardrail, reply.output_text


async def streamed_response(client):
    events = [event async for event in await client.responses.create(**RESPONSE, stream=True)]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    done = next(event.response for event in events if event.type == "response.completed")
    assert done.output_text == RIGHT
    return done.output[1].content[0].guardrail, "".join(deltas)


@pytest.mark.parametrize("ask", [chat, streamed_chat, response, streamed_response])
async def test_an_openai_client(ask, correcting, monkeypatch):
    monkeypatch.setattr(fake_openai, "ANSWER", SAID)
    client = client_over("client", correcting, FakeOpenAI().app, **OPTIONS)
    assert_corrected(*await ask(client))


@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_a_chain(way, correcting):
    chain = GuardrailRunnable(correcting, model(SAID), **OPTIONS)
    message = await run(chain, HOTEL_QUESTION, way)
    assert_corrected(verdict(message), message.text)


def test_an_agent(correcting):
    guarded = agent(SAID, middleware=[GuardrailMiddleware(correcting, **OPTIONS)])
    state = guarded.invoke({"messages": [("user", HOTEL_QUESTION)]})
    assert_corrected(state["guardrail"], state["messages"][-1].text)


def test_bulk(tmp_path):
    facts = [[fact.subject, fact.property, fact.value] for fact in FACTS]
    row = {"question": HOTEL_QUESTION, "answer": SAID, "triples": facts}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    scorer = BulkScorer(task="check", config=GuardrailConfig(policy=STRICT_CORRECT, graph="none"))
    run_bulk(scorer, str(tmp_path / "a.jsonl"), str(tmp_path / "out"))
    (written,) = (tmp_path / "out").glob("part-*.jsonl")
    found = json.loads(written.read_text())
    assert_corrected(found, found["text"])


def assert_corrected(details, text):
    assert text == RIGHT
    assert details["action"] == "correct"
    first, second = details["sentences"]
    assert first["correction"] is None
    assert second["correction"]["original"] == WRONG
    (span,) = [span for span in second["spans"] if span["kind"] == "corrected"]
    assert (span["text"], span["instead_of"]) == ("42", "97")
