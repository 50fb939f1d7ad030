"""What every host's handler owes its callers, by the host's recorded calls.

A protocol that is registered is held to it without a line here. The last of its calls holds an
answer of three sentences, the second of which the evidence in the calls contradicts.
"""

import json

import pytest

from benchmarks.fuzz.bodies import HOSTS
from chains.caller import CallerRights
from chains.evidence import EvidenceSettings, Source
from chains.gateway.protocols import PROTOCOLS
from chains.openai_request import GuardSettings
from guardrail import ANNOTATE, BEST_OF_N, STRICT, Action, GuardrailConfig, Passage
from tests.chains.conftest import scripted_guard
from tests.chains.hotel import MORE, RIGHT, SAID, SECRET

OWNER = ""
GRAPH = "The Kestrel Hotel has a pool."
DECIDING = [name for name, make in PROTOCOLS.items() if not make().texts]
"""Hosts that do what the policy decided; to others each sentence is told, and they decide."""

each_host = pytest.mark.parametrize("name", PROTOCOLS)
each_deciding = pytest.mark.parametrize("name", DECIDING)


@pytest.fixture(scope="module")
def guard():
    retrieved = [Passage(text=GRAPH)]
    config = GuardrailConfig(policy=STRICT)
    with scripted_guard(config=config, retriever=lambda question: retrieved) as guard:
        yield guard


async def judged(name, guard, **guarded):
    """What the last of a host's recorded calls gets back, and the verdict behind it."""
    assert HOSTS[name], f"record a call of {name!r} in tests/chains/hosts/recorded/{name}.json"
    assert SECRET in json.dumps(HOSTS[name][-1]), "its answer is SAID of tests/chains/hotel.py"
    protocol = PROTOCOLS[name]()
    for body in HOSTS[name]:
        reply, answers = await protocol.answer(body, GuardSettings(guard=guard, **guarded))
    (verdict,) = answers
    return json.dumps(reply), verdict


@each_deciding
async def test_what_was_removed_does_not_leave(name, guard):
    told, verdict = await judged(name, guard)
    assert verdict.action is Action.FILTER
    assert SECRET not in told
    assert RIGHT[:-1] in told


@each_deciding
async def test_the_policy_is_that_of_the_call(name, guard):
    """A handler is made once, and its callers have policies of their own."""
    told, verdict = await judged(name, guard, policy=ANNOTATE)
    assert verdict.action is Action.ANNOTATE
    assert SECRET in told


@each_deciding
@pytest.mark.parametrize("reasons", [True, False])
async def test_a_refusal_is_told_without_what_was_refused(name, guard, reasons):
    refusing = STRICT.changed(thresholds={"supported_share": 1.0}, below="refuse")
    told, verdict = await judged(name, guard, policy=refusing, reasons=reasons)
    assert verdict.action is Action.REFUSE
    assert STRICT.refusal in told
    assert SECRET not in told
    assert ("supported_share" in told.replace('"supported_share"', "")) == reasons


@each_host
async def test_nothing_is_asked_for_again(name, guard):
    _, verdict = await judged(name, guard, policy=BEST_OF_N, checks_policy=BEST_OF_N)
    assert verdict.action is not Action.REGENERATE


@each_host
async def test_in_a_dry_run_nothing_is_blocked(name, guard):
    tried = {"policy": STRICT, "checks_policy": ANNOTATE}
    dry = {key: policy.changed(dry_run=True) for key, policy in tried.items()}
    told, verdict = await judged(name, guard, **dry)
    assert verdict.would
    assert STRICT.refusal not in told
    assert SAID in told or RIGHT[:-1] not in told, "where the text is told, it leaves as it came"


@each_host
async def test_evidence_counts_where_callers_may_bring_it(name, guard):
    _, verdict = await judged(name, guard)
    assert {RIGHT, MORE} <= {item.text for item in verdict.evidence}
    closed = CallerRights(evidence=False)
    _, verdict = await judged(name, guard, rights=closed)
    assert {item.text for item in verdict.evidence} == {GRAPH}
    assert verdict.errors


@each_host
@pytest.mark.parametrize("mode", ["given", "both", "graph"])
async def test_the_mode_says_what_is_judged_against_what(name, guard, mode):
    """What a call hands over stands in place of the graph; results of tools count beside it."""
    _, verdict = await judged(name, guard, evidence=EvidenceSettings(mode=mode))
    texts = {item.text for item in verdict.evidence}
    assert (GRAPH in texts) == (mode != "given" or Source.TOOLS in verdict.evidence_from)
    assert (MORE in texts) == (mode != "graph")


@each_host
async def test_routes_choose_by_the_model_that_was_asked(name):
    protocol = PROTOCOLS[name]()
    for body in HOSTS[name]:
        named = set(models_in(body))
        found = await protocol.model_of(body, OWNER)
        assert not named or found in named, "model_of does not find the model"


@each_host
@pytest.mark.parametrize("odd", [None, 3, "text", [], {}, {"json": []}])
async def test_a_body_without_a_model_names_none(name, odd):
    protocol = PROTOCOLS[name]()
    for body in HOSTS[name]:
        told = {key: odd for key in body if key != "model"}
        assert await protocol.model_of(told, OWNER) is None


def models_in(value):
    """All that a call calls a model."""
    for key, item in value.items() if isinstance(value, dict) else ():
        if key == "model":
            yield item
        yield from models_in(item)
