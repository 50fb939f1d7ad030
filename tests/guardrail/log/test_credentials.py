"""Canary tests: a secret never leaks, wherever it enters.

Each case puts one secret into a setting or an input, makes it fail, and collects all outputs:
replies, errors with their chain, log records, traces, metrics, the score log, the report,
and what is printed.
"""

import base64
import json
import logging
import traceback
from contextlib import contextmanager, suppress

import httpx
import pytest
from langchain_core.runnables import RunnableLambda
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, StreamingResponse
from starlette.routing import Route

from chains import GuardrailRunnable
from chains.gateway import GatewaySettings, create_app
from guardrail import Guardrail, GuardrailConfig, evidence_from_sql
from guardrail.commands.doctor import examine
from guardrail.core.errors import GuardrailError
from guardrail.log.records import SQLiteLog
from guardrail.report import report_html
from judges.chat import ChatJudge
from kg import open_graphs
from kg.opening import EndpointSettings
from tests.chains.fake_openai import served
from tests.chains.scripted import ScriptedJudge

SECRET = "-".join(("kumquat", "7731", "orchard"))  # of no form that is known, and in no source line
DOWN = "127.0.0.1:9"
QUESTION, ANSWER = "What does the Fjell Three cost?", "The Fjell Three costs 2190 euros."
CHAT = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
FAST = {"cache": None, "deadline_s": 0.3}


async def echo(request):
    """A server that repeats in its error what it was sent."""
    sent = " ".join(f"{name}: {value}" for name, value in request.headers.items())
    message = f"Incorrect API key provided: {sent} at {request.url}"
    if "stream" in request.url.path:
        event = f"data: {json.dumps({'error': {'message': message}})}\n\n"
        return StreamingResponse(iter([event]), media_type="text/event-stream")
    if "html" in request.url.path:
        return PlainTextResponse(message, 200, media_type="text/html")
    if "redirect" in request.url.path:
        return RedirectResponse(f"http://ann:{SECRET}@{DOWN}/sparql", 302)
    status = 400 if "sparql" in request.url.path else 401
    return JSONResponse({"error": {"message": message, "code": message.split()[-3]}}, status)


@pytest.fixture(scope="module")
def server():
    with served(Starlette(routes=[Route("/{rest:path}", echo, methods=["GET", "POST"])])) as url:
        yield url


class Channels:
    """All collected outputs, and the parts that the cases use."""

    def __init__(self, tmp_path, monkeypatch, server):
        self.tmp_path, self.monkeypatch, self.server = tmp_path, monkeypatch, server
        self.texts = []
        self.entered = False

    def collect(self, *texts):
        self.texts += map(str, texts)

    @contextmanager
    def failing(self):
        try:
            yield
        except Exception as error:
            self.collect("".join(traceback.format_exception(error)), repr(error), *error.args)

    def env(self, **variables):
        for name, value in variables.items():
            self.monkeypatch.setenv(name, value)

    def file(self, text, name="secret"):
        path = self.tmp_path / name
        path.write_text(text)
        return path

    def guard(self, settings=None, **options):
        """Ask a guardrail, and read its log and report."""
        options.setdefault("grounding", ScriptedJudge())
        log = self.tmp_path / "log.sqlite"
        with self.failing():
            config = GuardrailConfig.model_validate(settings or {}).changed(log=log)
            self.collect(repr(config))
            with Guardrail(config, **options) as guard:
                with self.failing():
                    answer = guard.check(QUESTION, ANSWER)
                    self.collect(answer.model_dump_json(), answer.explain())
                with self.failing():
                    guard.ask(QUESTION)
                self.collect(guard.usage().model_dump_json())
        self.logged(log)

    def logged(self, log):
        """Read a score log, if there is one, and its report."""
        with suppress(GuardrailError), SQLiteLog(log, read_only=True) as records:
            self.collect(*(record.model_dump_json() for record in records.records()))
            self.collect(report_html(records))

    def endpoint(self, location, **settings):
        self.guard({"graph": {"location": location, "endpoint": FAST | settings}})

    def login(self, path):
        """Ask the server with a password in its address."""
        self.endpoint(self.server.replace("://", f"://ann:{SECRET}@") + path)

    def sparql(self, **settings):
        self.endpoint(f"{self.server}/sparql", **settings)

    def gateway(self, path="/v1/chat/completions", *, method="POST", body=CHAT, **options):
        """Call a gateway over the network, and read its numbers, its log and its report."""
        headers = options.pop("headers", {})
        log = self.tmp_path / "log.sqlite"
        with self.failing():
            settings = GatewaySettings(**({"upstream": f"{self.server}/v1"} | options))
            self.collect(repr(settings))
            with (
                Guardrail(GuardrailConfig(log=log), grounding=ScriptedJudge()) as guard,
                served(create_app(guard, settings)) as url,
            ):
                reply = httpx.request(method, url + path, json=body, headers=headers)
                self.collect(reply.text, reply.headers)
                key = {"authorization": f"Bearer {options.get('keys', 'none')}"}
                self.collect(httpx.get(f"{url}/metrics", headers=key).text)
        self.logged(log)


def sql(channels):
    class Connection:
        def cursor(self):
            raise RuntimeError(f"cannot connect to postgresql://ann:{SECRET}@{DOWN}/shop")

    with channels.failing():
        evidence_from_sql(Connection(), "SELECT 1")


def retriever(question):
    raise RuntimeError(f"DSN host=db user=ann password={SECRET} refused")


class TellingJudge(ScriptedJudge):
    def ground(self, items):
        raise RuntimeError(f"401 with headers {{'Authorization': 'Bearer {SECRET}'}}")


def chain(channels):
    with (
        channels.failing(),
        Guardrail(GuardrailConfig(), grounding=ScriptedJudge(), retriever=retriever) as guard,
    ):
        channels.collect(GuardrailRunnable(guard, RunnableLambda(lambda _: ANSWER)).invoke("?"))


def settings_file(text):
    def case(channels):
        path = channels.file(text, "guardrail.toml")
        with channels.failing():
            GuardrailConfig.from_toml(path)
        channels.collect(*examine(path))

    return case


def gateway_env(**settings):
    def case(channels):
        channels.env(**{f"GUARDRAIL_GATEWAY__{name}": text for name, text in settings.items()})
        with channels.failing():
            channels.collect(repr(GatewaySettings.from_env()))
        channels.collect(*examine(None))

    return case


def model_env(**variables):
    def case(channels):
        channels.env(OPENAI_API_KEY="none", **variables)
        channels.guard({"model": "openai:m", "graph": {"location": "none"}})

    return case


def no_graph(channels):
    with channels.failing():
        open_graphs(f"shop:{SECRET}@{DOWN}/x", settings=EndpointSettings(**FAST))


def chat_judge(channels):
    channels.env(OPENAI_API_KEY=SECRET, OPENAI_BASE_URL=f"{channels.server}/v1")
    channels.guard({"graph": {"location": "none"}}, grounding=None, judge=ChatJudge("m"))


BASIC = base64.b64encode(f"ann:{SECRET}".encode()).decode()
BEARER = {"authorization": f"Bearer {SECRET}"}
CASES = {
    # settings of an endpoint
    "password in the address": lambda c: c.endpoint(f"http://ann:{SECRET}@{DOWN}/sparql"),
    "token in the address": lambda c: c.endpoint(f"http://{SECRET}@{DOWN}/sparql"),
    "odd password": lambda c: c.endpoint(f"http://ann:x@y/{SECRET}@{DOWN}/sparql"),
    "api_key in the address": lambda c: c.endpoint(f"http://{DOWN}/sparql?api_key={SECRET}"),
    "token parameter": lambda c: c.endpoint(f"{c.server}/sparql?x=1&access_token={SECRET}"),
    "two addresses": lambda c: c.endpoint(f"people + http://ann:{SECRET}@{DOWN}/sparql"),
    "no such scheme": lambda c: c.endpoint(f"sparql://ann:{SECRET}@{DOWN}/sparql"),
    "misspelt scheme": lambda c: c.endpoint(f"htp:/ann:{SECRET}@{DOWN}/sparql"),
    "password repeated in an error": lambda c: c.login("/sparql"),
    "password on a web page": lambda c: c.login("/html"),
    "password in a redirect": lambda c: c.endpoint(f"{c.server}/redirect"),
    "password from the environment": lambda c: (
        c.env(SPARQL_LOGIN=f"ann:{SECRET}"),
        c.sparql(login="env:SPARQL_LOGIN"),
    ),
    "password from a file": lambda c: c.sparql(login=f"file:{c.file(f'ann:{SECRET}')}"),
    "token from a file": lambda c: c.endpoint(f"{c.server}/html", token=f"file:{c.file(SECRET)}"),
    "header from a file": lambda c: c.sparql(headers={"X-Tenant": f"file:{c.file(SECRET)}"}),
    "secret of two lines": lambda c: c.sparql(token=f"file:{c.file(f'x{chr(10)}{SECRET}')}"),
    "literal password": lambda c: c.endpoint(f"http://{DOWN}/", login=f"ann:{SECRET}"),
    "literal token": lambda c: c.endpoint(f"http://{DOWN}/", token=SECRET),
    "literal header": lambda c: c.endpoint(f"http://{DOWN}/", headers={"X-Key": SECRET}),
    # files of settings
    "literal in a file": settings_file(f'[graph.endpoint]\ntoken = "{SECRET}"\n'),
    "unknown setting": settings_file(f'[graph.endpoint]\npasswrd = "{SECRET}"\n'),
    "broken file": settings_file(f'[gateway]\nkeys = ["{SECRET}"\n[x'),
    "key of another type": settings_file(f'[gateway]\nkeys = {{ a = "{SECRET}" }}\n'),
    # settings of the gateway
    "gateway's key": gateway_env(KEYS=SECRET),
    "one key twice": gateway_env(KEYS=f"{SECRET},{SECRET}"),
    "tenant's key": gateway_env(TENANTS=f"a={SECRET}", PORT="x"),
    "tenant's name": gateway_env(TENANTS=f"a b={SECRET}"),
    "upstream of another scheme": gateway_env(UPSTREAM=f"ftp://ann:{SECRET}@{DOWN}/v1"),
    "upstream's password": lambda c: c.gateway(upstream=f"http://ann:{SECRET}@{DOWN}/v1"),
    "upstream's address in the doctor": gateway_env(UPSTREAM=f"http://ann:{SECRET}@{DOWN}/v1"),
    "upstream's key": lambda c: c.gateway(upstream_key=SECRET),
    "upstream's key, streamed": lambda c: c.gateway(
        upstream=f"{c.server}/stream", upstream_key=SECRET, body=CHAT | {"stream": True}
    ),
    "upstream's key, passed": lambda c: c.gateway("/v1/models", method="GET", upstream_key=SECRET),
    # what callers send
    "caller's key": lambda c: c.gateway(headers=BEARER),
    "caller's api-key": lambda c: c.gateway(headers={"api-key": SECRET}),
    "caller's wrong key": lambda c: c.gateway(keys="another", headers=BEARER),
    "caller's password": lambda c: c.gateway(
        "/dashboard", method="GET", keys="another", headers={"authorization": f"Basic {BASIC}"}
    ),
    "caller's cookie": lambda c: c.gateway(headers={"cookie": f"session={SECRET}"}),
    "key in the query": lambda c: c.gateway(f"/v1/chat/completions?api-key={SECRET}"),
    "key in the query of Azure": lambda c: c.gateway(
        f"/openai/deployments/m/chat/completions?api-version=1&subscription-key={SECRET}"
    ),
    "token in an unknown path's query": lambda c: c.gateway(f"/v1/nowhere?token={SECRET}"),
    # models, proxies, code of others
    "model's key": model_env(),
    "model's address": model_env(OPENAI_BASE_URL=f"http://ann:{SECRET}@{DOWN}/v1"),
    "judge's key": chat_judge,
    "proxy's password": lambda c: (
        c.env(HTTP_PROXY=f"http://ann:{SECRET}@[bad", HTTPS_PROXY=f"http://ann:{SECRET}@[bad"),
        c.endpoint(f"http://{DOWN}/sparql"),
    ),
    "password of a proxy that is down": lambda c: (
        c.env(http_proxy=f"http://ann:{SECRET}@{DOWN}"),
        c.endpoint("http://127.0.0.2:9/sparql"),
    ),
    "SOCKS proxy's password": lambda c: (
        c.env(ALL_PROXY=f"socks5://ann:{SECRET}@{DOWN}"),
        c.gateway(),
    ),
    "database's address": sql,
    "retriever's error": lambda c: c.guard(retriever=retriever),
    "judge's error": lambda c: c.guard(grounding=TellingJudge(), retriever=lambda question: []),
    "chain's error": chain,
    "graph that is none": no_graph,
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_secret_does_not_leak(case, tmp_path, monkeypatch, server, caplog, capfd, telemetry):
    channels = Channels(tmp_path, monkeypatch, server)
    with caplog.at_level(logging.DEBUG):
        case(channels)
    channels.collect(caplog.text, *capfd.readouterr())
    channels.collect(*(span.to_json() for span in telemetry.spans()))
    channels.collect(telemetry.reader.get_metrics_data() or "", *telemetry.records())
    output = "\n".join(channels.texts)
    assert len(output) > 200, "no output was collected"
    assert [line for line in output.splitlines() if SECRET in line or BASIC in line] == []
