"""A LangChain agent: what its tools returned, the newest first."""

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage, convert_to_messages
from langchain_core.tools import tool

from chains import GuardrailMiddleware, GuardrailRunnable
from chains.evidence import EvidenceSettings, Source
from chains.evidence.langchain import message_evidence
from guardrail import Triple
from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, recorded
from tests.chains.hotel import HOTEL_QUESTION, SAID, SECRET


def conversation():
    messages = []
    for entry in recorded("langchain_agent"):
        if entry["type"] == "tool":
            artifact = [Document.model_validate(item) for item in entry.get("artifact", [])] or None
            messages.append(ToolMessage(**entry | {"artifact": artifact}))
        else:
            messages += convert_to_messages([entry])
    return messages


def test_results_of_tools_the_newest_first():
    found = message_evidence(conversation(), EvidenceSettings())
    *passages, score = found.evidence
    assert score == Triple(subject="Kestrel guide", property="score", value="0.91")
    assert [(passage.text, passage.title, passage.url) for passage in passages] == [
        ("Breakfast costs 12 euros. It is served until 10:30.", *PRICES),
        ("Breakfast costs 12 euros.", "prices", None),
        ("The Kestrel Hotel has 42 rooms.", *GUIDE),
    ]
    assert found.sources == (Source.TOOLS,)


def test_the_answer_that_ends_a_conversation(empty):
    model = GenericFakeChatModel(messages=iter([AIMessage(SAID)]))
    message = GuardrailRunnable(empty, model).invoke(conversation())
    cited = message.response_metadata["guardrail"]["citations"]
    assert (cited[0]["title"], cited[0]["url"]) == GUIDE
    assert PRICES in [(item["title"], item.get("url")) for item in cited]
    assert SECRET not in str(message)


class ToolModel(GenericFakeChatModel):
    def bind_tools(self, tools, **options):
        return self


@tool(response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Document]]:
    """Search the hotel's documents."""
    documents = [Document.model_validate(item) for item in recorded("langchain_documents")]
    return f"{len(documents)} documents", documents


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_an_agent_with_a_tool(empty, way):
    call = AIMessage("", tool_calls=[{"name": "search", "args": {"query": "rooms"}, "id": "1"}])
    model = ToolModel(messages=iter([call, AIMessage(SAID)]))
    agent = create_agent(model, [search], middleware=[GuardrailMiddleware(empty)])
    asked = {"messages": [("user", HOTEL_QUESTION)]}
    if way == "invoke":
        message = agent.invoke(asked)["messages"][-1]
    else:
        *_, last = agent.stream(asked, stream_mode="values")
        message = last["messages"][-1]
    assert message.content == NOTES
    cited = message.response_metadata["guardrail"]["citations"]
    assert [(item["title"], item["url"]) for item in cited] == [GUIDE, PRICES]
