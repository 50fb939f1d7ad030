"""The examples whose answers rest on documents and tools.

The language model is scripted, the judge is the shipped one: what is true, false or untold here is
so by a whole number or a whole fact.
"""

import runpy

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from tests.examples.test_examples import EXAMPLES

ROOMS = "The Kestrel Hotel has 42 rooms."
POOLS = "The Kestrel Hotel has 97 pools."
CITED_ROOMS = "The Kestrel Hotel has 42 rooms [1].\n\n[1] Rooms (https://hotel.example/rooms)"
WEIGHT = "The Kestrel K3 weighs 1.2 kg."
CITED_WEIGHT = "The Kestrel K3 weighs 1.2 kg [1]."
CALL = {"name": "product_sheet", "args": {"name": "Kestrel K3"}, "id": "1"}


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


def model(*said):
    return Model(
        messages=iter([AIMessage(item) if isinstance(item, str) else item for item in said])
    )


def test_a_rag_chain_over_five_documents(guard):
    build = runpy.run_path(str(EXAMPLES / "rag_chain.py"))["build"]
    asked = {"question": "How many rooms does the Kestrel Hotel have?"}
    answer = build(guard, model(f"{ROOMS} {POOLS}")).invoke(asked)
    assert answer["answer"].content == CITED_ROOMS
    assert len(answer["context"]) == 3


@pytest.mark.parametrize(
    ("said", "action", "shown"),
    [
        (WEIGHT, "pass", CITED_WEIGHT),
        (f"{WEIGHT} Its battery lasts 30 hours.", "filter", CITED_WEIGHT),
        ("The Kestrel K3 weighs 3.7 kg.", "refuse", "I could not find an answer"),
        (f"{WEIGHT} It was designed in Oslo.", "annotate", f"{CITED_WEIGHT} It was designed in"),
    ],
)
def test_an_agent_whose_tool_returns_the_facts(guard, said, action, shown):
    build = runpy.run_path(str(EXAMPLES / "agent_tools.py"))["build"]
    agent = build(guard, model(AIMessage("", tool_calls=[CALL]), said))
    state = agent.invoke({"messages": [("user", "What does the Kestrel K3 weigh?")]})
    assert state["guardrail"]["action"] == action
    content = state["messages"][-1].content
    assert content.startswith(shown)
    assert ("[NA]" in content) is (action == "annotate")
    assert "3.7" not in content
    assert "30 hours" not in content
