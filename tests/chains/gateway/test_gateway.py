"""The gateway's own duties: keys, limits, health, numbers, and callers that go away."""

import gc
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from contextlib import suppress

import httpx
import pytest
from starlette.applications import Starlette

from chains.gateway import GatewaySettings, create_app, serving
from guardrail import GuardrailConfig
from tests.chains.conftest import ANSWER, CANARY, QUESTION, TRUE_START
from tests.chains.fake_openai import served
from tests.chains.gateway.process import until_ready
from tests.clock import PATIENCE_S, until
from tests.ports import free_port

JSON = {"content-type": "application/json"}
BODY = {"model": "plain", "messages": [{"role": "user", "content": QUESTION}]}


@pytest.fixture
def gateway(upstream, strict_guard, in_process):
    """A client of a gateway with the settings a test names."""

    def make(**settings):
        app = create_app(strict_guard, GatewaySettings(**{"upstream": upstream, **settings}))
        return in_process(app)

    return make


def bearer(key):
    return {"authorization": f"Bearer {key}"}


async def test_the_callers_key_goes_to_the_upstream(gateway, fake):
    reply = await gateway().post("/v1/chat/completions", json=BODY, headers=bearer("sk-caller"))
    assert reply.status_code == 200
    assert fake.headers[-1]["authorization"] == "Bearer sk-caller"
    assert reply.headers["x-request-id"] == "req_7"


async def test_gateway_keys_stay_here(gateway, fake):
    client = gateway(keys="first,second", upstream_key="sk-upstream")
    refused = await client.post("/v1/chat/completions", json=BODY, headers=bearer("third"))
    assert refused.status_code == 401
    assert refused.json()["error"]["code"] == "invalid_api_key"
    for path in ("/v1/checks", "/v1/rank", "/v1/models", "/v1/anything"):
        asked = client.get(path) if "models" in path else client.post(path, json={})
        assert (await asked).status_code == 401
    served_ = await client.post("/v1/chat/completions", json=BODY, headers=bearer("second"))
    assert served_.status_code == 200
    assert fake.headers[-1]["authorization"] == "Bearer sk-upstream"
    assert (await client.get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nowhere", 404), ("DELETE", "/healthz", 405)]
)
async def test_a_call_that_is_not_served_is_refused_in_the_protocols_form(
    gateway, method, path, status
):
    reply = await gateway().request(method, path)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert error["code"] == "not_served"
    assert error["message"].startswith(f"{method} {path}: ")


async def test_no_key_and_no_content_is_logged(gateway, caplog):
    caplog.set_level(logging.DEBUG)
    body = BODY | {"messages": [{"role": "user", "content": "a private question"}]}
    client = gateway(keys="gateway-secret", upstream_key="upstream-secret")
    for model in ("plain", "error-500", "cut"):
        for stream in (False, True):
            asked = body | {"model": model, "stream": stream}
            try:
                await client.post(
                    "/v1/chat/completions", json=asked, headers=bearer("gateway-secret")
                )
            except AssertionError:
                assert model == "cut"  # the transport's word for a reply that breaks off
    for secret in ("gateway-secret", "upstream-secret", "private", CANARY, "Mary"):
        assert secret not in caplog.text


async def test_large_requests_are_refused_as_soon_as_they_are_large(gateway):
    async def endless():
        while True:
            yield b" " * 1000

    client = gateway(max_body_bytes=5000)
    for content in (b" " * 6000, endless()):
        reply = await client.post("/v1/chat/completions", content=content, headers=JSON)
        assert reply.status_code == 413
        assert reply.json()["error"]["code"] == "request_too_large"


async def test_slow_and_absent_upstreams(gateway):
    late = await gateway(timeout_s=0.3).post("/v1/chat/completions", json=BODY | {"model": "slow"})
    assert late.status_code == 504
    gone = await gateway(upstream="http://127.0.0.1:1/v1").post("/v1/chat/completions", json=BODY)
    assert gone.status_code == 502
    none = await gateway(upstream=None).post("/v1/chat/completions", json=BODY)
    assert none.status_code == 503


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (httpx.Response(307, headers={"location": "http://elsewhere/"}), "redirects"),
        (httpx.Response(200, text="<html>"), "JSON"),
        (httpx.Response(200, json={"answer": ANSWER}), "chat completion"),
        (httpx.Response(200, json=[ANSWER]), "JSON object"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_replies_of_another_shape_do_not_get_through(strict_guard, reply, says, stream):
    upstream = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: reply))
    app = create_app(strict_guard, GatewaySettings(upstream="http://model/v1"), client=upstream)
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway")
    answer = await client.post("/v1/chat/completions", json=BODY | {"stream": stream})
    assert answer.status_code == 502
    assert says in answer.json()["error"]["message"]
    assert CANARY not in answer.text


async def test_paths_with_unjudged_text_are_refused(gateway):
    client = gateway()
    for path in ("completions", "threads/t/messages", "responses/resp_1", "chat/completions/c"):
        assert (await client.get(f"/v1/{path}")).status_code in (403, 405)
    for path in ("models/%2e%2e/responses/r", "models/a/%2e%2e/%2e%2e/threads"):
        request = client.build_request("GET", "/v1/x")
        request.url = request.url.copy_with(raw_path=f"/v1/{path}".encode())
        assert (await client.send(request)).status_code in (400, 403)
    refused = await client.post("/v1/completions", json={"model": "plain", "prompt": "x"})
    assert refused.json()["error"]["code"] == "not_guarded"


async def test_checks_and_rank(gateway):
    client = gateway(upstream=None)
    asked = {"id": "a", "question": QUESTION, "answer": ANSWER}
    answer = (await client.post("/v1/checks", json=asked)).json()
    assert answer["id"] == "a"
    assert answer["action"] == "annotate"
    assert [item["category"] for item in answer["sentences"]] == [
        "supportive",
        "contradictory",
        "supportive",
    ]
    strict = (await client.post("/v1/checks", json=asked | {"policy": "strict"})).json()
    assert CANARY not in strict["text"]
    inline = {"triples": [["Mary Shelley", "occupation", "poet"]], "answer": "She was a poet."}
    answer = (await client.post("/v1/checks", json=inline | {"question": QUESTION})).json()
    assert answer["sentences"][0]["citations"][0]["value"] == "poet"
    answers = ["Mary Shelley was a pilot.", TRUE_START]
    ranked = await client.post("/v1/rank", json={"question": QUESTION, "answers": answers})
    assert [item["index"] for item in ranked.json()["ranking"]] == [1, 0]
    for wrong in ({"answer": 7}, {"answer": "x", "policy": "strickt"}, {"answer": "x", "url": "y"}):
        assert (await client.post("/v1/checks", json=wrong)).status_code == 400


async def test_rows_and_documents_are_evidence(gateway):
    client = gateway(upstream=None)
    rows = [{"name": "Fjell 3", "price_eur": 2490}, {"name": "Tarn City", "price_eur": 1790}]
    document = {"filename": "rules.html", "file_data": b64encode(b"<h1>Rules</h1><p>No dogs.")}
    document["file_data"] = document["file_data"].decode()
    asked = {"question": "What does it cost?", "answer": "The Fjell 3 costs 2,490 euros."}
    asked["evidence"] = [{"table": {"name": "bikes", "rows": rows}}, {"file": document}]
    answer = (await client.post("/v1/checks", json=asked)).json()
    cited = answer["sentences"][0]["citations"][0]
    assert (cited["property"], cited["value"]) == ("price_eur", "2490")
    assert [item["id"] for item in answer["evidence"] if "id" in item] == ["rules.html, Rules"]
    wrong = asked | {"evidence": [{"file": document | {"file_data": "§"}}]}
    refused = await client.post("/v1/checks", json=wrong)
    assert refused.status_code == 400
    assert "evidence[0].file.file_data is not base 64" in refused.text


@pytest.mark.parametrize("stream", [False, True])
async def test_names_of_evidence_have_a_bound(gateway, fake, stream):
    item = {"text": "Mary Shelley was a writer.", "title": "x" * 600_000}
    body = BODY | {"guardrail": {"evidence": ["It rains.", item]}, "stream": stream}
    parts = [{"type": "text", "text": QUESTION}, {"type": "grounding_source"} | item]
    asked = len(fake.headers)
    for sent in (body, BODY | {"messages": [{"role": "user", "content": parts}], "stream": stream}):
        refused = await gateway().post("/v1/chat/completions", json=sent)
        assert refused.status_code == 400
        assert ".title has 600,000 characters" in refused.text
        assert len(refused.text) < 1_000
    assert len(fake.headers) == asked
    checked = await gateway().post(
        "/v1/checks", json={"question": "", "answer": "It rains.", "passages": ["It rains.", item]}
    )
    assert (checked.status_code, "evidence[1].title" in checked.text) == (400, True)


def test_a_caller_that_goes_away_cancels_the_call(upstream, fake, strict_guard):
    with served(create_app(strict_guard, GatewaySettings(upstream=upstream))) as url:
        fake.cancelled.clear()
        asked = len(fake.requests)
        body = json.dumps(BODY | {"model": "slow"}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-length: {len(body)}"
        address = url.removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1]))) as caller:
            caller.sendall(f"{head}\r\ncontent-type: application/json\r\n\r\n".encode() + body)
            until(lambda: len(fake.requests) > asked)
        assert fake.cancelled.wait(PATIENCE_S)


async def test_who_serves_is_told_once_when_the_guardrail_is_loaded(strict_guard):
    told = []
    app = create_app(strict_guard, GatewaySettings(), on_loaded=lambda: told.append(True))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://gateway") as client,
    ):
        for _ in range(2):
            await client.post("/v1/checks", json={"question": QUESTION, "answer": ANSWER})
        assert told == [True]


def test_what_a_worker_has_loaded_is_no_longer_searched_for_garbage():
    before = gc.get_freeze_count()
    try:
        serving.freeze_loaded()
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()


def test_every_process_that_serves_freezes_what_it_has_loaded(monkeypatch):
    told = []

    def create(*_, **options):
        told.append(options)
        return Starlette()

    monkeypatch.setattr(serving, "create_app", create)
    monkeypatch.setattr(serving.uvicorn, "run", lambda *_, **__: None)
    config = GuardrailConfig(judge="none", graph={"location": "none"})
    serving.run(config, GatewaySettings(port=0))
    monkeypatch.setenv(serving.CONFIG_VARIABLE, config.model_dump_json())
    monkeypatch.setenv(serving.SETTINGS_VARIABLE, "{}")
    serving.worker_app()
    assert [item["on_loaded"] for item in told] == [serving.freeze_loaded] * 2


def test_workers_finish_what_they_have_begun(upstream, fake):
    """Two workers behind one socket; told to stop, they still answer what is in work."""
    port = free_port()
    command = [
        sys.executable, "-c", "from guardrail.cli import main; main()", "serve",
        "--upstream", upstream, "--port", str(port), "--workers", "2", "--judge", "none",
    ]  # fmt: skip
    environ = os.environ | {"GUARDRAIL_GRAPH": "none"}
    gateway = subprocess.Popen(
        command, env=environ, stderr=subprocess.DEVNULL, start_new_session=True
    )
    url = f"http://127.0.0.1:{port}"
    try:
        until_ready(url)
        body = BODY | {"model": "held"}
        asked = len(fake.requests)
        replies = []
        call = threading.Thread(
            target=lambda: replies.append(
                httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE_S)
            )
        )
        call.start()
        until(lambda: len(fake.requests) > asked)
        gateway.send_signal(signal.SIGTERM)
        time.sleep(0.5)  # in which one that does not finish its work would end
        fake.let_go.set()
        call.join(PATIENCE_S)
        assert replies[0].status_code == 200
        assert json.loads(replies[0].content)["choices"]
        assert gateway.wait(PATIENCE_S) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/healthz")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(gateway.pid, signal.SIGKILL)
        gateway.wait()
