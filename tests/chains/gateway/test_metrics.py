"""What ``/metrics`` tells: what became of answers, how long it took, and what is busy."""

import os
import signal
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, Guardrail, GuardrailConfig
from guardrail.core.errors import KnowledgeGraphError
from tests.chains.conftest import ANSWER, FACTS, QUESTION, TRUE_START
from tests.chains.scripted import ScriptedJudge

CHAT = {"model": "plain", "messages": [{"role": "user", "content": QUESTION}]}
ASKED = {"question": QUESTION, "answer": TRUE_START}


@pytest.fixture
def gateway(upstream, in_process):
    """A client of a gateway whose judge is shared, as that of a served one is."""
    guards = []

    def make(policy=STRICT, retriever=lambda question: FACTS, **settings):
        config = GuardrailConfig(policy=policy, judge_cache=100)
        guards.append(Guardrail(config, grounding=ScriptedJudge(), retriever=retriever))
        given = {"upstream": upstream} | settings
        app = create_app(guards[-1], GatewaySettings.model_validate(given))
        return in_process(app)

    yield make
    for guard in guards:
        guard.close()


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


@pytest.mark.parametrize(
    ("settings", "body", "error_type", "result"),
    [
        ({}, {}, "", "filtered"),
        ({"dry_run": True}, {}, "", "would_block"),
        ({"policy": STRICT.changed(contradicted="annotate")}, {}, "", "annotated"),
        ({}, {"model": "json", "response_format": {"type": "json_object"}}, "", "bypassed"),
        ({"retriever": fails}, {}, "kg", "refused"),
        ({"retriever": fails, "dry_run": True}, {}, "kg", "would_block"),
        (
            {"retriever": fails, "policy": STRICT.changed(unavailable="return_unverified")},
            {},
            "kg",
            "unverified",
        ),
        (
            {"retriever": fails, "policy": STRICT.changed(unavailable="raise")},
            {},
            "kg",
            "error",
        ),
    ],
)
async def test_each_answer_counts_as_what_became_of_it(gateway, settings, body, error_type, result):
    client = gateway(**settings)
    for stream in (False, True):
        await client.post("/v1/chat/completions", json=CHAT | body | {"stream": stream})
    assert await numbers(client, "requests_total") == {
        (error_type, phase, "strict", result, ""): 1.0 for phase in ("output", "stream")
    }
    if result == "filtered":
        assert await numbers(client, "first_release_seconds_count") == {(): 1.0}
        routes = {("/v1/chat/completions", "200", ""): 2.0}
        assert routes.items() <= (await numbers(client, "http_requests_total")).items()


async def test_what_the_upstream_or_the_caller_got_wrong_is_none_of_the_guardrails(gateway):
    client = gateway()
    for model in ("error-500", "error-401"):
        await client.post("/v1/chat/completions", json=CHAT | {"model": model})
    await client.post("/v1/checks", json={"answer": 7})
    assert await numbers(client, "requests_total") == {}
    gone = gateway(upstream="http://127.0.0.1:1/v1")
    assert (await gone.post("/v1/chat/completions", json=CHAT)).status_code == 502
    assert await numbers(gone, "requests_total") == {}


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_that_nobody_expected_counts_as_one(gateway, monkeypatch, stream):
    def broken(*args, **more):
        raise RuntimeError("nobody expected this")

    client = gateway()
    client._transport.raise_app_exceptions = False
    monkeypatch.setattr("chains.gateway.app.Exchange", broken)
    reply = await client.post("/v1/chat/completions", json=CHAT | {"stream": stream})
    assert reply.status_code == 500
    monkeypatch.setattr("chains.gateway.bodies.CheckBody.check", broken)
    assert (await client.post("/v1/checks", json=ASKED)).status_code == 500
    assert await numbers(client, "requests_total") == {
        ("internal", "output", "strict", "error", ""): 1.0,
        ("internal", "check", "annotate", "error", ""): 1.0,
    }


async def test_a_guardrail_that_cannot_be_loaded_counts_for_every_call(gateway, monkeypatch):
    async def fails(self):
        raise KnowledgeGraphError("the graph is gone")

    monkeypatch.setattr("chains.gateway.app._Gateway.loaded", fails)
    client = gateway()
    assert (await client.post("/v1/chat/completions", json=CHAT)).status_code == 503
    assert (await client.post("/v1/checks", json=ASKED)).status_code == 503
    found = await numbers(client, "requests_total")
    assert {(labels[0], labels[3]) for labels in found} == {("kg", "error")}
    assert sum(found.values()) == 2.0


WORKER = """
import asyncio, os, sys
from pathlib import Path
from chains.gateway.serving import worker_app

folder, of = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]), sys.argv[1]
if of == "again":  # as if this process had the number of the one that is gone
    (left,) = folder.glob("gauge_livesum_*.db")
    left.rename(folder / f"gauge_livesum_{os.getpid()}.db")
app = worker_app()
numbers = app.state.gateway.metrics

async def lives():
    async with app.router.lifespan_context(app):
        numbers.request("/v1/checks", 200, 0.1)
        numbers.in_work.inc(3)

if of == "ends":
    asyncio.run(lives())
elif of == "dies":
    numbers.request("/v1/checks", 200, 0.1)
    numbers.in_work.inc(3)
    os.kill(os.getpid(), 9)
else:
    numbers.request("/v1/checks", 200, 0.1)
    print(numbers.page().decode())
"""


@pytest.mark.parametrize(("before", "after"), [("ends", "tells"), ("dies", "again")])
def test_a_worker_that_is_gone_is_in_no_gauge_and_its_counts_stay(tmp_path, before, after):
    config = GuardrailConfig.model_validate({"judge": "none", "graph": "none"})
    variables = os.environ | {
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path),
        "KG_WORKER_CONFIG": config.model_dump_json(),
        "KG_WORKER_SETTINGS": "{}",
    }

    def worker(of):
        command = [sys.executable, "-c", WORKER, of]
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    gone = worker(before)
    assert gone.returncode == (0 if before == "ends" else -signal.SIGKILL), gone.stderr
    page = worker(after).stdout
    assert "kg_guardrail_http_requests_in_work 0.0" in page
    assert "kg_guardrail_calls_stuck 0.0" in page
    assert 'http_requests_total{route="/v1/checks",status="200",tenant=""} 2.0' in page


async def test_texts_that_callers_have_are_phases_of_their_own_with_their_names(gateway):
    client = gateway(tenants="shop=shop-key", keys="own")
    by = {"authorization": "Bearer shop-key"}
    await client.post("/v1/checks", json=ASKED, headers=by)
    ranked = {"question": QUESTION, "answers": [ANSWER, TRUE_START]}
    await client.post("/v1/rank", json=ranked, headers=by)
    client.headers["authorization"] = "Bearer own"
    assert await numbers(client, "requests_total") == {
        ("", "check", "annotate", "allowed", "shop"): 1.0,
        ("", "rank", "annotate", "allowed", "shop"): 1.0,
        ("", "rank", "annotate", "annotated", "shop"): 1.0,
    }
    assert "shop-key" not in (await client.get("/metrics")).text


async def test_time_is_told_by_result_and_by_stage(gateway):
    client = gateway()
    await client.post("/v1/chat/completions", json=CHAT)
    assert await numbers(client, "latency_seconds_count") == {("output", "strict", "filtered"): 1.0}
    spent = await numbers(client, "stage_seconds_sum")
    assert {("attribute",), ("parse",), ("retrieve",), ("score",)} == set(spent)
    total = (await numbers(client, "latency_seconds_sum"))["output", "strict", "filtered"]
    assert 0 < sum(spent.values()) <= total


async def test_batches_and_hits_are_those_of_the_judge(gateway):
    client = gateway()
    for _ in range(3):
        await client.post("/v1/checks", json=ASKED | {"answer": ANSWER})
    assert await numbers(client, "cache_requests_total") == {
        ("verdicts", "hit"): 6.0,
        ("verdicts", "miss"): 3.0,
    }
    assert await numbers(client, "judge_batch_sentences_sum") == {(): 3.0}
    assert await numbers(client, "queue_length") == {("calls",): 0.0, ("judge",): 0.0}
    assert await numbers(client, "calls_running") == {(): 0.0}
