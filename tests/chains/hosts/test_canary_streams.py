"""No byte of a rejected sentence is seen in a stream, in whichever way evidence is given."""

import json
import random

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableGenerator

from chains import GuardrailRunnable
from tests.chains.hosts.asking import Asked, chat_request, recorded
from tests.chains.hosts.test_langchain import conversation
from tests.chains.hotel import DOCUMENTS, HOTEL_QUESTION, ITEMS, SAID, SECRET

STREAMS = 12
MARKS = ("<context>", "</context>")
TEXT = " ".join(document.text for document in DOCUMENTS)
PARTS = [{"type": "grounding_source", **item} for item in ITEMS]


def seen_whole(pieces, raw):
    """What must be there, and what must not, neither in one piece nor across several."""
    text = "".join(pieces) + raw
    assert SECRET[:7] not in text
    assert "97 rooms" not in text
    assert "Breakfast" in text


def cut(seed):
    """The answer in random pieces, down to single characters."""
    rng = random.Random(seed)
    places = sorted(rng.sample(range(1, len(SAID)), rng.randrange(0, len(SAID) // 2)))
    return [SAID[a:b] for a, b in zip([0, *places], [*places, len(SAID)], strict=True)]


def model(seed):
    def answer(asked):
        list(asked)
        for piece in cut(seed):
            yield AIMessageChunk(content=piece)

    async def aanswer(asked):
        [piece async for piece in asked]
        for piece in cut(seed):
            yield AIMessageChunk(content=piece)

    return RunnableGenerator(answer, aanswer)


ASKED = HumanMessage(HOTEL_QUESTION)
LANGCHAIN = {
    "key": ({"question": HOTEL_QUESTION, "context": DOCUMENTS}, {"evidence": "context"}, {}),
    "function": (HOTEL_QUESTION, {"evidence": lambda _: DOCUMENTS}, {}),
    "documents": (
        {"question": HOTEL_QUESTION, "found": {"docs": [Document(TEXT, metadata={"source": "a"})]}},
        {"evidence": "found.docs"},
        {},
    ),
    "metadata": (HOTEL_QUESTION, {}, {"metadata": {"guardrail": {"evidence": ITEMS}}}),
    "parts": ([HumanMessage([*PARTS, {"type": "query", "text": HOTEL_QUESTION}])], {}, {}),
    "tools": (conversation(), {}, {}),
    "marked": ([SystemMessage(f"<context>{TEXT}</context>"), ASKED], {"marks": MARKS}, {}),
}


@pytest.mark.parametrize("style", ["footnotes", "none"])
@pytest.mark.parametrize("way", LANGCHAIN)
def test_langchain(empty, way, style):
    value, options, config = LANGCHAIN[way]
    for seed in range(STREAMS):
        chain = GuardrailRunnable(empty, model(seed), style=style, **options)
        chunks = list(chain.stream(value, config))
        seen_whole([chunk.text for chunk in chunks], repr(chunks))
        assert len(chunks) > 2  # sentence by sentence


@pytest.mark.parametrize("way", ["key", "tools"])
async def test_langchain_events(empty, way):
    value, options, config = LANGCHAIN[way]
    for seed in range(STREAMS // 4):
        chain = GuardrailRunnable(empty, model(seed), **options)
        events = [
            astream_event
            async for astream_event in chain.astream_events(value, config, version="v2")
        ]
        chunks = [event["data"]["chunk"] for event in events if "chunk" in event["data"]]
        seen_whole([chunk.text for chunk in chunks], repr(events))


@pytest.mark.parametrize("host", ["openai_chat", "anthropic", "bedrock", "azure", "litellm"])
async def test_gateway(empty, host, monkeypatch):
    await stream(Asked(empty, monkeypatch), "/chat/completions", chat_request(host))


async def test_gateway_responses(empty, monkeypatch):
    await stream(Asked(empty, monkeypatch), "/responses", recorded("openai_responses"))


@pytest.mark.parametrize("mode", ["given", "both"])
async def test_gateway_field(empty, mode, monkeypatch):
    body = {"model": "plain", "messages": [{"role": "user", "content": HOTEL_QUESTION}]}
    asked = Asked(empty, monkeypatch, evidence_mode=mode)
    await stream(asked, "/chat/completions", body | {"guardrail": {"evidence": ITEMS}})


async def stream(asked, path, body, *, to="gateway"):
    http = asked.http if to == "gateway" else asked.upstream
    for seed in range(STREAMS):
        asked.seed(seed)
        reply = await http.post(f"http://{to}/v1{path}", json=body | {"stream": True})
        assert reply.status_code == 200
        events = [
            json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")
        ]
        pieces = [delta for event in events for delta in deltas(event)]
        assert len(pieces) > 1
        seen_whole(pieces, reply.text)


def deltas(event):
    """The text that an event of either protocol adds."""
    if isinstance(event.get("delta"), str):
        return [event["delta"]]
    return [item["delta"].get("content") or "" for item in event.get("choices", ())]


@pytest.mark.parametrize("path", ["/chat/completions", "/responses"])
async def test_without_the_guardrail_it_is_seen(empty, path, monkeypatch):
    """What is looked for can be found."""
    asked = Asked(empty, monkeypatch)
    body = recorded("openai_responses" if path == "/responses" else "openai_chat")
    with pytest.raises(AssertionError):
        await stream(asked, path, body, to="model")
    unguarded = [chunk.text for chunk in model(3).stream("")]
    with pytest.raises(AssertionError):
        seen_whole(unguarded, "")
