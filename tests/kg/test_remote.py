"""Remote graphs: few round trips, bounded load, several endpoints as one graph."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail import Guardrail, GuardrailConfig
from guardrail.cli import app
from guardrail.core import http_clients
from guardrail.core.errors import KnowledgeGraphError
from kg import FederatedGraph, OxigraphGraph, SparqlGraph, endpoint, traffic
from kg.base import KnowledgeGraph, MentionIndex, PlaceIndex
from kg.endpoint import Endpoint
from kg.traffic import CircuitBreaker, RateLimit, TimedCache
from tests.clock import PATIENCE_S, HandClock, until

from .conftest import PAINTERS, SparqlServer
from .test_endpoint import QUERY, reply, serving, settings


class Far:
    """Passes queries on to a SPARQL server, and notes them."""

    def __init__(self, server: SparqlServer) -> None:
        self.asked = 0
        self.connections: set[tuple[str, int]] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.asked += 1
                outer.connections.add(self.client_address)
                body = self.rfile.read(int(self.headers["Content-Length"]))
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

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/sparql"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def far(sparql_server: SparqlServer) -> Iterator[Far]:
    sparql_server.put(PAINTERS)
    server = Far(sparql_server)
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many queries went out together, each time that the graph waited for an answer."""
    trips: list[int] = []
    alone, together = Endpoint.select, Endpoint.select_all

    def select(self: Endpoint, query: str) -> object:
        trips.append(1)
        return alone(self, query)

    def select_all(self: Endpoint, queries: Sequence[str]) -> object:
        if queries:
            trips.append(len(queries))
        with monkeypatch.context() as within:
            within.setattr(Endpoint, "select", alone)
            return together(self, queries)

    monkeypatch.setattr(Endpoint, "select", select)
    monkeypatch.setattr(Endpoint, "select_all", select_all)
    return trips


def test_four_entities_take_three_round_trips(far: Far, round_trips: list[int]) -> None:
    graph = SparqlGraph(far.url, profile="wikidata-mirror", settings=settings())
    guard = Guardrail(GuardrailConfig(judge="none"), graph=graph)
    guard.warm_up()
    round_trips.clear()
    answer = guard.check(
        question="Who was Artemisia Gentileschi?",
        answer="Artemisia Gentileschi was born in Rome. Orazio Gentileschi died in London.",
    )
    assert not answer.errors
    assert {"Q212657", "Q220", "Q367360", "Q84"} <= {link.entity.id for link in answer.entities}
    assert [sentence.citations[0].value for sentence in answer.sentences] == ["Rome", "London"]
    assert 1 <= len(round_trips) <= 3
    assert max(round_trips) <= settings().connections  # those of one trip go at once
    asked = far.asked
    guard.check(question="Who was Artemisia Gentileschi?", answer="She was born in Rome.")
    assert far.asked == asked  # everything is remembered
    assert len(far.connections) <= settings().connections
    graph.close()


def test_queries_go_at_once_but_no_more_than_allowed() -> None:
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
        endpoint = Endpoint(server.url, settings(connections=2))
        endpoint.select_all([f"{QUERY} LIMIT {n}" for n in range(1, 7)])
        endpoint.close()
    assert most == 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    return HandClock().runs(monkeypatch, endpoint, traffic, http_clients)


def test_rate_limit(clock: HandClock) -> None:
    limit = RateLimit(50)
    assert all(limit.take(clock.now + 10) for _ in range(60))
    assert sum(clock.slept) == pytest.approx(0.2)  # one second's worth goes at once
    slow = RateLimit(0.1)
    assert slow.take(clock.now + 1)
    assert not slow.take(clock.now + 1)
    assert all(RateLimit(None).take(0.0) for _ in range(100))


def test_an_endpoint_that_is_down_is_left_alone_for_a_while(clock: HandClock) -> None:
    with serving(reply(500), reply(500), reply()) as server:
        endpoint = Endpoint(server.url, settings(attempts=1, failures=2))
        for _ in range(2):
            with pytest.raises(KnowledgeGraphError, match="500"):
                endpoint.select(QUERY)
        with pytest.raises(KnowledgeGraphError, match="failed 2 times in a row"):
            endpoint.select(QUERY)
        assert len(server.requests) == 2
        clock.now += 9.9
        with pytest.raises(KnowledgeGraphError, match=r"in 0\.1 s"):
            endpoint.select(QUERY)
        clock.now += 0.2
        assert endpoint.select(QUERY)
        assert endpoint.select(QUERY)
        assert len(server.requests) == 4


def test_one_trial_call_at_a_time(clock: HandClock) -> None:
    breaker = CircuitBreaker(1, 5.0)
    breaker.failed()
    assert breaker.closed_in() == 5.0
    clock.now += 6.0
    assert breaker.closed_in() == 0
    assert breaker.closed_in() > 0  # the trial is under way
    breaker.failed()
    assert breaker.closed_in() == 5.0


def test_our_own_rate_limit_opens_no_breaker(clock: HandClock) -> None:
    with serving(reply()) as server:
        endpoint = Endpoint(server.url, settings(failures=1, per_second=1, deadline_s=0.4))
        assert endpoint.select(QUERY)
        for _ in range(3):
            with pytest.raises(KnowledgeGraphError, match="1 queries a second"):
                endpoint.select(QUERY)
        clock.now += 1
        assert endpoint.select(QUERY)
        assert len(server.requests) == 2


def test_a_turn_that_leaves_no_time_opens_no_breaker(clock: HandClock) -> None:
    gate = threading.Event()

    def held(handler: BaseHTTPRequestHandler) -> None:
        gate.wait(PATIENCE_S)
        reply()(handler)

    with serving(reply(), held, reply()) as server:
        limits = settings(attempts=1, failures=1, per_second=0.01, deadline_s=100.1)
        endpoint = Endpoint(server.url, limits)
        assert endpoint.select(QUERY)
        with pytest.raises(KnowledgeGraphError, match="no answer within"):
            endpoint.select(QUERY)  # it waited for 100 of 100.1 seconds
        until(lambda: len(server.requests) == 2)
        gate.set()
        clock.now += 100
        assert endpoint.select(QUERY)


def test_our_busy_connections_open_no_breaker() -> None:
    gate = threading.Event()

    def held(handler: BaseHTTPRequestHandler) -> None:
        gate.wait(PATIENCE_S)
        reply()(handler)

    with serving(held, reply()) as server, ThreadPoolExecutor(1) as pool:
        endpoint = Endpoint(server.url, settings(attempts=1, failures=1, connections=1))
        waiting = pool.submit(endpoint.select, QUERY)
        until(lambda: server.requests)
        usual = endpoint.settings
        endpoint.settings = usual.model_copy(update={"timeout_s": 0.2})
        with pytest.raises(KnowledgeGraphError, match="connections to it are busy"):
            endpoint.select(QUERY)
        gate.set()
        endpoint.settings = usual
        assert waiting.result()
        assert endpoint.select(QUERY)


def test_an_endpoint_that_fails_before_our_limit_counts_as_failing(clock: HandClock) -> None:
    with serving(reply(500)) as server:
        endpoint = Endpoint(server.url, settings(failures=1, per_second=1, deadline_s=0.5))
        with pytest.raises(KnowledgeGraphError, match="queries a second"):
            endpoint.select(QUERY)
        with pytest.raises(KnowledgeGraphError, match="failed 1 times in a row"):
            endpoint.select(QUERY)


def test_a_trial_call_without_a_turn_leaves_the_trial_to_the_next(clock: HandClock) -> None:
    breaker = CircuitBreaker(1, 5.0)
    breaker.failed()
    clock.now += 6.0
    assert breaker.closed_in() == 0
    breaker.skipped()
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


def test_what_is_remembered_grows_stale(clock: HandClock) -> None:
    cache: TimedCache[str, int] = TimedCache(2, 5.0)
    cache.put("a", 1)
    assert cache.get("a") == 1
    clock.now += 4.0
    assert cache.get("a") == 1
    clock.now += 2.0
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
