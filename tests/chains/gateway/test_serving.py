"""The gateway as processes: workers, slow connections, and what is loaded once."""

import asyncio
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
from starlette.applications import Starlette

from chains.gateway import GatewaySettings, create_app, serving
from chains.gateway import app as gateway_app
from chains.gateway.app import sharing
from chains.gateway.serving import HeadTimeoutProtocol
from guardrail import STRICT, GuardrailConfig, KnowledgeGraphError
from guardrail.config import LogConfig
from guardrail.core.errors import RecordError
from tests.chains.conftest import QUESTION
from tests.chains.fake_openai import connected, served, until_ready
from tests.chains.gateway.test_protocols import LITELLM, request_call, response_call
from tests.clock import PATIENCE_S, until
from tests.kg.test_endpoint import reply
from tests.kg.test_endpoint import serving as serving_graph
from tests.ports import free_port

CHAT = {"model": "plain", "messages": [{"role": "user", "content": QUESTION}]}
FACTS = [["Mary Shelley", "occupation", "writer"], ["Mary Shelley", "born", "London"]]
CHECK = {"answer": "Mary Shelley was a writer from London.", "triples": FACTS}
CONFIG = GuardrailConfig(judge="none", graph={"location": "none"}, policy=STRICT)


@pytest.fixture
def started(monkeypatch):
    """Runs the gateway up to the server; returns the server's options."""

    def run(config=CONFIG, **settings):
        options = {}
        monkeypatch.setattr(serving.uvicorn, "run", lambda *_, **given: options.update(given))
        serving.run(config, GatewaySettings(port=0, **settings))
        return options

    return run


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"host": "0.0.0.0"}, "has no key"),
        ({"host": "0.0.0.0", "keys": "k"}, None),
        ({"upstream": "http://user:word@model:9/"}, "http://model:9/chat/completions"),
        ({"upstream": "http://model:9/v1"}, None),
    ],
)
def test_open_gateways_and_incomplete_addresses_are_warned_of(started, caplog, settings, warning):
    caplog.set_level(logging.WARNING)
    started(**settings)
    assert (warning or "") in caplog.text
    assert bool(caplog.text) is (warning is not None)
    assert "word" not in caplog.text


def test_every_process_freezes_what_it_has_loaded(started, monkeypatch):
    found = []

    def create(*_, **options):
        found.append(options["on_loaded"])
        return Starlette()

    monkeypatch.setattr(serving, "create_app", create)
    for workers in (1, 2):
        assert started(workers=workers)["http"] is HeadTimeoutProtocol
    monkeypatch.setenv(serving.WORKER_VARIABLE, json.dumps([CONFIG.model_dump_json(), "{}"]))
    serving.worker_app()
    assert found == [serving.freeze_loaded] * 2
    before = gc.get_freeze_count()
    try:
        found[0]()
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()


@asynccontextmanager
async def client_of(app):
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway")
    async with app.router.lifespan_context(app), http as client:
        yield client


def at_endpoint(url):
    endpoint = {"deadline_s": 0.3, "cache": None}
    return GuardrailConfig(judge="none", graph={"location": url, "endpoint": endpoint})


async def test_a_graph_that_is_down_at_the_start_is_asked_until_it_answers(monkeypatch, caplog):
    monkeypatch.setattr(gateway_app, "PAUSES_S", (0.01, 0.02))
    with serving_graph(reply(503)) as graph:
        calls = []
        app = create_app(
            at_endpoint(graph.url), GatewaySettings(), on_loaded=lambda: calls.append(True)
        )
        async with client_of(app) as client:
            checked = (await client.post("/v1/checks", json=CHECK)).json()
            assert (checked["errors"], checked["evidence_from"]) == ([], ["caller"])
            assert (await client.get("/healthz")).status_code == 200
            unready = await client.get("/readyz")
            assert unready.status_code == 503
            assert graph.url in unready.json()["status"]
            await asyncio.to_thread(until, lambda: len(graph.requests) > 3)
            graph.replies = (reply(200, '{"head": {"vars": []}, "results": {"bindings": []}}'),)
            while (await client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.01)
    warned = [record.levelname for record in caplog.records if record.name == "chains.gateway"]
    assert warned == ["WARNING"]
    assert calls == [True]


def test_the_gateway_starts_without_its_graph_but_not_with_wrong_settings(started, tmp_path):
    nobody = f"http://127.0.0.1:{free_port()}/sparql"
    assert started(at_endpoint(nobody))
    no_log = {"log": LogConfig(path=tmp_path / "no-such-folder" / "scores.sqlite")}
    with pytest.raises(RecordError):
        started(at_endpoint(nobody).model_copy(update=no_log))
    with pytest.raises(KnowledgeGraphError, match="no graph at"):
        started(at_endpoint(str(tmp_path / "no-such-graph")))
    with serving_graph(reply(401)) as graph, pytest.raises(KnowledgeGraphError, match="login"):
        started(at_endpoint(graph.url))


def test_verdicts_are_cached_for_all_callers_unless_the_settings_say_otherwise():
    assert sharing(CONFIG).judge_cache == 65_536
    assert sharing(CONFIG.changed(judge_cache=0)).judge_cache == 0


STARTS = {
    "nothing": b"",
    "half a head": b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n",
    "a second head": b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\nGET /healthz",
}


@pytest.fixture
def address(guard):
    with served(create_app(guard, GatewaySettings()), http=HeadTimeoutProtocol) as url:
        yield url


@pytest.mark.parametrize("start", STARTS.values(), ids=list(STARTS))
def test_a_late_head_ends_its_connection(address, monkeypatch, start):
    monkeypatch.setattr(HeadTimeoutProtocol, "head_s", 0.2)
    with connected(address, start) as slow:
        while slow.recv(65_536):
            pass  # until the server closes it
    assert httpx.get(f"{address}/healthz").status_code == 200
    until(lambda: not HeadTimeoutProtocol.waiting)


def test_a_head_in_pieces_is_answered(address):
    with connected(address, STARTS["half a head"]) as slow:
        until(lambda: len(HeadTimeoutProtocol.waiting) == 1)
        slow.sendall(b"\r\n")
        assert slow.recv(65_536).startswith(b"HTTP/1.1 200")
        until(lambda: not HeadTimeoutProtocol.waiting)


def test_the_oldest_of_many_waiting_connections_end(address, monkeypatch):
    monkeypatch.setattr(HeadTimeoutProtocol, "most_waiting", 3)
    slow = []
    for count in range(1, 6):
        slow.append(connected(address))
        until(lambda count=count: len(HeadTimeoutProtocol.waiting) == min(count, 3))
    assert slow[0].recv(1) == slow[1].recv(1) == b""
    assert httpx.get(f"{address}/healthz").status_code == 200
    for connection in slow:
        connection.close()


def test_workers_finish_what_they_have_begun(upstream, fake):
    """Two workers behind one socket still answer running calls after SIGTERM."""
    port = free_port()
    command = [
        sys.executable, "-c", "from guardrail.cli import main; main()", "serve",
        "--upstream", upstream, "--port", str(port), "--workers", "2", "--judge", "none",
    ]  # fmt: skip
    environ = os.environ | {"GUARDRAIL_GRAPH": "none"}
    gateway = subprocess.Popen(
        command, env=environ, stderr=subprocess.DEVNULL, start_new_session=True
    )
    url, replies, before = f"http://127.0.0.1:{port}", [], len(fake.requests)
    try:
        until_ready(url)

        def call():
            body = CHAT | {"model": "held"}
            replies.append(httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE_S))

        running = threading.Thread(target=call)
        running.start()
        until(lambda: len(fake.requests) > before)
        gateway.send_signal(signal.SIGTERM)
        time.sleep(0.5)  # in which a worker that does not finish its work would end
        fake.let_go.set()
        running.join(PATIENCE_S)
        assert replies[0].status_code == 200
        assert json.loads(replies[0].content)["choices"]
        assert gateway.wait(PATIENCE_S) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/healthz")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(gateway.pid, signal.SIGKILL)
        gateway.wait()


def test_workers_share_the_requests_that_wait_for_a_response(monkeypatch):
    evidence, said = [{"triple": FACTS[0]}], "Mary Shelley was a writer."
    responses = [response_call(name, said) for name in ("shared", "other")]
    bodies = [request_call("shared", [], evidence=evidence), *responses]
    replies = []

    async def called(body):
        async with client_of(serving.worker_app()) as client:
            replies.append((await client.post(LITELLM, json=body)).json())

    def workers(*_, **__):
        for body in bodies:
            asyncio.run(called(body))

    monkeypatch.setattr(serving.uvicorn, "run", workers)
    before = dict(os.environ)
    serving.run(CONFIG, GatewaySettings(workers=2, protocols="litellm"))
    assert dict(os.environ) == before
    assert [reply["action"] for reply in replies] == ["NONE", "GUARDRAIL_INTERVENED", "BLOCKED"]
    assert "[1] Mary Shelley, occupation: writer" in replies[1]["texts"][0]


WORKER = """
import os, sys
from pathlib import Path
from chains.gateway.serving import worker_app

folder, last = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]), sys.argv[1] == "last"
if last:  # as if this process had the number of the one that is gone
    (left,) = folder.glob("gauge_livesum_*.db")
    left.rename(folder / f"gauge_livesum_{os.getpid()}.db")
metrics = worker_app().state.gateway.metrics
metrics.request("/v1/checks", 200, 0.1)
if last:
    print(metrics.page().decode())
else:
    metrics.in_work.inc(3)
    os.kill(os.getpid(), 9)
"""


def test_a_worker_that_is_gone_is_in_no_gauge_and_its_counts_stay(tmp_path):
    variables = os.environ | {
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path),
        serving.WORKER_VARIABLE: json.dumps([CONFIG.model_dump_json(), "{}"]),
    }
    for worker, status in (("first", -signal.SIGKILL), ("last", 0)):
        command = [sys.executable, "-c", WORKER, worker]
        ended = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert ended.returncode == status, ended.stderr
    assert "kg_guardrail_http_requests_in_work 0.0" in ended.stdout
    assert "kg_guardrail_calls_stuck 0.0" in ended.stdout
    assert 'http_requests_total{route="/v1/checks",status="200",tenant=""} 2.0' in ended.stdout
