"""Tracers see the check as a run of its own, beneath the guarded Runnable's."""

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from chains import GuardrailMiddleware, GuardrailRunnable
from guardrail import BEST_OF_N, STRICT, KnowledgeGraphError, Policy
from tests.chains.conftest import ANSWER, CANARY, QUESTION, TRUE_START, scripted_guard
from tests.chains.hotel import DOCUMENTS, HOTEL_QUESTION, RIGHT, SAID, WRONG


class Seen(BaseCallbackHandler):
    """All runs, in the order of their start."""

    def __init__(self):
        self.runs = {}

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **told):
        self.runs[run_id] = {
            "name": told.get("name"), "inputs": inputs, "parent": parent_run_id, "id": run_id,
        }  # fmt: skip

    def on_chain_end(self, outputs, *, run_id, **told):
        self.runs[run_id]["outputs"] = outputs

    def on_chain_error(self, error, *, run_id, **told):
        self.runs[run_id]["error"] = error

    @property
    def checks(self):
        return [run for run in self.runs.values() if run["name"] == "guardrail_check"]


class SeenAsync(AsyncCallbackHandler, Seen):
    async def on_chain_start(self, *parts, **told):
        Seen.on_chain_start(self, *parts, **told)

    async def on_chain_end(self, *parts, **told):
        Seen.on_chain_end(self, *parts, **told)


def model(*answers):
    return GenericFakeChatModel(
        messages=iter([AIMessage(answer) for answer in answers or [ANSWER]])
    )


def shown(seen):
    """The one check, which must be finished, and stand beneath the guarded Runnable."""
    (check,) = seen.checks
    assert seen.runs[check["parent"]]["name"] == "GuardrailRunnable"
    return check["inputs"], check["outputs"]


@pytest.mark.parametrize("kind", [Seen, SeenAsync])
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_a_check_has_inputs_and_a_verdict(guard, way, kind):
    seen, chain = kind(), GuardrailRunnable(guard, model())
    config = {"callbacks": [seen]}
    if way == "invoke":
        chain.invoke(QUESTION, config)
    elif way == "ainvoke":
        await chain.ainvoke(QUESTION, config)
    elif way == "stream":
        list(chain.stream(QUESTION, config))
    else:
        assert [piece async for piece in chain.astream(QUESTION, config)]
    inputs, verdict = shown(seen)
    assert inputs["question"] == QUESTION
    assert inputs["answer"] == ANSWER
    assert verdict["action"] == "filter"
    assert CANARY in verdict["reasons"][0]
    assert [item["category"] for item in verdict["sentences"]] == ["supportive", "supportive"]
    assert verdict["scorecard"]["overall"]["value"] > 0


def test_evidence_that_was_handed_over_is_among_the_inputs(guard):
    seen = Seen()
    chain = GuardrailRunnable(guard, model(SAID), evidence=lambda value: DOCUMENTS)
    chain.invoke(HOTEL_QUESTION, {"callbacks": [seen]})
    inputs, _ = shown(seen)
    assert inputs["evidence"][0]["title"] == "Kestrel guide"
    assert len(inputs["evidence"]) == 5


@pytest.mark.parametrize("way", ["batch", "abatch"])
async def test_each_answer_of_a_batch_has_its_own(guard, way):
    first, second = Seen(), Seen()
    configs = [{"callbacks": [first]}, {}, {"callbacks": [second]}]
    chain = GuardrailRunnable(guard, RunnableLambda(AIMessage))
    found = getattr(chain, way)([TRUE_START, "Hello!", ANSWER], configs)
    if way == "abatch":
        await found
    told = [shown(seen) for seen in (first, second)]
    assert [inputs["answer"] for inputs, _ in told] == [TRUE_START, ANSWER]
    assert [verdict["action"] for _, verdict in told] == ["pass", "filter"]


def test_a_check_that_fails_ends_with_the_error():
    def broken(question):
        raise KnowledgeGraphError("no graph")

    policy = Policy(name="loud", unavailable="raise")
    seen = Seen()
    with scripted_guard(retriever=broken) as guard, pytest.raises(KnowledgeGraphError):
        GuardrailRunnable(guard, model(), policy=policy).invoke(QUESTION, {"callbacks": [seen]})
    (check,) = seen.checks
    assert isinstance(check["error"], KnowledgeGraphError)


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_events_for_a_consumer_do_not_hold_the_check(guard, version):
    """Its inputs are the answer before it was judged."""
    seen, chain = Seen(), GuardrailRunnable(guard, model())
    events = chain.astream_events(QUESTION, {"callbacks": [seen]}, version=version)
    assert CANARY not in str([event async for event in events])
    assert len(seen.checks) == 1


def test_tool_calls_and_data_have_no_check(guard):
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}])
    seen = Seen()
    chain = GuardrailRunnable(guard, GenericFakeChatModel(messages=iter([call])))
    chain.invoke(QUESTION, {"callbacks": [seen]})
    assert seen.checks == []


@pytest.mark.parametrize(
    ("policy", "said"),
    [(STRICT, [SAID]), (BEST_OF_N.changed(candidates=2, attempts=1), [WRONG, RIGHT])],
)
def test_an_agents_answers_have_checks_too(guard, policy, said):
    agent = create_agent(
        model(*said), [],
        middleware=[GuardrailMiddleware(guard, policy=policy, evidence=lambda state: DOCUMENTS)],
    )  # fmt: skip
    seen = Seen()
    agent.invoke({"messages": [("user", HOTEL_QUESTION)]}, {"callbacks": [seen]})
    told = {check["inputs"]["answer"]: check["outputs"] for check in seen.checks}
    assert sorted(told) == sorted(said)
    for answer, verdict in told.items():
        assert (verdict["action"] == "pass") == (answer == RIGHT)
