"""``/metrics``: what became of answers, how long it took, and what is busy."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from guardrail import STRICT, Guardrail, GuardrailConfig
from guardrail.core.errors import KnowledgeGraphError
from tests.chains.conftest import ANSWER, FACTS, QUESTION, TRUE_START
from tests.chains.scripted import ScriptedJudge

CHAT = {"model": "plain", "messages": [{"role": "user", "content": QUESTION}]}
CHECK = {"question": QUESTION, "answer": TRUE_START}


async def numbers(client, name):
    """The samples of a metric by their labels' values, in the order of the labels' names."""
    page = (await client.get("/metrics")).text
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == f"kg_guardrail_{name}"
    }


def fails(question):
    raise KnowledgeGraphError("the graph is down")


JSON_MODE = {"model": "json", "response_format": {"type": "json_object"}}
DOWN = {"retriever": fails}


@pytest.mark.parametrize(
    ("changes", "options", "body", "error_type", "result"),
    [
        ({}, {}, {}, "", "filtered"),
        ({"dry_run": True}, {}, {}, "", "would_block"),
        ({"contradicted": "annotate"}, {}, {}, "", "annotated"),
        ({}, {}, JSON_MODE, "", "bypassed"),
        ({}, DOWN, {}, "kg", "refused"),
        ({"dry_run": True}, DOWN, {}, "kg", "would_block"),
        ({"unavailable": "return_unverified"}, DOWN, {}, "kg", "unverified"),
        ({"unavailable": "raise"}, DOWN, {}, "kg", "error"),
    ],
)
async def test_each_answer_is_counted_by_its_result(
    gateway, guarded, changes, options, body, error_type, result
):
    client = gateway(guarded(STRICT.changed(**changes), **options))
    for stream in (False, True):
        await client.post("/v1/chat/completions", json=CHAT | body | {"stream": stream})
    assert await numbers(client, "requests_total") == {
        (error_type, phase, "strict", result, ""): 1.0 for phase in ("output", "stream")
    }
    if result == "filtered":
        assert await numbers(client, "first_release_seconds_count") == {(): 1.0}
        routes = {("/v1/chat/completions", "200", ""): 2.0}
        assert routes.items() <= (await numbers(client, "http_requests_total")).items()
        answer = ("output", "strict", "filtered")
        assert (await numbers(client, "latency_seconds_count"))[answer] == 1.0
        spent = await numbers(client, "stage_seconds_sum")
        assert {("attribute",), ("parse",), ("retrieve",), ("score",)} == set(spent)


async def test_errors_of_the_upstream_and_of_callers_are_not_the_guardrails(gateway):
    for client in (gateway(), gateway(upstream="http://127.0.0.1:1/v1")):
        for model in ("error-500", "error-401"):
            await client.post("/v1/chat/completions", json=CHAT | {"model": model})
        await client.post("/v1/checks", json={"answer": 7})
        assert await numbers(client, "requests_total") == {}


@pytest.mark.parametrize("stream", [False, True])
async def test_unexpected_errors_are_counted(gateway, monkeypatch, stream):
    def broken(*args, **more):
        raise RuntimeError("nobody expected this")

    client = gateway()
    client._transport.raise_app_exceptions = False
    monkeypatch.setattr("chains.gateway.app.Exchange", broken)
    reply = await client.post("/v1/chat/completions", json=CHAT | {"stream": stream})
    assert reply.status_code == 500
    monkeypatch.setattr("chains.gateway.requests.CheckBody.judge", broken)
    assert (await client.post("/v1/checks", json=CHECK)).status_code == 500
    assert await numbers(client, "requests_total") == {
        ("internal", "output", "strict", "error", ""): 1.0,
        ("internal", "check", "annotate", "error", ""): 1.0,
    }


async def test_checks_and_rankings_are_counted_with_their_tenant(gateway, guard):
    client = gateway(guard, key="own", tenants="shop=shop-key", keys="own")
    shop = {"authorization": "Bearer shop-key"}
    await client.post("/v1/checks", json=CHECK, headers=shop)
    ranked = {"question": QUESTION, "answers": [ANSWER, TRUE_START]}
    await client.post("/v1/rank", json=ranked, headers=shop)
    assert await numbers(client, "requests_total") == {
        ("", "check", "annotate", "allowed", "shop"): 1.0,
        ("", "rank", "annotate", "allowed", "shop"): 1.0,
        ("", "rank", "annotate", "annotated", "shop"): 1.0,
    }


async def test_batches_and_hits_are_those_of_the_judge(gateway):
    config = GuardrailConfig(judge_cache=100)
    judge = ScriptedJudge()
    with Guardrail(config, grounding=judge, retriever=lambda question: FACTS) as guard:
        client = gateway(guard)
        for _ in range(3):
            await client.post("/v1/checks", json=CHECK | {"answer": ANSWER})
        assert await numbers(client, "cache_requests_total") == {
            ("verdicts", "hit"): 6.0,
            ("verdicts", "miss"): 3.0,
        }
        assert await numbers(client, "judge_batch_sentences_sum") == {(): 3.0}
        assert await numbers(client, "queue_length") == {("calls",): 0.0, ("judge",): 0.0}
        assert await numbers(client, "calls_running") == {(): 0.0}
