"""The agent middleware: final answers are judged, and nothing else is seen of them before."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool

from chains import GuardrailMiddleware
from guardrail import STRICT, Action
from tests.chains.conftest import ANSWER, CANARY, FALSE_MIDDLE, QUESTION, TRUE_START
from tests.clock import PATIENCE_S

ASKED = {"messages": [("user", QUESTION)]}
MODES = ["messages", "updates", "values"]


class ScriptedModel(GenericFakeChatModel):
    """Gives its answers in turn; binding tools makes a new Runnable, as real models do."""

    def bind_tools(self, tools, **kwargs):
        return self.bind(tools=tools)


def scripted(*answers):
    messages = [a if isinstance(a, AIMessage) else AIMessage(content=a) for a in answers]
    return ScriptedModel(messages=iter(messages))


@tool
def birth_year(name: str) -> str:
    """The year a person was born in."""
    return "1797"


def agent(*answers, middleware=(), tools=()):
    return create_agent(scripted(*answers), list(tools), middleware=list(middleware))


def test_an_unknown_option_is_an_error(guard):
    with pytest.raises(ValueError):
        GuardrailMiddleware(guard, polcy="strict")


def test_the_final_answer_is_judged_and_the_verdict_is_in_the_state(guard):
    state = agent(ANSWER, middleware=[GuardrailMiddleware(guard)]).invoke(ASKED)
    assert len(state["messages"]) == 2  # the guarded message replaced the raw one
    assert CANARY not in str(state)
    assert state["guardrail"]["action"] == "filter"


def test_as_many_agents_call_their_models_at_once_as_there_are_callers(guard):
    """More than the event loop's own pool of threads, which holds at most 32."""
    together = threading.Barrier(40, timeout=PATIENCE_S)

    @wrap_model_call
    def meet(request, handler):
        together.wait()
        return handler(request)

    def ask(_):
        return agent(TRUE_START, middleware=[GuardrailMiddleware(guard), meet]).invoke(ASKED)

    with ThreadPoolExecutor(40) as callers:
        states = list(callers.map(ask, range(40)))
    assert all("guardrail" in state for state in states)


def test_an_error_of_the_model_reaches_the_caller_as_it_is(guard):
    @wrap_model_call
    def broken(request, handler):
        raise ConnectionError("the model is away")

    with pytest.raises(ConnectionError, match="the model is away"):
        agent(ANSWER, middleware=[GuardrailMiddleware(guard), broken]).invoke(ASKED)


def test_tool_calls_are_left_alone(guard):
    call = AIMessage(
        content="", tool_calls=[{"name": "birth_year", "args": {"name": "Mary"}, "id": "1"}]
    )
    guarded = agent(call, TRUE_START, middleware=[GuardrailMiddleware(guard)], tools=[birth_year])
    messages = guarded.invoke(ASKED)["messages"]
    assert messages[1].tool_calls == call.tool_calls
    assert messages[2].content == "1797"
    assert messages[3].text.startswith("Mary Shelley was a writer [")


def test_words_beside_a_tool_call_are_judged(guard):
    call = AIMessage(
        content=ANSWER, tool_calls=[{"name": "birth_year", "args": {"name": "Mary"}, "id": "1"}]
    )
    guarded = agent(call, TRUE_START, middleware=[GuardrailMiddleware(guard)], tools=[birth_year])
    messages = guarded.invoke(ASKED)["messages"]
    assert messages[1].tool_calls == call.tool_calls
    assert messages[1].text.startswith("Mary Shelley was a writer [")
    assert CANARY not in str(messages)
    assert messages[2].content == "1797"


@pytest.mark.parametrize("tools", [(), (birth_year,)], ids=["plain", "tools bound"])
@pytest.mark.parametrize("mode", MODES)
def test_no_stream_mode_leaks(guard, mode, tools):
    """Both candidates hold the canary; a second call of the handler must not stream either."""
    best_of_two = GuardrailMiddleware(guard, policy=STRICT.model_copy(update={"candidates": 2}))
    guarded = agent(ANSWER, ANSWER, middleware=[best_of_two], tools=tools)
    bare = agent(ANSWER, tools=tools)

    def seen(item):
        return "".join(str(piece) for piece in item.stream(ASKED, stream_mode=mode))

    assert CANARY not in seen(guarded)
    assert CANARY in seen(bare)


@pytest.mark.parametrize("tools", [(), (birth_year,)], ids=["plain", "tools bound"])
async def test_no_asynchronous_stream_leaks(guard, tools):
    def guarded():
        return agent(ANSWER, middleware=[GuardrailMiddleware(guard)], tools=tools)

    events = [e async for e in guarded().astream_events(ASKED, version="v2")]
    assert CANARY not in str(events)
    pieces = [p async for p in guarded().astream(ASKED, stream_mode=MODES)]
    assert CANARY not in str(pieces)
    bare = [e async for e in agent(ANSWER, tools=tools).astream_events(ASKED, version="v2")]
    assert CANARY in str(bare)


async def test_sync_and_async_agree(guard):
    def guarded():
        return agent(ANSWER, middleware=[GuardrailMiddleware(guard)])

    synchronous = guarded().invoke(ASKED)["messages"][-1].text
    assert (await guarded().ainvoke(ASKED))["messages"][-1].text == synchronous


def test_the_message_keeps_the_id_of_the_one_it_replaces(guard):
    message = AIMessage(content=ANSWER, id="run-1")
    state = agent(message, middleware=[GuardrailMiddleware(guard)]).invoke(ASKED)
    assert [item.id for item in state["messages"][1:]] == ["run-1"]


def test_the_best_of_several_candidates_is_taken(guard):
    policy = STRICT.model_copy(update={"candidates": 3})
    middleware = GuardrailMiddleware(guard, policy=policy)
    state = agent("She loved cats.", TRUE_START, FALSE_MIDDLE, middleware=[middleware]).invoke(
        ASKED
    )
    assert state["messages"][-1].text.startswith("Mary Shelley was a writer")


REGENERATE = STRICT.model_copy(update={"contradicted": Action.REGENERATE, "attempts": 2})


def test_regeneration_names_what_failed(guard):
    asked = []

    @wrap_model_call
    def spy(request, handler):
        asked.append(request.messages[-1].text)
        return handler(request)

    middleware = [GuardrailMiddleware(guard, policy=REGENERATE), spy]
    state = agent(ANSWER, TRUE_START, middleware=middleware).invoke(ASKED)
    assert state["messages"][-1].text.startswith("Mary Shelley was a writer")
    assert len(state["messages"]) == 2  # neither the failed answer nor the feedback stays
    assert "does not hold" in asked[1]
    assert "date of birth: 1797-08-30" in asked[1]


def test_without_attempts_left_the_contradiction_still_does_not_leave(guard):
    policy = REGENERATE.model_copy(update={"exhausted": Action.FILTER})
    middleware = GuardrailMiddleware(guard, policy=policy)
    state = agent(ANSWER, ANSWER, middleware=[middleware]).invoke(ASKED)
    assert CANARY not in str(state)


def test_grounding_puts_facts_into_the_system_prompt(exact_guard):
    prompts = []

    @wrap_model_call
    def spy(request, handler):
        prompts.append(request.system_message.text)
        return handler(request)

    middleware = [GuardrailMiddleware(exact_guard, inject="facts"), spy]
    create_agent(
        scripted("She was a writer."), [], system_prompt="Be brief.", middleware=middleware
    ).invoke({"messages": [("user", "Who was Ada Lovelace?")]})
    assert prompts[0].startswith("Be brief.")
    assert "father: Lord Byron" in prompts[0]


class ChoppedModel(ScriptedModel):
    """Streams its answer in pieces cut at random places."""

    seed: int = 0

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        text = next(self.messages).content
        generator = random.Random(self.seed)
        position = 0
        while position < len(text):
            length = generator.randrange(1, 12)
            yield ChatGenerationChunk(
                message=AIMessageChunk(content=text[position : position + length])
            )
            position += length


STREAMS_PER_MODE = 60
"""Four modes make a thousand streams."""


@pytest.mark.parametrize("mode", [*MODES, "events"])
async def test_hundreds_of_streams_of_agents_leak_nothing(guard, mode):
    def chopped(seed, *middleware):
        model = ChoppedModel(messages=iter([AIMessage(content=ANSWER)]), seed=seed)
        return create_agent(model, [], middleware=list(middleware))

    async def seen(agent):
        """All text that a consumer sees, pieces of one message joined."""
        if mode == "events":
            stream = agent.astream_events(ASKED, version="v2")
        else:
            stream = agent.astream(ASKED, stream_mode=mode)
        pieces = [piece async for piece in stream]
        chunks = [item[0] for item in pieces if isinstance(item, tuple)]
        return str(pieces) + "".join(chunk.text for chunk in chunks)

    middleware = GuardrailMiddleware(guard)
    for seed in range(STREAMS_PER_MODE):
        assert CANARY not in await seen(chopped(seed, middleware))
    assert CANARY in await seen(chopped(0))
