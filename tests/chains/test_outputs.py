"""Where the answer stands in what a chain returns: named, found, or an error."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableGenerator, RunnableLambda

from chains import GuardrailRunnable
from guardrail import InputError
from tests.chains.conftest import ANSWER, CANARY, QUESTION

CALL = {"name": "look", "args": {}, "id": "1"}
TURNS = [
    HumanMessage(QUESTION),
    AIMessage("", tool_calls=[CALL]),
    ToolMessage("She was a writer.", tool_call_id="1"),
    AIMessage(ANSWER, id="last"),
]


def guarded(guard, output, key=None):
    return GuardrailRunnable(guard, RunnableLambda(lambda _: output), answer_key=key, style="none")


def run(runnable, way):
    if way == "invoke":
        return runnable.invoke({"question": QUESTION})
    if way == "batch":
        return runnable.batch([{"question": QUESTION}])[0]
    return list(runnable.stream({"question": QUESTION}))


@pytest.mark.parametrize("way", ["invoke", "batch", "stream"])
@pytest.mark.parametrize(
    ("output", "key"),
    [
        ({"answer": ANSWER}, "answer"),
        ({"out": {"answer": ANSWER}}, "out.answer"),
        ({"out.answer": ANSWER}, "out.answer"),
        ({"out": {"answer": AIMessage(ANSWER)}}, "out.answer"),
        ({"messages": TURNS}, "messages"),
        ({"messages": TURNS}, None),
        ({"model": {"messages": TURNS[-1:]}}, None),
        (TURNS, None),
        (TURNS, "answer"),
        (AIMessage(ANSWER), "answer"),
        (ANSWER, "answer"),
    ],
)
def test_the_answer_is_judged_where_it_stands(guard, output, key, way):
    found = run(guarded(guard, output, key), way)
    assert CANARY not in str(found)
    assert "Mary Shelley was a writer." in str(found)


@pytest.mark.parametrize("way", ["invoke", "batch", "stream"])
@pytest.mark.parametrize(
    ("output", "key"),
    [
        ({"answer": ANSWER}, "answr"),
        ({"out": {"answer": ANSWER}}, "out.text"),
        ({"out": {"answer": ANSWER}}, "out"),
        ({"answer": [ANSWER]}, "answer"),
        ({"answer": None}, "answer"),
        ({"answer": {"text": ANSWER}}, "answer"),
        ({"messages": [HumanMessage(QUESTION)]}, "messages"),
        ([1, 2], "answer"),
    ],
)
def test_a_key_that_holds_no_answer_is_an_error(guard, output, key, way):
    with pytest.raises(InputError):
        run(guarded(guard, output, key), way)


def test_an_agents_other_messages_stay(guard):
    found = guarded(guard, {"messages": TURNS, "steps": 2}).invoke({"question": QUESTION})
    assert found["messages"][:-1] == TURNS[:-1]
    assert found["messages"][-1].id == "last"
    assert found["messages"][-1].response_metadata["guardrail"]["action"] == "filter"
    assert found["steps"] == 2


def test_a_misspelt_key_of_a_streamed_mapping_is_an_error(guard):
    def pieces(_):
        yield {"context": "notes"}
        yield {"answer": ANSWER[:20]}
        yield {"answer": ANSWER[20:]}

    chain = GuardrailRunnable(guard, RunnableGenerator(pieces), answer_key="answr")
    with pytest.raises(InputError):
        list(chain.stream({"question": QUESTION}))
    named = GuardrailRunnable(guard, RunnableGenerator(pieces), answer_key="answer", style="none")
    assert CANARY not in str(list(named.stream({"question": QUESTION})))
