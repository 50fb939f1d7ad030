"""A gateway's dry run: every answer is returned unchanged, and all is judged and reported."""

import json

import pytest

from guardrail import BEST_OF_N, STRICT
from guardrail.core.errors import KnowledgeGraphError
from guardrail.log.records import open_log
from tests.chains.conftest import ANSWER, CANARY, QUESTION
from tests.chains.fake_openai import CANDIDATES, JSON_ANSWER

CHAT = {"model": "plain", "messages": [{"role": "user", "content": QUESTION}]}
RESPONSES = {"model": "plain", "input": QUESTION}


@pytest.fixture
def dry(gateway, guarded):
    """Makes clients of gateways in a dry run."""

    def make(policy=STRICT, *, path=None, retriever=None, **settings):
        options = {"retriever": retriever} if retriever else {}
        guard = guarded(policy.changed(dry_run=True), path=path, **options)
        return gateway(guard, **settings)

    return make


async def test_a_whole_answer_is_unchanged(dry, log_path):
    reply = await dry(path=log_path).post("/v1/chat/completions", json=CHAT)
    message = reply.json()["choices"][0]["message"]
    assert (message["content"], message["annotations"]) == (ANSWER, [])
    verdict = message["guardrail"]
    assert (verdict["action"], verdict["would"], verdict["would_block"]) == ("pass", "filter", True)
    assert CANARY in verdict["reasons"][0]
    assert reply.headers["x-guardrail-dry-run"] == "true"
    assert reply.headers["x-guardrail-would"] == "filter"
    with open_log(log_path, read_only=True) as log:
        assert [item.answer.would for item in log.records()] == ["filter"]
    reply = await dry().post("/v1/responses", json=RESPONSES)
    [part] = [part for item in reply.json()["output"] for part in item.get("content", ())]
    assert (part["text"], part["guardrail"]["would"]) == (ANSWER, "filter")


@pytest.mark.parametrize("mode", ["sentence", "buffer"])
@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_a_stream_is_unchanged_and_ends_with_the_verdict(dry, path, mode):
    body = (CHAT if path.startswith("chat") else RESPONSES) | {"stream": True}
    reply = await dry(stream_mode=mode).post(f"/v1/{path}", json=body)
    assert reply.headers["x-guardrail-dry-run"] == "true"
    events = [json.loads(line[6:]) for line in reply.text.splitlines() if line[:7] == "data: {"]
    if path == "responses":
        text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        verdict = events[-1]["response"]["output"][-1]["content"][0]["guardrail"]
    else:
        deltas = [choice["delta"] for event in events for choice in event["choices"]]
        text = "".join(delta.get("content") or "" for delta in deltas)
        [verdict] = [delta["guardrail"] for delta in deltas if "guardrail" in delta]
    assert (text, verdict["would"]) == (ANSWER, "filter")


async def test_nothing_is_sampled_again_and_the_order_stays(dry, fake):
    fake.requests.clear()
    client = dry(BEST_OF_N)
    reply = await client.post("/v1/chat/completions", json=CHAT | {"model": "false-only"})
    assert [request.get("n") for request in fake.requests] == [None]
    assert reply.headers["x-guardrail-would"] == "regenerate"
    reply = await client.post("/v1/chat/completions", json=CHAT | {"n": 3, "model": "several"})
    texts = [choice["message"]["content"] for choice in reply.json()["choices"]]
    assert texts == CANDIDATES[:3]


async def test_it_holds_for_policies_of_requests_and_for_json(dry):
    body = CHAT | {"guardrail": {"policy": "strict"}}
    reply = await dry(BEST_OF_N).post("/v1/chat/completions", json=body)
    assert CANARY in reply.json()["choices"][0]["message"]["content"]
    body = {"question": QUESTION, "answer": ANSWER, "policy": "strict"}
    checked = (await dry().post("/v1/checks", json=body)).json()
    assert (checked["would"], checked["text"]) == ("filter", ANSWER)
    body = CHAT | {"response_format": {"type": "json_object"}, "model": "json"}
    reply = await dry(STRICT.changed(structured=True)).post("/v1/chat/completions", json=body)
    message = reply.json()["choices"][0]["message"]
    assert message["content"] == JSON_ANSWER
    [document] = message["guardrail"]["structured"]
    assert (document["would"], document["withheld"]) == ("refuse", False)


async def test_a_graph_that_fails_holds_nothing_back(dry):
    def fails(question):
        raise KnowledgeGraphError("the graph is down")

    tool = {"role": "tool", "tool_call_id": "call_1", "content": "She was a writer."}
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [*CHAT["messages"], {"role": "assistant", "tool_calls": [call]}, tool]
    for body in (CHAT, CHAT | {"messages": turns}):
        reply = await dry(retriever=fails).post("/v1/chat/completions", json=body)
        message = reply.json()["choices"][0]["message"]
        assert message["content"] == ANSWER
        assert "kg" in {problem["part"] for problem in message["guardrail"]["errors"]}


@pytest.mark.parametrize(
    ("tenant", "in_dry_run", "live"),
    [
        ({"dry_run": False}, False, False),
        ({"policy": "strict"}, True, False),
        ({"policy": {"dry_run": True}}, True, True),
    ],
)
async def test_a_tenant_may_go_live_on_its_own(gateway, guarded, tenant, in_dry_run, live):
    for dry_run, unchanged in ((True, in_dry_run), (False, live)):
        guard = guarded(STRICT.changed(dry_run=dry_run))
        client = gateway(guard, key="k", tenants={"a": {"keys": "k"} | tenant})
        reply = await client.post("/v1/chat/completions", json=CHAT)
        assert (CANARY in reply.json()["choices"][0]["message"]["content"]) is unchanged
