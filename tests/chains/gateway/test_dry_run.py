"""A gateway's dry run: every answer leaves as the model wrote it, and all is judged and told."""

import json

import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import BEST_OF_N, STRICT, GuardrailConfig
from guardrail.core.errors import KnowledgeGraphError
from guardrail.log.records import open_log
from tests.chains.conftest import ANSWER, CANARY, FALSE_MIDDLE, QUESTION, scripted_guard
from tests.chains.fake_openai import CANDIDATES, JSON_ANSWER
from tests.chains.gateway.test_protocols import LITELLM, response_call

CHAT = {"model": "plain", "messages": [{"role": "user", "content": QUESTION}]}
RESPONSES = {"model": "plain", "input": QUESTION}


def by(key):
    return {"authorization": f"Bearer {key}"}


@pytest.fixture
def gateway(upstream, tmp_path, in_process):
    """A client of a gateway in a dry run; settings and policy by the test."""
    guards = []

    def make(policy=STRICT, retriever=None, **settings):
        config = GuardrailConfig(policy=policy, log=tmp_path / "scores.sqlite")
        options = {} if retriever is None else {"retriever": retriever}
        guards.append(scripted_guard(config=config, **options))
        given = {"upstream": upstream, "dry_run": True, "protocols": "litellm,fms"} | settings
        app = create_app(guards[-1], GatewaySettings.model_validate(given))
        return in_process(app)

    yield make
    for guard in guards:
        guard.close()


async def test_a_whole_answer_leaves_as_it_was_written(gateway, tmp_path):
    reply = await gateway().post("/v1/chat/completions", json=CHAT)
    message = reply.json()["choices"][0]["message"]
    assert message["content"] == ANSWER
    assert message["annotations"] == []
    told = message["guardrail"]
    assert (told["action"], told["would"], told["would_block"]) == ("pass", "filter", True)
    assert CANARY in told["reasons"][0]
    assert reply.headers["x-guardrail-dry-run"] == "true"
    assert reply.headers["x-guardrail-would"] == "filter"
    with open_log(tmp_path / "scores.sqlite", read_only=True) as log:
        assert [item.answer.would for item in log.records()] == ["filter"]


async def test_a_response_leaves_as_it_was_written(gateway):
    reply = await gateway().post("/v1/responses", json=RESPONSES)
    [part] = [part for item in reply.json()["output"] for part in item.get("content", ())]
    assert part["text"] == ANSWER
    assert part["guardrail"]["would"] == "filter"
    assert reply.headers["x-guardrail-would"] == "filter"


@pytest.mark.parametrize("mode", ["sentence", "buffer"])
@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_a_stream_leaves_as_it_comes_with_the_verdict_behind_it(gateway, fake, path, mode):
    body = (CHAT if path.startswith("chat") else RESPONSES) | {"stream": True}
    fake.seed += 1
    reply = await gateway(stream_mode=mode).post(f"/v1/{path}", json=body)
    assert reply.headers["x-guardrail-dry-run"] == "true"
    events = [
        json.loads(line.removeprefix("data: "))
        for line in reply.text.splitlines()
        if line.startswith("data: {")
    ]
    if path == "responses":
        text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        done = events[-1]["response"]["output"][-1]["content"][0]
        assert done["text"] == ANSWER
        told = done["guardrail"]
    else:
        deltas = [choice["delta"] for event in events for choice in event["choices"]]
        text = "".join(delta.get("content") or "" for delta in deltas)
        [told] = [delta["guardrail"] for delta in deltas if "guardrail" in delta]
    assert text == ANSWER
    assert told["would"] == "filter"


async def test_nothing_more_is_sampled_and_the_order_stays(gateway, fake):
    fake.requests.clear()
    client = gateway(policy=BEST_OF_N)
    reply = await client.post("/v1/chat/completions", json=CHAT | {"model": "false-only"})
    assert [request.get("n") for request in fake.requests] == [None]
    assert reply.headers["x-guardrail-would"] == "regenerate"
    reply = await client.post("/v1/chat/completions", json=CHAT | {"n": 3, "model": "several"})
    texts = [choice["message"]["content"] for choice in reply.json()["choices"]]
    assert texts == CANDIDATES[:3]


async def test_a_policy_that_a_request_names_is_tried_out_as_well(gateway):
    asked = CHAT | {"guardrail": {"policy": "strict"}}
    reply = await gateway(policy=BEST_OF_N).post("/v1/chat/completions", json=asked)
    assert CANARY in reply.json()["choices"][0]["message"]["content"]
    asked = {"question": QUESTION, "answer": ANSWER, "policy": "strict"}
    checked = await gateway().post("/v1/checks", json=asked)
    assert (checked.json()["would"], checked.json()["text"]) == ("filter", ANSWER)
    assert checked.headers["x-guardrail-would"] == "filter"


async def test_json_and_calls_leave_whatever_is_found_in_them(gateway):
    client = gateway(policy=STRICT.changed(structured=True))
    wanted = {"response_format": {"type": "json_object"}, "model": "json"}
    reply = await client.post("/v1/chat/completions", json=CHAT | wanted)
    message = reply.json()["choices"][0]["message"]
    assert message["content"] == JSON_ANSWER
    assert [item["would"] for item in message["guardrail"]["structured"]] == ["refuse"]
    assert not message["guardrail"]["structured"][0]["withheld"]


async def test_a_graph_that_fails_keeps_nothing_back(gateway):
    def fails(question):
        raise KnowledgeGraphError("the graph is down")

    tool = {"role": "tool", "tool_call_id": "call_1", "content": "She was a writer."}
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    told = [*CHAT["messages"], {"role": "assistant", "tool_calls": [call]}, tool]
    for body in (CHAT, CHAT | {"messages": told}):
        reply = await gateway(retriever=fails).post("/v1/chat/completions", json=body)
        message = reply.json()["choices"][0]["message"]
        assert message["content"] == ANSWER
        assert "kg" in {problem["part"] for problem in message["guardrail"]["errors"]}


async def test_other_gateways_are_told_to_let_it_pass(gateway):
    client = gateway()
    said = await client.post(LITELLM, json=response_call("call", FALSE_MIDDLE))
    assert said.json() == {"action": "NONE"}
    assert said.headers["x-guardrail-dry-run"] == "true"
    assert said.headers["x-guardrail-would"] == "refuse"
    asked = {"content": FALSE_MIDDLE, "context": ["Mary Shelley was a writer."]}
    told = await client.post("/api/v1/text/context/doc", json=asked)
    assert told.json() == []
    assert told.headers["x-guardrail-would"] == "annotate"


async def test_a_tenant_goes_live_before_the_others_or_after_them(gateway):
    tenants = {
        "live": {"keys": ["live-key"], "dry_run": False},
        "named": {"keys": ["named-key"], "policy": "strict"},
        "tried": {"keys": ["tried-key"], "policy": {"dry_run": True}},
    }
    kept = {}
    for dry_run in (True, False):
        client = gateway(tenants=tenants, dry_run=dry_run)
        for name in tenants:
            asked = {"json": CHAT, "headers": by(f"{name}-key")}
            reply = await client.post("/v1/chat/completions", **asked)
            kept[name, dry_run] = CANARY in reply.json()["choices"][0]["message"]["content"]
    assert kept == {
        ("live", True): False,
        ("named", True): True,
        ("tried", True): True,
        ("live", False): False,
        ("named", False): False,
        ("tried", False): True,
    }
