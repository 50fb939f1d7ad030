"""The examples whose answers rest on documents and tools; a scripted model says what it is told."""

import runpy
from pathlib import Path

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from guardrail import GuardrailConfig
from tests.chains.conftest import scripted_guard

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def guard():
    config = GuardrailConfig(graph={"location": "none"})
    with scripted_guard(config=config, retriever=lambda question: []) as guard:
        yield guard


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


def model(*said):
    return Model(messages=iter([AIMessage(one) if isinstance(one, str) else one for one in said]))


def test_a_rag_chain_over_five_documents(guard):
    build = runpy.run_path(str(EXAMPLES / "rag_chain.py"))["build"]
    said = "The Kestrel Hotel has 42 rooms. The Kestrel Hotel has 97 pools."
    asked = {"question": "How many rooms does the Kestrel Hotel have?"}
    answer = build(guard, model(said)).invoke(asked)
    assert answer["answer"].content == (
        "The Kestrel Hotel has 42 rooms [1].\n\n[1] Rooms (https://hotel.example/rooms)"
    )
    assert len(answer["context"]) == 3


@pytest.mark.parametrize(
    ("said", "action"),
    [("The Kestrel K3 weighs 1.2 kg.", "pass"), ("The Kestrel K3 weighs 3.7 kg.", "refuse")],
)
def test_an_agent_whose_tool_returns_the_facts(guard, said, action):
    build = runpy.run_path(str(EXAMPLES / "agent_tools.py"))["build"]
    call = {"name": "product_sheet", "args": {"name": "Kestrel K3"}, "id": "1"}
    agent = build(guard, model(AIMessage("", tool_calls=[call]), said))
    state = agent.invoke({"messages": [("user", "What does the Kestrel K3 weigh?")]})
    assert state["guardrail"]["action"] == action
    assert ("3.7" in state["messages"][-1].content) is False
