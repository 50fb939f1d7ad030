"""Tracers see each check as a run of its own under the guarded Runnable's."""

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler as Seen

from chains import GuardrailMiddleware, GuardrailRunnable
from guardrail import BEST_OF_N, STRICT, KnowledgeGraphError, Policy
from tests.chains.conftest import ANSWER, CANARY, QUESTION, TRUE_START, scripted_guard
from tests.chains.hotel import DOCUMENTS, HOTEL_QUESTION, RIGHT, SAID, WRONG
from tests.chains.models import WAYS, agent, model, run


def checks(seen):
    """The runs of checks, wherever they are."""
    runs = [*seen.traced_runs]
    for one in runs:
        runs += one.child_runs
    return [one for one in runs if one.name == "guardrail_check"]


def only(seen):
    """Inputs and outputs of the one check, which is under the guarded Runnable's run."""
    (top,) = seen.traced_runs
    (check,) = (one for one in top.child_runs if one.name == "guardrail_check")
    assert top.name == "GuardrailRunnable"
    return check.inputs, check.outputs


@pytest.mark.parametrize("way", WAYS)
async def test_a_check_has_inputs_and_a_verdict(guard, way):
    seen = Seen()
    await run(GuardrailRunnable(guard, model()), QUESTION, way, {"callbacks": [seen]})
    inputs, verdict = only(seen)
    assert (inputs["question"], inputs["answer"]) == (QUESTION, ANSWER)
    assert verdict["action"] == "filter"
    assert CANARY in verdict["reasons"][0]
    assert [item["category"] for item in verdict["sentences"]] == ["supportive", "supportive"]
    assert verdict["scorecard"]["overall"]["value"] > 0


def test_given_evidence_is_among_the_inputs(guard):
    seen = Seen()
    chain = GuardrailRunnable(guard, model(SAID), evidence=lambda value: DOCUMENTS)
    chain.invoke(HOTEL_QUESTION, {"callbacks": [seen]})
    inputs, _ = only(seen)
    assert [item["title"] for item in inputs["evidence"]] == [item.title for item in DOCUMENTS]


def test_each_answer_of_a_batch_has_its_own_and_a_tool_call_none(guard):
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}])
    first, second, third = seen = [Seen(), Seen(), Seen()]
    chain = GuardrailRunnable(guard, RunnableLambda(lambda said: said))
    outputs = [AIMessage(TRUE_START), AIMessage(ANSWER), call]
    chain.batch(outputs, [{"callbacks": [one]} for one in seen])
    assert [only(one)[0]["answer"] for one in (first, second)] == [TRUE_START, ANSWER]
    assert [only(one)[1]["action"] for one in (first, second)] == ["pass", "filter"]
    assert checks(third) == []


def test_a_check_that_fails_ends_with_the_error():
    def broken(question):
        raise KnowledgeGraphError("no graph")

    policy = Policy(name="loud", unavailable="raise")
    seen = Seen()
    with scripted_guard(retriever=broken) as guard, pytest.raises(KnowledgeGraphError):
        GuardrailRunnable(guard, model(), policy=policy).invoke(QUESTION, {"callbacks": [seen]})
    (check,) = checks(seen)
    assert "KnowledgeGraphError" in check.error


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_events_for_a_consumer_do_not_hold_the_check(guard, version):
    """Its inputs are the answer before it was judged."""
    seen, chain = Seen(), GuardrailRunnable(guard, model())
    events = chain.astream_events(QUESTION, {"callbacks": [seen]}, version=version)
    assert CANARY not in str([event async for event in events])
    assert len(checks(seen)) == 1


@pytest.mark.parametrize(
    ("policy", "said"),
    [(STRICT, [SAID]), (BEST_OF_N.changed(candidates=2, attempts=1), [WRONG, RIGHT])],
)
def test_answers_of_an_agent_have_checks(guard, policy, said):
    middleware = GuardrailMiddleware(guard, policy=policy, evidence=lambda state: DOCUMENTS)
    seen = Seen()
    agent(*said, middleware=[middleware]).invoke(
        {"messages": [("user", HOTEL_QUESTION)]}, {"callbacks": [seen]}
    )
    actions = {one.inputs["answer"]: one.outputs["action"] for one in checks(seen)}
    assert actions.keys() == set(said)
    assert all((action == "pass") == (answer == RIGHT) for answer, action in actions.items())
