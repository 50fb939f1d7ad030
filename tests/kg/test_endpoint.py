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
from pathlib import Path

import pyoxigraph
import pytest
from tenacity import nap

from guardrail import GuardrailConfig
from guardrail.core.errors import ConfigError, KnowledgeGraphError
from kg import SparqlGraph, endpoint, open_graph
from kg.endpoint import Endpoint
from kg.endpoint_settings import EndpointSettings
from kg.sparql_text import NAMESAKES
from tests.clock import PATIENCE_S, HandClock

from .conftest import PAINTERS, SparqlServer

Reply = Callable[[BaseHTTPRequestHandler], None]
RESULT = {
    "head": {"vars": ["x"]},
    "results": {"bindings": [{"x": {"type": "uri", "value": "u:1"}}]},
}
QUERY = "SELECT ?x WHERE { ?x ?y ?z }"


def reply(
    status: int = 200,
    body: str | bytes = json.dumps(RESULT),
    media_type: str | None = "application/sparql-results+json",
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
        self.headers: list[Message] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                outer.answer(self, body)

            def do_GET(self) -> None:
                outer.answer(self, self.path)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.replies = replies
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/sparql"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler, request: str) -> None:
        self.requests.append(request)
        self.headers.append(handler.headers)
        with suppress(BrokenPipeError, ConnectionResetError):
            self.replies[min(len(self.requests), len(self.replies)) - 1](handler)


@contextmanager
def serving(*replies: Reply) -> Iterator[Server]:
    server = Server(*replies)
    yield server
    server.http.shutdown()
    server.http.server_close()


def settings(**changes: object) -> EndpointSettings:
    usual: dict[str, object] = {"cache": None, "backoff_s": 0.01, "timeout_s": 60, "attempts": 3}
    return EndpointSettings.model_validate(usual | changes)


@pytest.mark.parametrize(
    ("answer", "message", "requests"),
    [
        (reply(200, "<html>Welcome</html>", "text/html; charset=utf-8"), "web page", 1),
        (reply(200, "{oops"), "malformed JSON", 1),
        (reply(200, "[" * 200_000), "malformed JSON", 1),
        (reply(200, '{"results":' * 100_000), "malformed JSON", 1),
        (reply(200, "[1]"), "no SPARQL result", 1),
        (reply(200, '{"results": {"bindings": [3]}}'), "malformed SPARQL result", 1),
        (reply(400, "parse error"), "rejects the query: .*parse error", 1),
        (reply(401), "login", 1),
        (reply(403), "403", 1),
        (reply(404), "404", 1),
        (reply(429), "429.*tried 3 times", 3),
        (reply(500), "500.*tried 3 times", 3),
        (reply(503), "503.*tried 3 times", 3),
    ],
)
def test_failures_are_typed_and_retried_only_where_it_helps(
    answer: Reply, message: str, requests: int
) -> None:
    with serving(answer) as server:
        with pytest.raises(KnowledgeGraphError, match=message):
            Endpoint(server.url, settings()).select(QUERY)
        assert len(server.requests) == requests


LITERAL = {"type": "literal", "value": "café"}
CAFE = json.dumps(
    {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": LITERAL}]}}, ensure_ascii=False
)
SPARQL_JSON = "application/sparql-results+json"


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (CAFE.encode("utf-8-sig"), SPARQL_JSON),
        (CAFE.encode("latin-1"), f"{SPARQL_JSON}; charset=ISO-8859-1"),
        (CAFE, f"{SPARQL_JSON}; charset=ISO-8859-1"),  # a default that is not true
        (CAFE, f"{SPARQL_JSON}; charset=no-such-charset"),
        (CAFE, None),
        (CAFE, "application/octet-stream"),
        (CAFE, "text/plain; charset=utf-8"),
    ],
)
def test_results_are_read_in_whatever_wrapping(body: str | bytes, media_type: str | None) -> None:
    with serving(reply(200, body, media_type)) as server:
        [row] = Endpoint(server.url, settings()).select(QUERY)
    assert row["x"].value == "café"


def test_control_characters_in_literals_are_read() -> None:
    raw = CAFE.replace("café", "one\ntwo\tthree")
    with serving(reply(200, raw)) as server:
        [row] = Endpoint(server.url, settings()).select(QUERY)
    assert row["x"].value == "one\ntwo\tthree"


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        ("<html>Welcome</html>", None),
        ("Welcome", "text/plain"),
        (CAFE.encode("latin-1"), SPARQL_JSON),  # neither UTF-8 nor of a charset that is named
        (CAFE[:-5], None),
    ],
)
def test_what_is_no_result_is_refused_in_whatever_wrapping(
    body: str | bytes, media_type: str | None
) -> None:
    with serving(reply(200, body, media_type)) as server, pytest.raises(KnowledgeGraphError):
        Endpoint(server.url, settings()).select(QUERY)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirected_query_keeps_its_body_and_login(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARQL_TOKEN", "secret-of-the-endpoint")
    with serving(reply(status, "", Location="/moved"), reply()) as server:
        Endpoint(server.url, settings(token="env:SPARQL_TOKEN")).select(QUERY)
    first, second = server.requests
    assert "query=SELECT" in first
    assert second == first
    assert [sent["Authorization"] for sent in server.headers] == [
        "Bearer secret-of-the-endpoint",
        "Bearer secret-of-the-endpoint",
    ]


def test_another_server_is_sent_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARQL_TOKEN", "secret-of-the-endpoint")
    logins = settings(token="env:SPARQL_TOKEN", headers={"X-Api-Key": "env:SPARQL_TOKEN"})
    with serving(reply()) as other, serving(reply(302, "", Location=other.url)) as server:
        Endpoint(server.url, logins).select(QUERY)
    assert server.headers[0]["X-Api-Key"] == "secret-of-the-endpoint"
    assert "query=SELECT" in other.requests[0]
    assert other.headers[0]["Authorization"] is None
    assert other.headers[0]["X-Api-Key"] is None


def test_see_other_gets_the_result() -> None:
    with serving(reply(303, "", Location="/result/1"), reply()) as server:
        [row] = Endpoint(server.url, settings()).select(QUERY)
    assert row["x"].value == "u:1"
    assert server.requests[1] == "/result/1"


@pytest.mark.parametrize("place", ["/again", "ftp://127.0.0.1/"])
def test_redirects_without_end_or_to_no_endpoint_are_an_error(place: str) -> None:
    with (
        serving(reply(302, "", Location=place)) as server,
        pytest.raises(KnowledgeGraphError),
    ):
        Endpoint(server.url, settings()).select(QUERY)
    assert len(server.requests) <= 6


def test_a_login_comes_from_settings_or_address_and_shows_in_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("p@ss/word\n")
    monkeypatch.setenv("SPARQL_KEY", "key-of-the-tenant")
    basic = "Basic " + base64.b64encode(b"ada:p@ss/word").decode()
    with serving(reply(500)) as server:
        logins = settings(
            user="ada",
            password=f"file:{tmp_path / 'password'}",
            headers={"X-Api-Key": "env:SPARQL_KEY"},
            attempts=1,
        )
        in_address = server.url.replace("://", "://ada:p%40ss%2Fword@")
        for endpoint_ in (
            Endpoint(server.url, logins),
            Endpoint(in_address, settings(attempts=1)),
        ):
            with pytest.raises(KnowledgeGraphError) as caught:
                endpoint_.select(QUERY)
            shown = "".join(traceback.format_exception(caught.value))
            assert not any(secret in shown for secret in ("p@ss", "p%40ss", "key-of"))
    assert [sent["Authorization"] for sent in server.headers] == [basic, basic]
    assert server.headers[0]["X-Api-Key"] == "key-of-the-tenant"


@pytest.mark.parametrize(
    "logins",
    [
        {"user": "ada"},
        {"password": "env:X"},
        {"user": "ada", "password": "env:X", "token": "env:X"},
        {"token": "a literal secret"},
        {"headers": {"X-Api-Key": "a literal secret"}},
    ],
)
def test_logins_that_are_none_are_refused_without_being_shown(logins: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        GuardrailConfig(graph={"location": "none"}).changed(
            graph={"location": "none", "endpoint": logins}
        )
    assert "literal" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("reference", ["env:NOT_SET_ANYWHERE", "file:/nowhere/at/all"])
def test_a_secret_that_is_missing_is_named(reference: str) -> None:
    with pytest.raises(ConfigError):
        Endpoint("http://127.0.0.1:9/", settings(token=reference))


def test_a_passing_failure_is_retried() -> None:
    with serving(reply(500), reply(503), reply()) as server:
        [row] = Endpoint(server.url, settings()).select(QUERY)
        assert row["x"].value == "u:1"
        assert len(server.requests) == 3


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    return HandClock().runs(monkeypatch, endpoint, nap)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_retry_after_is_honoured(status: int, clock: HandClock) -> None:
    with serving(reply(status, Retry_After="7"), reply()) as server:
        Endpoint(server.url, settings()).select(QUERY)
        assert len(server.requests) == 2
    assert clock.slept == [7.0]


def test_retry_after_beyond_the_deadline_fails_at_once(clock: HandClock) -> None:
    later = formatdate(time.time() + 3600, usegmt=True)
    with serving(reply(429, Retry_After=later)) as server:
        with pytest.raises(KnowledgeGraphError, match="429"):
            Endpoint(server.url, settings(deadline_s=20)).select(QUERY)
        assert len(server.requests) == 1
    assert clock.slept == []


@pytest.mark.parametrize("behaviour", ["hangs", "drips"])
def test_a_server_that_hangs_or_drips_is_given_up(behaviour: str) -> None:
    given_up = threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> None:
        given_up.wait(PATIENCE_S)

    def drip(handler: BaseHTTPRequestHandler) -> None:
        """Send a byte now and then: no single read ever times out."""
        handler.send_response(200)
        handler.send_header("Content-Type", "application/sparql-results+json")
        handler.end_headers()
        while not given_up.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    with serving({"hangs": hang, "drips": drip}[behaviour]) as server:
        # Were it not given up, this would never come to its end.
        with pytest.raises(KnowledgeGraphError, match="no answer within"):
            Endpoint(server.url, settings(timeout_s=0.2, attempts=2)).select(QUERY)
        given_up.set()


def test_the_deadline_bounds_all_attempts(clock: HandClock) -> None:
    with serving(reply(500)) as server:
        limits = settings(attempts=20, backoff_s=0.2, deadline_s=1)
        with pytest.raises(KnowledgeGraphError):
            Endpoint(server.url, limits).select(QUERY)
        assert 2 <= len(server.requests) < 20
    assert sum(clock.slept) < 1


def test_nobody_there() -> None:
    with serving(reply()) as server:
        url = server.url
    with pytest.raises(KnowledgeGraphError, match="cannot be reached"):
        Endpoint(url, settings()).select(QUERY)


def test_an_answer_without_end_is_cut() -> None:
    with (
        serving(reply(body=" " * 10_000)) as server,
        pytest.raises(KnowledgeGraphError, match="longer than"),
    ):
        Endpoint(server.url, settings(max_bytes=1000)).select(QUERY)


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "not a url"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ConfigError, match="address"):
        SparqlGraph(url)


def test_results_are_cached_between_graphs(tmp_path: Path) -> None:
    with serving(reply()) as server:
        kept = settings(cache=tmp_path / "cache.sqlite")
        for _ in range(3):
            Endpoint(server.url, kept).select(QUERY)
        assert len(server.requests) == 1


def test_a_home_that_cannot_be_written_costs_only_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with serving(reply()) as server:
        assert Endpoint(server.url, settings(cache="default")).select(QUERY)
        with pytest.raises(ConfigError, match="query cache"):
            Endpoint(server.url, settings(cache=tmp_path / "file" / "named.sqlite"))


def test_what_one_login_may_read_is_not_cached_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(reply()) as server:
        for secret in ("the first login", "the second login", "the first login"):
            monkeypatch.setenv("SPARQL_TOKEN", secret)
            kept = settings(cache=tmp_path / "c.sqlite", token="env:SPARQL_TOKEN")
            Endpoint(server.url, kept).select(QUERY)
    assert len(server.requests) == 2


def test_failures_are_not_cached(tmp_path: Path) -> None:
    with serving(reply(200, "{oops"), reply()) as server:
        endpoint = Endpoint(server.url, settings(cache=tmp_path / "cache.sqlite"))
        with pytest.raises(KnowledgeGraphError):
            endpoint.select(QUERY)
        assert endpoint.select(QUERY)


def test_a_batch_is_few_queries(sparql_server: SparqlServer) -> None:
    """Many labels are one VALUES query (and one for what was found), not one each."""
    sparql_server.put(PAINTERS)
    sent: list[str] = []

    def forward(handler: BaseHTTPRequestHandler) -> None:
        from urllib.parse import parse_qs

        query = parse_qs(server.requests[-1])["query"][0]
        sent.append(query)
        rows = Endpoint(sparql_server.query_url, settings()).json(query)
        reply(body=json.dumps(rows))(handler)

    with serving(forward) as server:
        graph = SparqlGraph(server.url, profile="wikidata-mirror", settings=settings())
        found = graph.find([f"Person {n}" for n in range(30)] + ["Rome", "London"])
        assert [len(entities) for entities in found[-2:]] == [1, 1]
        assert len(sent) == 4  # the bearers; what is known of them, facts, wider places
        graph.subgraphs(["Q212657", "Q367360", "Q220"])
        assert len(sent) == 7  # entities and facts of those that are new, labels
        graph.subgraphs(["Q212657", "Q367360", "Q220"])
        graph.find(["rome", "Rome", "Person 3"])
        assert len(sent) == 8  # "rome", whose bearer is known


def test_a_common_name_does_not_crowd_out_the_others(sparql_server: SparqlServer) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    smiths = [f'<urn:smith:{n:03}> {label} "John Smith" .' for n in range(3 * NAMESAKES)]
    sparql_server.put("\n".join([*smiths, f'<urn:ada> {label} "Ada Lovelace" .']))
    graph = SparqlGraph(sparql_server.query_url, profile="rdfs", settings=settings())
    ada, john = graph.find(["Ada Lovelace", "John Smith"])
    assert [entity.id for entity in ada] == ["urn:ada"]
    assert len(john) == NAMESAKES


def test_wikidata_is_asked_through_its_label_service() -> None:
    graph = open_graph("https://query.wikidata.org/sparql")
    assert isinstance(graph, SparqlGraph)
    assert graph.profile.name == "wikidata"
    query = graph.queries.labels(["http://www.wikidata.org/entity/Q7259"])
    assert "SERVICE <http://wikiba.se/ontology#label>" in query
    assert '"en,mul"' in query
    # The query is SPARQL: an empty store parses it, and fails only at the remote service.
    with pytest.raises((OSError, RuntimeError, ValueError)) as failure:
        list(pyoxigraph.Store().query(query))  # type: ignore[arg-type]
    assert not isinstance(failure.value, SyntaxError)
