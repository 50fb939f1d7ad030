"""Endpoints that fail, and endpoints that recover: typed errors, bounded retries, a cache."""

from __future__ import annotations

import base64
import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tenacity import nap
from typer.testing import CliRunner

from guardrail import Guardrail, GuardrailConfig
from guardrail.cli import app
from guardrail.core import http_clients
from guardrail.core.errors import ConfigError, KnowledgeGraphError
from kg import SparqlGraph, endpoint
from kg.endpoint import FAILURES, Endpoint
from kg.opening import EndpointSettings
from tests.clock import PATIENCE_S, HandClock

Reply = Callable[[BaseHTTPRequestHandler], None]
RESULT = {
    "head": {"vars": ["x"]},
    "results": {"bindings": [{"x": {"type": "uri", "value": "u:1"}}]},
}
QUERY = "SELECT ?x WHERE { ?x ?y ?z }"
SPARQL_JSON = "application/sparql-results+json"


def reply(
    status: int = 200,
    body: str | bytes = json.dumps(RESULT),
    media_type: str | None = SPARQL_JSON,
    **headers: str,
) -> Reply:
    content = body if isinstance(body, bytes) else body.encode()

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        if media_type is not None:
            handler.send_header("Content-Type", media_type)
        handler.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return send


class Server:
    """An HTTP server that answers with the given replies in order, the last one for ever."""

    def __init__(self, *replies: Reply) -> None:
        self.requests: list[str] = []
        self.paths: list[str] = []
        self.headers: list[Message] = []
        self.connections: set[tuple[str, int]] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                outer.requests.append(body)
                outer.paths.append(self.path)
                outer.headers.append(self.headers)
                outer.connections.add(self.client_address)
                with suppress(BrokenPipeError, ConnectionResetError):
                    outer.replies[min(len(outer.requests), len(outer.replies)) - 1](self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.replies = replies
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/sparql"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()


@contextmanager
def serving(*replies: Reply) -> Iterator[Server]:
    server = Server(*replies)
    yield server
    server.http.shutdown()
    server.http.server_close()


def settings(**changes: object) -> EndpointSettings:
    return EndpointSettings.model_validate({"cache": None, "deadline_s": 180} | changes)


ONCE = settings(deadline_s=0.3)
"""No time for a second attempt."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    return HandClock().runs(monkeypatch, endpoint, nap, http_clients)


LITERAL = {"type": "literal", "value": "café"}
CAFE = json.dumps(
    {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": LITERAL}]}}, ensure_ascii=False
)


@pytest.mark.parametrize(
    ("answer", "message", "requests"),
    [
        (reply(200, "<html>Welcome</html>", "text/html; charset=utf-8"), "SPARQL endpoint", 1),
        (reply(200, "[" * 200_000), "does not answer", 1),
        (reply(200, CAFE.encode("latin-1")), "does not answer", 1),
        (reply(200, CAFE[:-5]), "does not answer", 1),
        (reply(200, "[1]"), "no SPARQL result", 1),
        (reply(200, '{"results": {"bindings": [3]}}'), "malformed SPARQL result", 1),
        (reply(400, "parse error"), "rejects the query: .*parse error", 1),
        (reply(401), "login", 1),
        (reply(403), "403", 1),
        (reply(404), "404", 1),
        (reply(302, "", Location="http://ann:pw@other.test/s?q=1"), "http://other.test/s;", 1),
        (reply(302, "", Location="/sparql"), "redirects", 1 + endpoint.REDIRECTS),
        (reply(206), "206", 1),
        (reply(300), "300", 1),
        (reply(200, X_SQL_State="S1TAT"), "time limit cut the answer short; tried 4 times", 4),
        (reply(429), "429.*tried 4 times", 4),
        (reply(500), "500.*tried 4 times", endpoint.ATTEMPTS),
    ],
)
def test_failures_are_typed_and_retried_only_where_it_helps(
    answer, message, requests, clock, tmp_path
):
    with serving(answer) as server:
        cached = Endpoint(server.url, settings(cache=tmp_path / "cache.sqlite"))
        with pytest.raises(KnowledgeGraphError, match=message):
            cached.select(QUERY)
        assert len(server.requests) == requests
        server.replies = (reply(),)
        assert cached.select(QUERY)  # failures are not cached


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_within_the_origin_keep_the_query(status):
    with serving(reply(status, "", Location="/moved?graph=all"), reply()) as server:
        assert Endpoint(server.url, settings()).select(QUERY)
    assert server.paths == ["/sparql", "/moved?graph=all"]
    assert server.requests[0] == server.requests[1]


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (CAFE.encode("utf-8-sig"), SPARQL_JSON),
        (CAFE.encode("latin-1"), f"{SPARQL_JSON}; charset=ISO-8859-1"),
        (CAFE, f"{SPARQL_JSON}; charset=ISO-8859-1"),  # a default that is not true
        (CAFE, f"{SPARQL_JSON}; charset=no-such-charset"),
        (CAFE, None),
        (CAFE.replace("café", "café\n"), "application/octet-stream"),
    ],
)
def test_results_are_read_in_any_encoding(body, media_type):
    with serving(reply(200, body, media_type)) as server:
        [row] = Endpoint(server.url, settings()).select(QUERY)
    assert row["x"].value.strip() == "café"


def test_a_login_comes_from_settings_or_address_and_shows_in_no_error(tmp_path, monkeypatch):
    (tmp_path / "login").write_text("ada:p@ss/word\n")
    monkeypatch.setenv("SPARQL_KEY", "key-of-the-tenant")
    basic = "Basic " + base64.b64encode(b"ada:p@ss/word").decode()
    with serving(reply(500)) as server:
        login = f"file:{tmp_path / 'login'}"
        logins = settings(login=login, headers={"X-Api-Key": "env:SPARQL_KEY"}, deadline_s=0.3)
        in_address = server.url.replace("://", "://ada:p%40ss%2Fword@")
        for endpoint_ in (Endpoint(server.url, logins), Endpoint(in_address, ONCE)):
            with pytest.raises(KnowledgeGraphError) as caught:
                endpoint_.select(QUERY)
            shown = "".join(traceback.format_exception(caught.value))
            assert not any(secret in shown for secret in ("p@ss", "p%40ss", "key-of"))
    assert [sent["Authorization"] for sent in server.headers] == [basic, basic]
    assert server.headers[0]["X-Api-Key"] == "key-of-the-tenant"


@pytest.mark.parametrize(
    "logins",
    [
        {"login": "ada:a literal secret"},
        {"login": "env:X", "token": "env:X"},
        {"token": "a literal secret"},
        {"headers": {"X-Api-Key": "a literal secret"}},
    ],
)
def test_invalid_logins_are_refused_without_being_shown(logins):
    with pytest.raises(ConfigError) as caught:
        GuardrailConfig().changed(graph={"location": "none", "endpoint": logins})
    assert "literal" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("url", "token"),
    [
        *((url, None) for url in ("", "ftp://x", "http://", "not a url")),
        ("http://127.0.0.1:9/", "env:NOT_SET_ANYWHERE"),
        ("http://127.0.0.1:9/", "file:/nowhere/at/all"),
    ],
)
def test_an_address_or_a_secret_that_is_none_is_refused(url, token):
    with pytest.raises(ConfigError, match="address" if token is None else None):
        SparqlGraph(url, settings=settings(token=token))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_retry_after_is_honoured(status, clock):
    with serving(reply(status, Retry_After="7"), reply()) as server:
        [row] = Endpoint(server.url, settings()).select(QUERY)
        assert row["x"].value == "u:1"
        assert len(server.requests) == 2
    assert clock.slept == [7.0]


def test_retry_after_beyond_the_deadline_fails_at_once(clock):
    later = formatdate(time.time() + 3600, usegmt=True)
    with serving(reply(429, Retry_After=later)) as server:
        with pytest.raises(KnowledgeGraphError, match="429"):
            Endpoint(server.url, settings(deadline_s=20)).select(QUERY)
        assert len(server.requests) == 1
    assert clock.slept == []


@pytest.mark.parametrize("behaviour", ["hangs", "drips", "redirects and hangs"])
def test_a_server_that_hangs_or_drips_is_given_up(behaviour):
    given_up = threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> None:
        given_up.wait(PATIENCE_S)

    def drip(handler: BaseHTTPRequestHandler) -> None:
        """Send a byte now and then: no single read ever times out."""
        handler.send_response(200)
        handler.send_header("Content-Type", SPARQL_JSON)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        while not given_up.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    moved = reply(307, "", Location="/moved")
    replies = {"hangs": [hang], "drips": [drip], "redirects and hangs": [moved, hang]}[behaviour]
    with serving(*replies) as server:
        with pytest.raises(KnowledgeGraphError, match="no answer within"):
            Endpoint(server.url, settings(deadline_s=0.6)).select(QUERY)
        given_up.set()


def test_an_unreachable_server_and_a_long_answer(monkeypatch):
    monkeypatch.setattr(endpoint, "MAX_BYTES", 1000)
    with serving(reply(body=" " * 10_000)) as server, pytest.raises(KnowledgeGraphError) as long:
        Endpoint(server.url, settings()).select(QUERY)
    assert "longer than" in str(long.value)
    with pytest.raises(KnowledgeGraphError, match="cannot be reached"):
        Endpoint(server.url, ONCE).select(QUERY)


def test_results_are_cached_between_graphs_but_not_between_logins(tmp_path, monkeypatch):
    with serving(reply()) as server:
        for secret in ("the first login", "the second login", "the first login"):
            monkeypatch.setenv("SPARQL_TOKEN", secret)
            kept = settings(cache=tmp_path / "c.sqlite", token="env:SPARQL_TOKEN")
            Endpoint(server.url, kept).select(QUERY)
    assert len(server.requests) == 2


def test_a_home_that_cannot_be_written_costs_only_the_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with serving(reply()) as server:
        assert Endpoint(server.url, settings(cache="default")).select(QUERY)
        with pytest.raises(ConfigError, match="query cache"):
            Endpoint(server.url, settings(cache=tmp_path / "file" / "named.sqlite"))


def test_queries_go_at_once_but_no_more_than_allowed():
    pairs, lock = threading.Barrier(2, timeout=PATIENCE_S), threading.Lock()
    running, most = 0, 0

    def meet(handler: BaseHTTPRequestHandler) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        pairs.wait()  # an answer only where another query is under way
        with lock:
            running -= 1
        reply()(handler)

    with serving(meet) as server:
        endpoint_ = Endpoint(server.url, settings())
        endpoint_.select_all([f"{QUERY} LIMIT {n}" for n in range(1, 13)])
        endpoint_.close()
    assert 2 <= most <= endpoint.CONNECTIONS


def test_a_failing_endpoint_is_paused(clock):
    with serving(reply(500)) as server:
        failing = Endpoint(server.url, settings(deadline_s=10_000))
        for _ in range(FAILURES):
            with pytest.raises(KnowledgeGraphError, match=f"500.*tried {endpoint.ATTEMPTS} times"):
                failing.select(QUERY)
        with pytest.raises(KnowledgeGraphError, match=f"failed {FAILURES} queries in a row"):
            failing.select(QUERY)
        assert len(server.requests) == FAILURES * endpoint.ATTEMPTS
        clock.now += 10.1
        server.replies = (reply(),)
        assert failing.select(QUERY)
        server.replies = (reply(500),)
        with pytest.raises(KnowledgeGraphError, match="500"):
            failing.select(QUERY)  # the count began anew


def test_the_settings_reach_the_endpoint_from_file_and_environment():
    with serving(reply(500)) as server:
        chosen = {"user_agent": "me/1", "cache": "none", "deadline_s": 0.3}
        config = {"graph": {"location": server.url, "endpoint": chosen}, "judge": "none"}
        with Guardrail(GuardrailConfig.model_validate(config)) as guard:
            guard.check("Who was Ada Lovelace?", "Ada Lovelace was born in London.")
        assert server.headers[0]["User-Agent"] == "me/1"
        section = "GUARDRAIL_GRAPH__ENDPOINT__"
        environ = {f"{section}DEADLINE_S": "0.3", f"{section}CACHE": "none"}
        server.requests.clear()
        done = CliRunner().invoke(app, ["kg", "query", QUERY, "--kg", server.url], env=environ)
        assert isinstance(done.exception, KnowledgeGraphError)
        assert len(server.requests) == 1


def test_settings_that_only_tuned_what_is_fixed_now_are_ignored_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match=r"graph\.endpoint\.attempts is gone"):
        known = EndpointSettings.model_validate({"attempts": 1, "deadline_s": 20})
    assert known.deadline_s == 20.0
