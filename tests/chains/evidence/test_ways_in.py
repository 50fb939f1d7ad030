"""Evidence given by each way, through each way in: judged, cited with title and url, no leak."""

import json
import random

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnablePassthrough

from chains import GuardrailRunnable
from guardrail import STRICT, GuardrailConfig
from tests.chains import fake_openai
from tests.chains.conftest import scripted_guard
from tests.chains.fake_openai import FakeOpenAI, client_over
from tests.chains.hosts.test_langchain import conversation
from tests.chains.hotel import (
    DOCUMENTS,
    HOTEL_QUESTION,
    ITEMS,
    NOTED,
    RIGHT,
    SAID,
    SECRET,
)
from tests.chains.models import model, run, verdict

RETRIEVED = [
    Document(item.text, id=item.id, metadata={"source": item.url, "title": item.title})
    for item in DOCUMENTS
]
TEXT = " ".join(document.text for document in DOCUMENTS)
PROMPT = ChatPromptTemplate.from_template("Use this: {context}\n\n{question}")
MARKS = ("<context>", "</context>")
PARTS = [{"type": "grounding_source", **item} for item in ITEMS]
QUERY = {"type": "query", "text": HOTEL_QUESTION}


def never(question):
    raise AssertionError("evidence was handed over: nothing is to be fetched")


@pytest.fixture(scope="module")
def alone():
    """A guardrail that must not ask its retriever."""
    with scripted_guard(config=GuardrailConfig(policy=STRICT), retriever=never) as guard:
        yield guard


def hides(pieces, raw):
    """True if the removed sentence is nowhere, neither in one piece nor across several."""
    text = "".join(pieces) + raw
    assert "Breakfast" in text
    return SECRET[:7] not in text and "97 rooms" not in text


# --- LangChain ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["invoke", "batch", "stream"])
async def test_a_chain_whose_input_holds_the_documents(alone, way):
    chain = GuardrailRunnable(alone, PROMPT | model(SAID), evidence="context")
    message = await run(chain, {"question": HOTEL_QUESTION, "context": RETRIEVED}, way)
    assert message.content == NOTED
    details = verdict(message)
    assert details["evidence"] == {"from": ["caller"], "count": 5}
    assert [(item["title"], item["url"]) for item in details["citations"]] == [
        ("Kestrel guide", "https://h.example/guide"),
        ("Prices", "https://h.example/prices"),
    ]
    cited = details["citations"][1]
    assert message.content[cited["start_index"] : cited["end_index"]].startswith("Breakfast")
    assert SECRET not in str(message)


@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_a_chain_whose_output_holds_the_documents(alone, way):
    chain = RunnablePassthrough.assign(context=RunnableLambda(lambda _: RETRIEVED)).assign(
        answer=PROMPT | model(SAID) | StrOutputParser()
    )
    guarded = GuardrailRunnable(alone, chain, evidence="context")
    found = await run(guarded, {"question": HOTEL_QUESTION}, way)
    assert found["answer"] == NOTED
    assert found["context"] == RETRIEVED


def test_an_empty_retrieval_supports_nothing(alone):
    for reasons in (True, False):
        chain = GuardrailRunnable(alone, model(RIGHT), evidence=lambda value: [], reasons=reasons)
        details = verdict(chain.invoke(HOTEL_QUESTION))
        assert details["action"] == "refuse"
        assert bool(details.get("reasons")) == reasons
        assert RIGHT not in str(details.get("reasons"))


def test_evidence_in_addition_to_the_graph(guard):
    value = {"question": "Who was Mary Shelley?", "context": DOCUMENTS}
    said = f"Mary Shelley was a writer. {RIGHT}"

    def found(mode):
        chain = PROMPT | model(said)
        return GuardrailRunnable(guard, chain, evidence="context", evidence_mode=mode).invoke(value)

    both = verdict(found("both"))
    assert both["action"] == "pass"
    assert both["evidence"]["from"] == ["caller", "graph"]
    assert "42 rooms [NA]" in found("graph").content


def cut(seed):
    """A model that gives the answer in random pieces, down to single characters."""

    def pieces(_):
        rng = random.Random(seed)
        places = sorted(rng.sample(range(1, len(SAID)), rng.randrange(0, len(SAID) // 2)))
        for start, end in zip([0, *places], [*places, len(SAID)], strict=True):
            yield AIMessageChunk(SAID[start:end])

    return RunnableGenerator(pieces)


LANGCHAIN = {
    "key": ({"question": HOTEL_QUESTION, "context": DOCUMENTS}, {"evidence": "context"}, {}),
    "function": (HOTEL_QUESTION, {"evidence": lambda _: DOCUMENTS}, {}),
    "documents": (
        {"question": HOTEL_QUESTION, "found": {"docs": [Document(TEXT)]}},
        {"evidence": "found.docs"},
        {},
    ),
    "metadata": (HOTEL_QUESTION, {}, {"metadata": {"guardrail": {"evidence": ITEMS}}}),
    "parts": ([HumanMessage([*PARTS, QUERY])], {}, {}),
    "tools": (conversation(), {}, {}),
    "marked": (
        [SystemMessage(f"<context>{TEXT}</context>"), HumanMessage(HOTEL_QUESTION)],
        {"marks": MARKS},
        {},
    ),
}


@pytest.mark.parametrize("style", ["footnotes", "none"])
@pytest.mark.parametrize("way", LANGCHAIN)
def test_no_piece_of_a_chain_holds_a_rejected_sentence(empty, way, style):
    value, options, config = LANGCHAIN[way]
    for seed in range(12):
        chain = GuardrailRunnable(empty, cut(seed), style=style, **options)
        chunks = list(chain.stream(value, config))
        assert hides([chunk.text for chunk in chunks], repr(chunks))
        assert len(chunks) > 2  # sentence by sentence


# --- OpenAI client and gateway -----------------------------------------------------------


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(fake_openai, "ANSWER", SAID)
    return FakeOpenAI()


def asked_by(kind, endpoint):
    """A call that hands the documents over in one of the ways."""
    question = {"role": "user", "content": HOTEL_QUESTION}
    if kind == "field":
        messages, extra = [question], {"extra_body": {"guardrail": {"evidence": ITEMS}}}
    elif kind == "parts":
        messages, extra = [{"role": "user", "content": [*PARTS, QUERY]}], {}
    elif kind == "tools":
        results = json.dumps(ITEMS)
        output = {"role": "tool", "tool_call_id": "c1", "content": results}
        if endpoint == "responses":
            output = {"type": "function_call_output", "call_id": "c1", "output": results}
        messages, extra = [question, output], {}
    else:
        system = {"role": "system", "content": f"<context>{TEXT}</context>"}
        messages, extra = [system, question], {}
    return {"messages" if endpoint == "chat" else "input": messages, "model": "plain", **extra}


KINDS = ["field", "parts", "tools", "marked"]


@pytest.mark.parametrize("way", ["client", "gateway"])
@pytest.mark.parametrize("kind", KINDS)
async def test_evidence_of_a_chat(way, kind, empty, fake):
    client = client_over(way, empty, fake.app, evidence_marks=MARKS)
    completion = await client.chat.completions.create(**asked_by(kind, "chat"))
    message = completion.choices[0].message
    assert RIGHT[:-1] in message.content
    assert SECRET not in completion.model_dump_json()
    assert message.guardrail["action"] == "filter"
    if kind != "marked":
        assert message.content == NOTED
        first = message.annotations[0].url_citation
        assert (first.title, first.url) == ("Kestrel guide", "https://h.example/guide")
    sent = fake.requests[-1]
    assert "guardrail" not in sent
    assert "grounding_source" not in json.dumps(sent)


def deltas(event):
    """The text that an event of either protocol adds."""
    if isinstance(event.get("delta"), str):
        return [event["delta"]]
    return [item["delta"].get("content") or "" for item in event.get("choices", ())]


@pytest.mark.parametrize("way", ["client", "gateway", "bare"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("endpoint", ["chat", "responses"])
async def test_no_byte_of_a_rejected_sentence_is_seen(way, kind, endpoint, empty, fake):
    client = client_over(way, empty, fake.app, evidence_marks=MARKS)
    api = client.chat.completions if endpoint == "chat" else client.responses
    for fake.seed in range(12):
        call = api.with_streaming_response.create(**asked_by(kind, endpoint), stream=True)
        async with call as response:
            seen = b"".join([chunk async for chunk in response.iter_bytes()]).decode()
        events = [json.loads(line[6:]) for line in seen.splitlines() if line[:7] == "data: {"]
        pieces = [text for event in events for text in deltas(event)]
        assert hides(pieces, seen) == (way != "bare")
