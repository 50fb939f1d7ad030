"""Remote graphs: few round trips, bounded load, several endpoints as one graph."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail import Guardrail, GuardrailConfig
from guardrail.cli import app
from guardrail.core.errors import KnowledgeGraphError
from kg import FederatedGraph, OxigraphGraph, SparqlGraph
from kg.base import KnowledgeGraph, MentionIndex, PlaceIndex
from kg.endpoint import Endpoint
from kg.traffic import CircuitBreaker, RateLimit, TimedCache

from .conftest import PAINTERS, SparqlServer
from .test_endpoint import QUERY, reply, serving, settings

LATENCY_S = 0.05


class Far:
    """A SPARQL server behind a long wire: passes queries on after 50 ms, and notes when."""

    def __init__(self, server: SparqlServer) -> None:
        self.spans: list[tuple[float, float]] = []
        self.connections: set[tuple[str, int]] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                began = time.monotonic()
                outer.connections.add(self.client_address)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(LATENCY_S)
                request = urllib.request.Request(
                    server.query_url,
                    body,
                    {
                        "Content-Type": self.headers["Content-Type"],
                        "Accept": self.headers["Accept"],
                    },
                )
                try:
                    with urllib.request.urlopen(request) as response:
                        status, answer = response.status, response.read()
                except urllib.error.HTTPError as error:
                    status, answer = error.code, error.read()
                self.send_response(status)
                self.send_header("Content-Type", "application/sparql-results+json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                outer.spans.append((began, time.monotonic()))

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/sparql"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def round_trips(self) -> int:
        """How many queries waited for one another: the longest chain of one after the other."""
        trips, free = 0, 0.0
        for began, ended in sorted(self.spans, key=lambda span: span[1]):
            if began >= free:
                trips, free = trips + 1, ended
        return trips


@pytest.fixture
def far(sparql_server: SparqlServer) -> Iterator[Far]:
    sparql_server.put(PAINTERS)
    server = Far(sparql_server)
    yield server
    server.http.shutdown()
    server.http.server_close()


def test_four_entities_take_three_round_trips(far: Far) -> None:
    graph = SparqlGraph(far.url, profile="wikidata-mirror", settings=settings())
    guard = Guardrail(GuardrailConfig(judge="none"), graph=graph)
    guard.warm_up()
    far.spans.clear()
    answer = guard.check(
        question="Who was Artemisia Gentileschi?",
        answer="Artemisia Gentileschi was born in Rome. Orazio Gentileschi died in London.",
    )
    assert not answer.errors
    assert {"Q212657", "Q220", "Q367360", "Q84"} <= {link.entity.id for link in answer.entities}
    assert [sentence.citations[0].value for sentence in answer.sentences] == ["Rome", "London"]
    assert 1 <= far.round_trips <= 3
    asked = len(far.spans)
    guard.check(question="Who was Artemisia Gentileschi?", answer="She was born in Rome.")
    assert len(far.spans) == asked  # everything is remembered
    assert len(far.connections) <= settings().connections
    graph.close()


def test_queries_go_at_once_but_no_more_than_allowed(far: Far) -> None:
    endpoint = Endpoint(far.url, settings(connections=2))
    endpoint.select_all([f"{QUERY} LIMIT {n}" for n in range(1, 7)])
    assert len(far.connections) == 2
    for moment, _ in far.spans:
        assert sum(began <= moment < ended for began, ended in far.spans) <= 2
    endpoint.close()


def test_rate_limit() -> None:
    limit = RateLimit(50)
    started = time.monotonic()
    assert all(limit.take(started + 10) for _ in range(60))
    assert 0.15 <= time.monotonic() - started < 5
    slow = RateLimit(0.1)
    assert slow.take(time.monotonic() + 1)
    assert not slow.take(time.monotonic() + 1)
    assert all(RateLimit(None).take(0.0) for _ in range(100))


def test_an_endpoint_that_is_down_is_left_alone_for_a_while() -> None:
    with serving(reply(500), reply(500), reply()) as server:
        endpoint = Endpoint(server.url, settings(attempts=1, failures=2, pause_s=0.5))
        for _ in range(2):
            with pytest.raises(KnowledgeGraphError, match="500"):
                endpoint.select(QUERY)
        with pytest.raises(KnowledgeGraphError, match="failed 2 times in a row"):
            endpoint.select(QUERY)
        assert len(server.requests) == 2
        time.sleep(0.6)
        assert endpoint.select(QUERY)
        assert endpoint.select(QUERY)
        assert len(server.requests) == 4


def test_one_trial_call_at_a_time() -> None:
    breaker = CircuitBreaker(1, 0.05)
    breaker.failed()
    assert breaker.closed_in() > 0
    time.sleep(0.06)
    assert breaker.closed_in() == 0
    assert breaker.closed_in() > 0  # the trial is under way
    breaker.failed()
    assert breaker.closed_in() > 0


def test_our_own_rate_limit_opens_no_breaker() -> None:
    with serving(reply()) as server:
        endpoint = Endpoint(server.url, settings(failures=1, per_second=1, deadline_s=0.4))
        assert endpoint.select(QUERY)
        for _ in range(3):
            with pytest.raises(KnowledgeGraphError, match="1 queries a second"):
                endpoint.select(QUERY)
        time.sleep(1)
        assert endpoint.select(QUERY)
        assert len(server.requests) == 2


def test_a_turn_that_leaves_no_time_opens_no_breaker() -> None:
    def slow(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(2)
        reply()(handler)

    with serving(reply(), slow, reply()) as server:
        limits = settings(attempts=1, failures=1, per_second=1, deadline_s=1.1)
        endpoint = Endpoint(server.url, limits)
        assert endpoint.select(QUERY)
        with pytest.raises(KnowledgeGraphError, match="no answer within"):
            endpoint.select(QUERY)  # it waited for one second of 1.1
        time.sleep(1)
        assert endpoint.select(QUERY)


def test_our_busy_connections_open_no_breaker() -> None:
    gate = threading.Event()

    def held(handler: BaseHTTPRequestHandler) -> None:
        gate.wait(10)
        reply()(handler)

    with serving(held, reply()) as server, ThreadPoolExecutor(1) as pool:
        endpoint = Endpoint(server.url, settings(attempts=1, failures=1, connections=1))
        waiting = pool.submit(endpoint.select, QUERY)
        while not server.requests:
            time.sleep(0.01)
        endpoint.settings = endpoint.settings.model_copy(update={"timeout_s": 0.2})
        with pytest.raises(KnowledgeGraphError, match="connections to it are busy"):
            endpoint.select(QUERY)
        gate.set()
        assert waiting.result()
        assert endpoint.select(QUERY)


def test_an_endpoint_that_fails_before_our_limit_counts_as_failing() -> None:
    with serving(reply(500)) as server:
        endpoint = Endpoint(server.url, settings(failures=1, per_second=1, deadline_s=0.5))
        with pytest.raises(KnowledgeGraphError, match="queries a second"):
            endpoint.select(QUERY)
        with pytest.raises(KnowledgeGraphError, match="failed 1 times in a row"):
            endpoint.select(QUERY)


def test_a_trial_call_without_a_turn_leaves_the_trial_to_the_next() -> None:
    breaker = CircuitBreaker(1, 0.05)
    breaker.failed()
    time.sleep(0.06)
    assert breaker.closed_in() == 0
    breaker.unasked()
    assert breaker.closed_in() == 0


def test_a_refused_query_opens_no_breaker() -> None:
    with serving(reply(400, "no"), reply(400, "no"), reply()) as server:
        endpoint = Endpoint(server.url, settings(failures=1))
        for _ in range(2):
            with pytest.raises(KnowledgeGraphError, match="rejects"):
                endpoint.select(QUERY)
        assert endpoint.select(QUERY)


SHOP = """
@prefix : <https://shop.example/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""


def test_a_name_of_one_graph_stands_in_all() -> None:
    prices = OxigraphGraph.from_text(
        SHOP + ":Tarn :maker :Fjell . :Fjell rdfs:label 'Fjell' ; :sells :Tarn ."
    )
    names = OxigraphGraph.from_text(
        SHOP + ":Tarn rdfs:label 'Tarn City' . :Fjell rdfs:label 'Fjell Bikes' ; :sells :Tarn ."
    )
    tarn, fjell = "https://shop.example/Tarn", "https://shop.example/Fjell"
    for graphs in ((prices, names), (names, prices)):
        graph = FederatedGraph(graphs)
        [entity] = graph.entities([tarn])
        assert entity is not None
        assert entity.label == "Tarn City"
        [of_tarn, of_fjell] = graph.subgraphs([tarn, fjell])
        assert of_tarn.entity.label == "Tarn City"
        assert [t.text for t in of_tarn.triples] == ["Tarn City, maker: Fjell Bikes."]
        assert [t.text for t in of_fjell.triples] == ["Fjell Bikes, sells: Tarn City."]
        assert {t.text for t in graph.links([tarn, fjell])} == {
            "Tarn City, maker: Fjell Bikes.",
            "Fjell Bikes, sells: Tarn City.",
        }


def test_a_graph_that_does_not_know_a_thing_gives_it_no_name() -> None:
    other = OxigraphGraph.from_text(SHOP + ":Fell rdfs:label 'Fell' .")
    names = OxigraphGraph.from_text(SHOP + ":Tarn rdfs:label 'Tarn City' .")
    [subgraph] = FederatedGraph([other, names]).subgraphs(["https://shop.example/Tarn"])
    assert subgraph.entity.label == "Tarn City"


@pytest.mark.parametrize("attempts", [1, 2])
def test_the_settings_of_the_configuration_reach_the_endpoint(attempts: int) -> None:
    with serving(reply(500)) as server:
        endpoint = {"attempts": attempts, "backoff_s": 0.01, "cache": "none", "failures": "none"}
        config = GuardrailConfig.model_validate(
            {"graph": {"location": server.url, "endpoint": endpoint}, "judge": "none"}
        )
        with Guardrail(config) as guard:
            guard.check("Who was Ada Lovelace?", "Ada Lovelace was born in London.")
        assert server.requests
        assert set(Counter(server.requests).values()) == {attempts}


def test_the_settings_of_the_environment_reach_the_endpoint() -> None:
    environ = {
        "GUARDRAIL_GRAPH__ENDPOINT__ATTEMPTS": "1",
        "GUARDRAIL_GRAPH__ENDPOINT__CACHE": "none",
    }
    with serving(reply(500)) as server:
        done = CliRunner().invoke(app, ["kg", "query", QUERY, "--kg", server.url], env=environ)
        assert isinstance(done.exception, KnowledgeGraphError)
        assert len(server.requests) == 1


def test_commands_on_several_graphs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.nt").write_text(f"<urn:{name}> <urn:p> <urn:{name}> .\n")
    both = f"{tmp_path / 'a.nt'} + {tmp_path / 'b.nt'}"
    done = CliRunner().invoke(app, ["kg", "stats", "--kg", both, "--json"], catch_exceptions=False)
    counts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(count["name"], count["triples"]) for count in counts] == [("a.nt", 1), ("b.nt", 1)]
    done = CliRunner().invoke(app, ["kg", "query", "ASK {}", "--kg", both])
    assert "a.nt + b.nt is several graphs" in str(done.exception)


def test_what_is_remembered_grows_stale() -> None:
    cache: TimedCache[str, int] = TimedCache(2, 0.05)
    cache.put("a", 1)
    assert cache.get("a") == 1
    time.sleep(0.06)
    assert cache.get("a") is None
    for number in range(5):
        cache.put(str(number), number)
    assert cache.get("4") == 4
    assert cache.get("0") is None


def test_two_halves_are_one_graph() -> None:
    """The second half knows the facts of scholarly articles, the first the names of persons."""
    prefix = PAINTERS[: PAINTERS.index("wd:Q212657")]
    second = (
        prefix
        + """
    wd:Q1000 rdfs:label "On Light"@en ; wdt:P50 wd:Q212657 ; wdt:P31 wd:Q13442814 .
    wd:P50 wikibase:directClaim wdt:P50 ; rdfs:label "author"@en .
    """
    )
    graph = FederatedGraph(
        [
            OxigraphGraph.from_text(PAINTERS, profile="wikidata"),
            OxigraphGraph.from_text(second, profile="wikidata"),
        ]
    )
    assert isinstance(graph, KnowledgeGraph)
    assert isinstance(graph, MentionIndex)
    assert isinstance(graph, PlaceIndex)
    states = [OxigraphGraph.from_text(text).snapshot for text in (PAINTERS, second)]
    assert graph.snapshot == f"{states[0]} + {states[1]}"
    assert FederatedGraph([OxigraphGraph(), graph]).snapshot == f"? + {graph.snapshot}"
    assert FederatedGraph([OxigraphGraph()]).snapshot is None
    [article, painter] = graph.find(["On Light", "Artemisia Gentileschi"])
    assert [entity.id for entity in article] == ["Q1000"]
    assert [entity.id for entity in painter] == ["Q212657"]
    [subgraph, whole] = graph.subgraphs(["Q1000", "Q212657"])
    assert "On Light, author: Artemisia Gentileschi." in [t.text for t in subgraph.triples]
    assert "On Light, author: Artemisia Gentileschi." in [t.text for t in whole.incoming]
    assert "Artemisia Gentileschi, place of birth: Rome." in [t.text for t in whole.triples]
    assert [t.text for t in graph.links(["Q1000", "Q212657"])]
    spotted = graph.spot("Artemisia Gentileschi wrote On Light.")
    assert [mention.text for mention in spotted] == ["Artemisia Gentileschi", "On Light"]
    assert graph.entities(["Q999999"]) == [None]
    assert graph.name == "memory + memory"
    graph.close()
