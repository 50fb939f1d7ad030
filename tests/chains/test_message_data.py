"""Calls of tools and data of LangChain's Runnables: named, or judged where the policy says so."""

from dataclasses import dataclass

import pytest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from pydantic import BaseModel

from chains import GuardedChatModel, GuardrailMiddleware, GuardrailRunnable, WithheldError
from guardrail import STRICT
from tests.chains.conftest import CANARY, QUESTION, TRUE_START
from tests.chains.models import ASKED, WAYS, agent, model, run, verdict

JUDGED = STRICT.changed(structured=True, needs_support=False)
TRUE = {"person": {"occupation": "Mary Shelley was a writer"}, "known": True}
FALSE = {"occupation": "Mary Shelley was a writer", "born_in": f"4 May 1999 in {CANARY}"}


def calling(*arguments, text=""):
    calls = [{"name": "save", "args": args, "id": str(n)} for n, args in enumerate(arguments)]
    repeated = {"tool_calls": [{"function": {"arguments": str(args)}} for args in arguments]}
    return AIMessage(content=text, tool_calls=calls, additional_kwargs=repeated)


async def said(guard, output, way="invoke", policy=JUDGED):
    guarded = GuardrailRunnable(guard, RunnableLambda(lambda _: output), policy=policy)
    return await run(guarded, QUESTION, way)


@pytest.mark.parametrize("way", WAYS)
async def test_calls_are_judged_and_withheld_together(guard, way):
    found = await said(guard, calling(TRUE), way)
    assert [call["args"] for call in found.tool_calls] == [TRUE]
    (judged,) = verdict(found)["structured"]
    assert (judged["of"], judged["withheld"]) == ("0", False)
    found = await said(guard, calling(TRUE, FALSE), way)
    assert CANARY not in str(found)
    assert found.text == JUDGED.refusal
    assert not found.tool_calls
    assert len(verdict(found)["structured"]) == 2
    found = await said(guard, calling(FALSE, text=TRUE_START), way)  # words stay
    assert CANARY not in str(found)
    assert found.text.startswith("Mary Shelley was a writer")
    assert JUDGED.refusal not in found.text
    assert verdict(found).keys() >= {"action", "structured"}


@pytest.mark.parametrize("way", WAYS)
async def test_calls_without_a_verdict_are_named(guard, way):
    for message, action in ((calling(FALSE), False), (calling(FALSE, text=TRUE_START), True)):
        found = await said(guard, message, way, STRICT)
        assert found.tool_calls
        details = verdict(found)
        assert details["unjudged"] == ["tool call save"]
        assert ("action" in details) == action
    assert await said(guard, TRUE, way, STRICT) == TRUE


@pytest.mark.parametrize("way", WAYS)
async def test_a_dry_run_withholds_nothing(guard, way):
    found = await said(guard, calling(FALSE), way, JUDGED.changed(dry_run=True))
    assert [call["args"] for call in found.tool_calls] == [FALSE]
    (judged,) = verdict(found)["structured"]
    assert (judged["would"], judged["withheld"]) == ("filter", False)
    assert await said(guard, FALSE, way, JUDGED.changed(dry_run=True)) == FALSE


async def test_calls_in_other_places_are_judged(guard):
    broken = {"name": "save", "args": f'{{"born": "1999 in {CANARY}', "id": "1", "error": None}
    block = {"type": "server_tool_call", "id": "s", "name": "look", "args": FALSE}
    result = {"type": "server_tool_result", "tool_call_id": "s", "output": FALSE}
    for message in (
        AIMessage(content="", invalid_tool_calls=[broken]),
        AIMessage(content=[block, {"type": "text", "text": TRUE_START}]),
        AIMessage(content=[result, {"type": "text", "text": TRUE_START}]),
    ):
        assert CANARY not in str(await said(guard, message))
        assert CANARY in str(found := await said(guard, message, policy=STRICT))
        assert verdict(found)["unjudged"]


class Person(BaseModel):
    """A person."""

    occupation: str
    born_in: str = ""


@dataclass
class Plain:
    born_in: str


@pytest.mark.parametrize("way", WAYS)
async def test_data_are_judged_and_withheld_whole(guard, way):
    for data in (TRUE, [TRUE], Person(occupation="Mary Shelley was a writer")):
        assert await said(guard, data, way) == data
    for data in (FALSE, [FALSE], Person(**FALSE), Plain(FALSE["born_in"]), {"m": calling(FALSE)}):
        with pytest.raises(WithheldError) as details:
            await said(guard, data, way)
        assert CANARY not in str(details.value)
    with pytest.raises(WithheldError, match="bytes"):
        await said(guard, {"a": CANARY.encode()}, way)


def test_structured_output_of_a_chat_model_is_judged(guard):
    def output(policy):
        call = AIMessage(content="", tool_calls=[{"name": "Person", "args": FALSE, "id": "1"}])
        guarded = GuardedChatModel(guard, model(call), policy=policy)
        return guarded.with_structured_output(Person).invoke(QUESTION)

    assert output(STRICT) == Person(**FALSE)
    with pytest.raises(WithheldError):
        output(JUDGED)


# --- agents ------------------------------------------------------------------------------


@tool
def save(born_in: str = "", occupation: str = "") -> str:
    """Save a person."""
    return "saved"


def state_of(guard, policy, *answers, **options):
    middleware = [GuardrailMiddleware(guard, policy=policy)]
    return agent(*answers, middleware=middleware, tools=[save], **options).invoke(ASKED)


def test_an_agents_call_that_is_withheld_is_never_made(guard):
    state = state_of(guard, JUDGED, calling(FALSE))
    assert [message.type for message in state["messages"]] == ["human", "ai"]
    assert state["messages"][-1].text == JUDGED.refusal
    assert CANARY not in str(state)
    kept = {"occupation": "Mary Shelley was a writer"}
    state = state_of(guard, JUDGED, calling(kept), AIMessage(content=TRUE_START))
    assert state["messages"][2].content == "saved"
    assert state["messages"][1].response_metadata["guardrail"].keys() == {"structured"}
    state = state_of(guard, STRICT, calling(kept), AIMessage(content=TRUE_START))
    said = state["messages"][1].response_metadata["guardrail"]
    assert said == {"unjudged": ["tool call save"]}


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
def test_an_agents_structured_response_is_judged_or_named(guard, strategy):
    def answer(fields):
        person = Person(**fields)
        if strategy is ProviderStrategy:
            return AIMessage(content=person.model_dump_json())
        call = {"name": "Person", "args": person.model_dump(), "id": "1"}
        return AIMessage(content="", tool_calls=[call])

    state = state_of(guard, JUDGED, answer(FALSE), response_format=strategy(Person))
    assert CANARY not in str(state)
    assert state.get("structured_response") is None
    assert state["messages"][-1].text == JUDGED.refusal
    assert any(one["withheld"] for one in state["guardrail"]["structured"])
    kept = {"occupation": "Mary Shelley was a writer"}
    state = state_of(guard, JUDGED, answer(kept), response_format=strategy(Person))
    assert state["structured_response"] == Person(**kept)
    assert not any(one["withheld"] for one in state["guardrail"]["structured"])
    state = state_of(guard, STRICT, answer(FALSE), response_format=strategy(Person))
    assert state["structured_response"] == Person(**FALSE)
    assert "structured response" in state["guardrail"]["unjudged"]


def test_words_next_to_a_structured_response_are_judged(guard):
    call = {"name": "Person", "args": {"occupation": "writer"}, "id": "1"}
    message = AIMessage(content=f"She was born in 1999 in {CANARY}.", tool_calls=[call])
    state = state_of(guard, STRICT, message, response_format=ToolStrategy(Person))
    assert CANARY not in str(state)
    assert state["structured_response"].occupation == "writer"
