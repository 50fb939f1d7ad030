"""The gateway's calls: what is forwarded, what is refused, checks, evidence, Azure's addresses."""

import gc
import json
import logging
import weakref
from contextlib import ExitStack

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openai import AsyncAzureOpenAI, AsyncOpenAI
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from chains.evidence.base import EvidenceMode, Found, Source, case_of
from chains.evidence.earlier import grounds_of
from chains.gateway import GatewaySettings, create_app
from chains.gateway.settings import PROTOCOL_PATHS
from guardrail import ANNOTATE, Guardrail, GuardrailConfig, Passage
from tests.chains.conftest import ANSWER, CANARY, QUESTION, TRUE_START, scripted_guard
from tests.chains.fake_openai import connected, served
from tests.chains.gateway.test_callers import by
from tests.clock import PATIENCE_S, until

USER = [{"role": "user", "content": QUESTION}]
CHAT = {"model": "plain", "messages": USER}


# --- forwarding -------------------------------------------------------------------------------


async def test_gateway_keys_stay_here(gateway, fake):
    """Without keys, the caller's goes to the upstream."""
    await gateway(key="sk-caller").post("/v1/chat/completions", json=CHAT)
    assert fake.headers[-1]["authorization"] == "Bearer sk-caller"
    client = gateway(keys="first,second", upstream_key="sk-upstream")
    refused = await client.post("/v1/chat/completions", json=CHAT, headers=by("third"))
    assert refused.status_code == 401
    assert refused.json()["error"]["code"] == "invalid_api_key"
    for method, path in (
        ("POST", "checks"), ("POST", "rank"), ("GET", "models"), ("POST", "anything"),
    ):  # fmt: skip
        assert (await client.request(method, f"/v1/{path}", json={})).status_code == 401
    reply = await client.post("/v1/chat/completions", json=CHAT, headers=by("second"))
    assert reply.status_code == 200
    assert fake.headers[-1]["authorization"] == "Bearer sk-upstream"
    assert (await client.get("/healthz")).status_code == 200


async def test_no_key_and_no_content_is_logged(gateway, caplog):
    caplog.set_level(logging.DEBUG)
    body = CHAT | {"messages": [{"role": "user", "content": "a private question"}]}
    client = gateway(key="gateway-secret", keys="gateway-secret", upstream_key="upstream-secret")
    for model in ("plain", "error-500", "cut"):
        for stream in (False, True):
            call = body | {"model": model, "stream": stream}
            try:
                await client.post("/v1/chat/completions", json=call)
            except AssertionError:
                assert model == "cut"  # httpx's way to report a reply that breaks off
    for secret in ("gateway-secret", "upstream-secret", "private", CANARY, "Mary"):
        assert secret not in caplog.text


async def test_slow_and_absent_upstreams(gateway):
    for options, model, status in (
        ({"timeout_s": 0.3}, "slow", 504),
        ({"upstream": "http://127.0.0.1:1/v1"}, "plain", 502),
        ({"upstream": None}, "plain", 503),
    ):
        client = gateway(**options)
        reply = await client.post("/v1/chat/completions", json=CHAT | {"model": model})
        assert reply.status_code == status


async def test_paths_with_unjudged_text_are_refused(gateway):
    client = gateway()
    for path in ("completions", "threads/t/messages", "responses/resp_1", "chat/completions/c"):
        assert (await client.get(f"/v1/{path}")).status_code == 403
    for path in ("models/%2e%2e/responses/r", "models/a/%2e%2e/%2e%2e/threads"):
        request = client.build_request("GET", "/v1/x")
        request.url = request.url.copy_with(raw_path=f"/v1/{path}".encode())
        assert (await client.send(request)).status_code in (400, 403)
    for path in ("completions", "audio/speech", "audio/transcriptions", "images/generations"):
        refused = await client.post(f"/v1/{path}", json={"model": "plain", "prompt": "x"})
        assert refused.status_code == 403
        assert refused.json()["error"]["code"] == "not_guarded"


async def test_other_calls_are_refused_in_the_protocols_form(gateway):
    for call, status in (
        (("GET", "/nowhere"), 404), (("DELETE", "/healthz"), 405), (("GET", "/v1/checks"), 405),
    ):  # fmt: skip
        reply = await gateway().request(*call)
        assert (reply.status_code, reply.json()["error"]["code"]) == (status, "not_served")


def test_a_caller_that_goes_away_cancels_the_call(upstream, fake, strict_guard):
    with served(create_app(strict_guard, GatewaySettings(upstream=upstream))) as url:
        fake.cancelled.clear()
        before = len(fake.requests)
        body = json.dumps(CHAT | {"model": "slow"}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-length: {len(body)}"
        start = f"{head}\r\ncontent-type: application/json\r\n\r\n".encode() + body
        with connected(url, start):
            until(lambda: len(fake.requests) > before)
        assert fake.cancelled.wait(PATIENCE_S)


async def test_a_mounted_gateway_serves_below_its_path(strict_guard, upstream):
    app = create_app(strict_guard, GatewaySettings(upstream=upstream, keys="k"))
    transport = httpx.ASGITransport(Starlette(routes=[Mount("/guard", app)]))
    async with httpx.AsyncClient(transport=transport, base_url="http://host/guard/") as client:
        for path in ("v1/chat/completions", "openai/deployments/plain/chat/completions"):
            assert (await client.post(path, json=CHAT)).status_code == 401
            reply = await client.post(path, json=CHAT, headers=by("k"))
            assert reply.status_code == 200
            assert CANARY not in reply.text


async def test_a_closed_gateway_is_freed():
    with scripted_guard() as guard:
        app = create_app(guard, GatewaySettings(protocols=tuple(PROTOCOL_PATHS)))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            for path in ("/healthz", "/docs", "/", "/openapi.json"):
                assert (await client.get(path)).status_code == 200
        gone = weakref.ref(app.state.gateway)
        del app, transport, client
    gc.collect()
    assert gone() is None


async def test_readyz_reports_the_state_of_the_upstream(gateway):
    probes = []

    def up(request):
        probes.append(request)
        return httpx.Response(401)

    def down(request):
        raise httpx.ConnectError("no")

    for client, state in (
        (gateway(said=up), "up"), (gateway(said=down), "down"), (gateway(upstream=None), "none"),
    ):  # fmt: skip
        await client.post("/v1/checks", json={"question": QUESTION, "answer": TRUE_START})
        for _ in range(3):
            reply = await client.get("/readyz")
            assert reply.status_code == 200
            assert reply.json() == {"status": "ready", "upstream": state}
    (probe,) = probes
    assert "authorization" not in probe.headers


# --- checks and evidence ----------------------------------------------------------------------


async def test_checks_and_rank(gateway):
    client = gateway(upstream=None)
    check = {"id": "a", "question": QUESTION, "answer": ANSWER}
    answer = (await client.post("/v1/checks", json=check)).json()
    assert (answer["id"], answer["action"]) == ("a", "annotate")
    categories = [item["category"] for item in answer["sentences"]]
    assert categories == ["supportive", "contradictory", "supportive"]
    strict = (await client.post("/v1/checks", json=check | {"policy": "strict"})).json()
    assert CANARY not in strict["text"]
    inline = {"triples": [["Mary Shelley", "occupation", "poet"]], "answer": "She was a poet."}
    answer = (await client.post("/v1/checks", json=inline | {"question": QUESTION})).json()
    assert answer["sentences"][0]["citations"][0]["value"] == "poet"
    answers = ["Mary Shelley was a pilot.", TRUE_START]
    ranked = await client.post("/v1/rank", json={"question": QUESTION, "answers": answers})
    assert [item["index"] for item in ranked.json()["ranking"]] == [1, 0]
    for wrong in ({"answer": 7}, {"answer": "x", "policy": "strickt"}, {"answer": "x", "url": "y"}):
        assert (await client.post("/v1/checks", json=wrong)).status_code == 400


@pytest.mark.parametrize("stream", [False, True])
async def test_names_of_evidence_are_bounded(gateway, fake, stream):
    item = {"text": "Mary Shelley was a writer.", "title": "x" * 600_000}
    parts = [{"type": "text", "text": QUESTION}, {"type": "grounding_source"} | item]
    before = len(fake.headers)
    for path, body, place in (
        ("chat/completions", CHAT | {"guardrail": {"evidence": ["It rains.", item]}}, ""),
        ("chat/completions", CHAT | {"messages": [{"role": "user", "content": parts}]}, ""),
        ("checks", {"answer": "It rains.", "passages": ["It rains.", item]}, "evidence[1]"),
    ):
        more = {} if path == "checks" else {"stream": stream}
        refused = await gateway().post(f"/v1/{path}", json=body | more)
        assert refused.status_code == 400
        assert f"{place}.title has 600,000 characters" in refused.text
        assert len(refused.text) < 1_000
    assert len(fake.headers) == before


LATHE = {"question": "What does the Lathe 2 cost?", "answer": "The Lathe 2 costs 5200 euros."}
ADA = "When was Ada Lovelace born?"
SOLD_OUT = [Passage("The Lathe 2 is sold out.")]


@pytest.fixture(scope="module")
def with_files(tmp_path_factory):
    """A guardrail with evidence of its own, for requests that bring none."""
    file = tmp_path_factory.mktemp("own") / "machines.csv"
    file.write_text("name,price_eur\nLathe 2,5200\nDrill 7,900\n", "utf-8")
    with Guardrail(GuardrailConfig(evidence=(file,), judge="none")) as guard:
        yield guard


async def test_requests_without_evidence_are_judged_by_the_files(gateway, with_files):
    client = gateway(with_files)
    own = (await client.post("/v1/checks", json=LATHE)).json()
    assert (own["evidence_from"], own["errors"]) == (["files"], [])
    assert own["sentences"][0]["citations"][0]["value"] == "5200"
    assert len(own["evidence"]) == 2
    brought = {"evidence": ["A Lathe 2 is heavy."]}
    other = (await client.post("/v1/checks", json=LATHE | brought)).json()
    assert (other["evidence_from"], len(other["evidence"])) == (["caller"], 1)
    case = await case_of(with_files, LATHE["question"], Found(), EvidenceMode.GIVEN)
    answer = await case.check(with_files, LATHE["answer"], ANNOTATE)
    assert answer.sentences[0].citations
    assert grounds_of(answer) == ()  # files are there for the next turn as well


@pytest.mark.parametrize(
    ("found", "mode", "sources"),
    [
        (Found(), EvidenceMode.BOTH, ("files", "graph")),
        (Found.of(Source.TOOLS, SOLD_OUT), EvidenceMode.GIVEN, ("tool results", "files")),
        (Found.of(Source.CALLER, SOLD_OUT), EvidenceMode.GIVEN, ("caller",)),
        (Found.of(Source.CALLER, SOLD_OUT), EvidenceMode.BOTH, ("caller", "files", "graph")),
    ],
)
async def test_files_stand_for_the_graph_unless_both_are_used(with_files, found, mode, sources):
    case = await case_of(with_files, ADA, found, mode)
    assert tuple(source.value for source in case.sources) == sources
    subjects = {getattr(item, "subject", None) for item in case.evidence}
    assert ({"Lathe 2", "Drill 7"} <= subjects) is ("files" in sources)
    assert ("Ada Lovelace" in subjects) is ("graph" in sources)


# --- Azure's addresses ------------------------------------------------------------------------

VERSION = "2024-10-21"
DEPLOYMENT = "/openai/deployments/plain/chat/completions"


async def test_azures_own_client_gets_judged_answers(gateway, fake):
    client = AsyncAzureOpenAI(
        azure_endpoint="http://gateway", api_key="key-of-azure", api_version=VERSION,
        http_client=gateway(), max_retries=0,
    )  # fmt: skip
    reply = await client.chat.completions.create(model="plain", messages=USER)
    assert TRUE_START.rstrip(".") in reply.choices[0].message.content
    assert CANARY not in reply.choices[0].message.content
    assert fake.requests[-1]["model"] == "plain"
    assert fake.headers[-1]["api-key"] == "key-of-azure"
    client = AsyncOpenAI(base_url="http://gateway/openai/v1", api_key="k", http_client=gateway())
    reply = await client.responses.create(model="plain", input=QUESTION)
    assert CANARY not in reply.output_text
    assert [model.id async for model in client.models.list()] == ["plain"]


async def test_keys_routes_and_the_default_model_hold_there_as_well(gateway, fake):
    client = gateway(keys="first", upstream_key="u", routes="plain=annotate")
    body = {"messages": USER}
    assert (await client.post(DEPLOYMENT, json=body)).status_code == 401
    reply = await client.post(DEPLOYMENT, json=body, headers={"api-key": "first"})
    assert CANARY in reply.json()["choices"][0]["message"]["content"]  # marked, not removed
    assert fake.requests[-1]["model"] == "plain"


async def test_what_is_not_judged_stays_closed_there(gateway):
    deployments = ("plain/completions", "%2E%2E/chat/completions", "plain")
    for path in (*(f"deployments/{one}" for one in deployments), "files", ""):
        reply = await gateway().post(f"/openai/{path}", json={"model": "plain", "prompt": "x"})
        assert reply.status_code in (403, 404)
        assert CANARY not in reply.text


async def test_an_azure_resource_is_called_as_azure_is(fake, gateway):
    seen = []

    async def azure(scope, receive, send):
        if scope["type"] == "http":
            seen.append((scope["path"], scope["query_string"].decode()))
            scope = {**scope, "path": scope["path"].replace("/openai", "/v1", 1)}
        await fake.app(scope, receive, send)

    with served(Starlette(routes=[Mount("/", azure)])) as url:
        client = gateway(upstream=f"{url}/openai", upstream_key="key-of-the-resource")
        reply = await client.post(f"{DEPLOYMENT}?api-version={VERSION}", json={"messages": USER})
    assert reply.status_code == 200
    assert CANARY not in reply.text
    assert seen == [("/openai/deployments/plain/chat/completions", f"api-version={VERSION}")]
    assert fake.headers[-1]["api-key"] == "key-of-the-resource"
    assert "authorization" not in fake.headers[-1]


# --- the OpenAPI description ------------------------------------------------------------------


async def test_every_body_is_described(gateway):
    client = gateway(protocols=tuple(PROTOCOL_PATHS))
    described = (await client.get("/openapi.json")).json()
    schemas = described["components"]["schemas"]
    posts = {path: item["post"] for path, item in described["paths"].items() if "post" in item}
    assert {"/v1/embeddings", *PROTOCOL_PATHS.values()} <= set(posts)
    for path, fields in {
        "/v1/checks": {"answer", "evidence", "passages", "triples", "policy"},
        "/v1/rank": {"answers"},
        "/v1/feedback": {"record_id", "thumb", "correction", "sentence"},
        "/v1/chat/completions": {"guardrail", "messages"},
        "/v1/responses": {"guardrail", "input"},
    }.items():
        schema = posts[path]["requestBody"]["content"]["application/json"]["schema"]
        assert fields <= set(schemas[schema["$ref"].rpartition("/")[2]]["properties"])


def test_no_described_call_ends_in_a_fault(guard):
    """Schemathesis draws calls from the description."""

    async def answer(request):
        await request.body()
        message = {"role": "assistant", "content": TRUE_START}
        return JSONResponse({"id": "1", "choices": [{"index": 0, "message": message}]})

    server = Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])
    with ExitStack() as stack:
        upstream = stack.enter_context(served(server))
        app = create_app(guard, GatewaySettings(upstream=f"{upstream}/v1"))
        address = stack.enter_context(served(app))
        described = schemathesis.openapi.from_url(f"{address}/openapi.json")
        operations = [found.ok() for found in described.get_all_operations()]
        answered = set()

        @settings(
            max_examples=8 * len(operations), derandomize=True, deadline=None,
            phases=[Phase.generate], suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(st.sampled_from(operations).flatmap(lambda operation: operation.as_strategy()))
        def called(case):
            reply = case.call()
            answered.add(reply.status_code)
            assert reply.status_code != 500, reply.text

        called()
    assert {200, 400} <= answered  # valid and invalid calls were drawn
