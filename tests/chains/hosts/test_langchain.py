"""LangChain: documents of a retriever, and results of an agent's tools, the newest first."""

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage, convert_to_messages
from langchain_core.tools import tool

from chains import GuardrailMiddleware, GuardrailRunnable
from chains.evidence.base import EvidenceSettings, RequestField, Source
from chains.evidence.langchain import chain_evidence
from guardrail import Triple
from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, recorded
from tests.chains.hotel import HOTEL_QUESTION, SAID, SECRET
from tests.chains.models import agent, model, verdict

RETRIEVED = [Document.model_validate(item) for item in recorded("langchain_documents")]


def found(place, value):
    return chain_evidence(place, value, None, RequestField(), EvidenceSettings())


def conversation():
    messages = []
    for entry in recorded("langchain_agent"):
        if entry["type"] == "tool":
            artifact = [Document.model_validate(item) for item in entry.get("artifact", [])] or None
            messages.append(ToolMessage(**entry | {"artifact": artifact}))
        else:
            messages += convert_to_messages([entry])
    return messages


def pages(message):
    return [(item["title"], item.get("url")) for item in verdict(message)["citations"]]


def test_documents_in_order_with_title_and_url():
    held = found("context", {"context": RETRIEVED})
    assert [(item.id, item.title, item.url) for item in held.evidence] == [
        ("d1", *GUIDE), ("d2", *PRICES), (None, None, "dogs.md"),
    ]  # fmt: skip
    assert held.sources == (Source.CALLER,)
    # As they come over HTTP or out of a store, before LangChain makes documents of them.
    assert found("context", {"context": recorded("langchain_documents")}) == held


def test_results_of_tools_the_newest_first(empty):
    held = found(None, conversation())
    *passages, score = held.evidence
    assert score == Triple(subject="Kestrel guide", property="score", value="0.91")
    assert [(passage.text, passage.title, passage.url) for passage in passages] == [
        ("Breakfast costs 12 euros. It is served until 10:30.", *PRICES),
        ("Breakfast costs 12 euros.", "prices", None),
        ("The Kestrel Hotel has 42 rooms.", *GUIDE),
    ]
    assert held.sources == (Source.TOOLS,)
    message = GuardrailRunnable(empty, model(SAID)).invoke(conversation())
    assert pages(message)[0] == GUIDE
    assert PRICES in pages(message)
    assert SECRET not in str(message)


@tool(response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Document]]:
    """Search the hotel's documents."""
    return f"{len(RETRIEVED)} documents", RETRIEVED


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_an_agent_with_a_tool(empty, way):
    call = AIMessage("", tool_calls=[{"name": "search", "args": {"query": "rooms"}, "id": "1"}])
    item = agent(call, SAID, middleware=[GuardrailMiddleware(empty)], tools=[search])
    asked = {"messages": [("user", HOTEL_QUESTION)]}
    state = (
        item.invoke(asked) if way == "invoke" else [*item.stream(asked, stream_mode="values")][-1]
    )
    assert state["messages"][-1].content == NOTES
    assert pages(state["messages"][-1]) == [GUIDE, PRICES]
