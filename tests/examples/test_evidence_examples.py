"""The examples whose answers rest on documents and tools.

The language model is scripted, the judge is the shipped one: what is true, false or untold here is
so by a whole number or a whole fact.
"""

import runpy

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.chains.fake_openai import served
from tests.examples.test_examples import EXAMPLES, run

ROOMS = "The Kestrel Hotel has 42 rooms."
POOLS = "The Kestrel Hotel has 97 pools."
CITED_ROOMS = "The Kestrel Hotel has 42 rooms [1].\n\n[1] Rooms (https://hotel.example/rooms)"
WEIGHT = "The Kestrel K3 weighs 1.2 kg."
CITED_WEIGHT = "The Kestrel K3 weighs 1.2 kg [Kestrel K3, weight: 1.2 kg]."
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


@pytest.fixture
def says():
    """Serves a model that gives one answer, after a call of the tool that it is offered."""
    said = []

    async def answer(request: Request):
        asked = await request.json()
        message = {"role": "assistant", "content": said[0]}
        if asked.get("tools") and asked["messages"][-1]["role"] != "tool":
            function = {"name": CALL["name"], "arguments": '{"name": "Kestrel K3"}'}
            call = {"id": "1", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        head = {"id": "1", "object": "chat.completion", "created": 1, "model": asked["model"]}
        return JSONResponse(head | {"choices": [choice]})

    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    with served(app) as address:
        environment = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "k"}
        yield lambda name, text: said.append(text) or run(name, **environment)


@pytest.mark.parametrize(
    ("name", "said", "shown"),
    [
        ("rag_chain.py", f"{ROOMS} {POOLS}", CITED_ROOMS),
        ("agent_tools.py", f"{WEIGHT} Its battery lasts 30 hours.", CITED_WEIGHT),
    ],
)
def test_as_a_user_runs_it(says, name, said, shown):
    assert says(name, said) == f"{shown}\n\naction: filter\n"
