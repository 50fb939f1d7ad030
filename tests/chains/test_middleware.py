"""The agent middleware: final answers are judged, and nothing else is seen of them before."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from chains import GuardrailMiddleware
from guardrail import STRICT, Action
from tests.chains.conftest import ANSWER, CANARY, TRUE_START
from tests.chains.models import ASKED, agent
from tests.clock import PATIENCE_S

MODES = ["messages", "updates", "values"]
TRUE_MARKED = "Mary Shelley was a writer ["


@tool
def birth_year(name: str) -> str:
    """The year a person was born in."""
    return "1797"


def guarded(guard, *answers, inside=(), tools=(), **options):
    return agent(*answers, middleware=[GuardrailMiddleware(guard, **options), *inside], tools=tools)


def spying(seen, of):
    """A middleware inside the guardrail that records a part of each request."""

    @wrap_model_call
    def spy(request, handler):
        seen.append(of(request).text)
        return handler(request)

    return spy


def test_an_unknown_option_is_an_error(guard):
    with pytest.raises(ValueError):
        GuardrailMiddleware(guard, polcy="strict")


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_the_guarded_message_replaces_the_raw_one(guard, way):
    item = guarded(guard, AIMessage(content=ANSWER, id="run-1"))
    state = item.invoke(ASKED) if way == "invoke" else await item.ainvoke(ASKED)
    assert CANARY not in str(state)
    assert state["guardrail"]["action"] == "filter"
    _, message = state["messages"]
    assert message.id == "run-1"
    assert message.text.startswith(TRUE_MARKED)


def test_more_agents_than_the_event_loop_has_threads_call_their_models_at_once(guard):
    together = threading.Barrier(40, timeout=PATIENCE_S)  # the pool holds at most 32

    @wrap_model_call
    def meet(request, handler):
        together.wait()
        return handler(request)

    with ThreadPoolExecutor(40) as callers:
        states = callers.map(
            lambda _: guarded(guard, TRUE_START, inside=[meet]).invoke(ASKED), range(40)
        )
        assert all("guardrail" in state for state in states)


def test_an_error_of_the_model_reaches_the_caller(guard):
    @wrap_model_call
    def broken(request, handler):
        raise ConnectionError

    with pytest.raises(ConnectionError):
        guarded(guard, ANSWER, inside=[broken]).invoke(ASKED)


@pytest.mark.parametrize("content", ["", ANSWER])
def test_a_tool_call_passes_and_text_next_to_it_is_judged(guard, content):
    calls = [{"name": "birth_year", "args": {"name": "Mary"}, "id": "1"}]
    call = AIMessage(content=content, tool_calls=calls)
    state = guarded(guard, call, TRUE_START, tools=[birth_year]).invoke(ASKED)
    _, called, result, last = state["messages"]
    assert called.tool_calls == call.tool_calls
    assert called.text.startswith(TRUE_MARKED if content else "")
    assert CANARY not in str(state)
    assert result.content == "1797"
    assert last.text.startswith(TRUE_MARKED)


@pytest.mark.parametrize("tools", [(), (birth_year,)], ids=["plain", "tools bound"])
async def test_no_stream_leaks(guard, tools):
    """Both candidates hold the canary; a second call of the handler must not stream either."""

    def item():
        policy = STRICT.model_copy(update={"candidates": 2})
        return guarded(guard, ANSWER, ANSWER, policy=policy, tools=tools)

    for mode in MODES:
        assert CANARY not in "".join(map(str, item().stream(ASKED, stream_mode=mode)))
        bare = agent(ANSWER, tools=tools).stream(ASKED, stream_mode=mode)
        assert CANARY in "".join(map(str, bare))
    assert CANARY not in str([it async for it in item().astream(ASKED, stream_mode=MODES)])
    assert CANARY not in str([it async for it in item().astream_events(ASKED, version="v2")])
    bare = agent(ANSWER, tools=tools).astream_events(ASKED, version="v2")
    assert CANARY in str([it async for it in bare])


REGENERATE = STRICT.model_copy(update={"contradicted": Action.REGENERATE, "attempts": 2})


def test_regeneration_names_what_failed(guard):
    seen = []
    spy = spying(seen, lambda request: request.messages[-1])
    state = guarded(guard, ANSWER, TRUE_START, policy=REGENERATE, inside=[spy]).invoke(ASKED)
    _, message = state["messages"]  # neither the failed answer nor the feedback stays
    assert message.text.startswith(TRUE_MARKED)
    assert "date of birth: 1797-08-30" in seen[1]

    exhausted = REGENERATE.model_copy(update={"exhausted": Action.FILTER})
    assert CANARY not in str(guarded(guard, ANSWER, ANSWER, policy=exhausted).invoke(ASKED))


def test_injected_facts_extend_the_system_prompt(exact_guard):
    seen = []
    spy = spying(seen, lambda request: request.system_message)
    middleware = [GuardrailMiddleware(exact_guard, inject="facts"), spy]
    item = agent("She was a writer.", middleware=middleware, system_prompt="Be brief.")
    item.invoke({"messages": [("user", "Who was Ada Lovelace?")]})
    assert seen[0].startswith("Be brief.")
    assert "father: Lord Byron" in seen[0]
