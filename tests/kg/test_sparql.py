"""Graphs at endpoints: few round trips, and the dialects of servers."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

import pyoxigraph
import pytest

from guardrail import Guardrail, GuardrailConfig
from guardrail.core.errors import ConfigError
from kg import SparqlGraph, endpoint, load_profile, open_graph
from kg.endpoint import Endpoint
from kg.queries import DIALECTS, NAMESAKES, QueryWriter, dialect_of

from .conftest import PAINTERS, SparqlServer
from .test_endpoint import QUERY, SPARQL_JSON, Server, reply, serving, settings


@pytest.fixture
def far(sparql_server: SparqlServer) -> Iterator[Server]:
    """Passes queries on to a SPARQL server, and counts them."""
    sparql_server.put(PAINTERS)

    def forward(handler: BaseHTTPRequestHandler) -> None:
        body = server.requests[-1].encode()
        headers = {name: handler.headers[name] for name in ("Content-Type", "Accept")}
        request = urllib.request.Request(sparql_server.query_url, body, headers)
        with urllib.request.urlopen(request) as response:
            reply(200, response.read())(handler)

    with serving(forward) as server:
        yield server


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of queries sent together, each time that the graph waited for an answer."""
    trips: list[int] = []
    together = Endpoint.select_all

    def select_all(self: Endpoint, queries: Sequence[str]) -> object:
        if queries:
            trips.append(len(queries))
        return together(self, queries)

    monkeypatch.setattr(Endpoint, "select_all", select_all)
    return trips


def test_four_entities_take_three_round_trips(far, round_trips):
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
    assert max(round_trips) <= endpoint.CONNECTIONS
    sent = len(far.requests)
    guard.check(question="Who was Artemisia Gentileschi?", answer="She was born in Rome.")
    assert len(far.requests) == sent  # everything is cached
    assert len(far.connections) <= endpoint.CONNECTIONS
    graph.close()


def test_a_batch_is_few_queries(far):
    graph = SparqlGraph(far.url, profile="wikidata-mirror", settings=settings())
    found = graph.find([f"Person {n}" for n in range(30)] + ["Rome", "London"])
    assert [len(entities) for entities in found[-2:]] == [1, 1]
    assert len(far.requests) == 4  # the bearers; what is known of them, facts, wider places
    graph.subgraphs(["Q212657", "Q367360", "Q220"])
    assert len(far.requests) == 7  # entities and facts of those that are new, labels
    graph.subgraphs(["Q212657", "Q367360", "Q220"])
    graph.find(["rome", "Rome", "Person 3"])
    assert len(far.requests) == 8  # "rome", whose bearer is known


def test_a_common_name_does_not_crowd_out_the_others(sparql_server):
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    smiths = [f'<urn:smith:{n:03}> {label} "John Smith" .' for n in range(3 * NAMESAKES)]
    sparql_server.put("\n".join([*smiths, f'<urn:ada> {label} "Ada Lovelace" .']))
    graph = SparqlGraph(sparql_server.query_url, profile="rdfs", settings=settings())
    ada, john = graph.find(["Ada Lovelace", "John Smith"])
    assert [entity.id for entity in ada] == ["urn:ada"]
    assert len(john) == NAMESAKES


def test_wikidata_is_queried_through_its_label_service():
    graph = open_graph("https://query.wikidata.org/sparql")
    assert isinstance(graph, SparqlGraph)
    query = graph.queries.labels(["http://www.wikidata.org/entity/Q7259"])
    assert "SERVICE <http://wikiba.se/ontology#label>" in query
    assert '"en,mul"' in query
    # The query is SPARQL: an empty store parses it, and fails only at the remote service.
    with pytest.raises((OSError, RuntimeError, ValueError)) as failure:
        list(pyoxigraph.Store().query(query))  # type: ignore[arg-type]
    assert not isinstance(failure.value, SyntaxError)


@pytest.mark.parametrize(
    ("dialect", "parameters", "header"),
    [
        ("standard", {}, None),
        ("qlever", {}, None),
        ("virtuoso", {"timeout": ["29700"]}, None),
        ("blazegraph", {}, "29700"),
        ("graphdb", {"timeout": ["30"]}, None),
    ],
)
def test_requests_have_the_time_limit_and_types_of_the_dialect(dialect, parameters, header):
    with serving(reply()) as server:
        chosen = settings(deadline_s=89.1, user_agent="me/1 (me@x.example)")
        url = f"{server.url}?default-graph-uri=http%3A%2F%2Fg"
        Endpoint(url, chosen, dialect=dialect).select(QUERY)
    assert server.paths == ["/sparql?default-graph-uri=http%3A%2F%2Fg"]
    [sent], [headers] = server.requests, server.headers
    assert parse_qs(sent) == {"query": [QUERY], **parameters}
    assert headers["X-BIGDATA-MAX-QUERY-MILLIS"] == header
    assert headers["User-Agent"] == "me/1 (me@x.example)"
    assert headers["Accept"].split(",")[0] == SPARQL_JSON
    assert DIALECTS["virtuoso"].units(0.2) == "1000"  # no limit below a second


@pytest.mark.parametrize(
    ("url", "profiled", "dialect"),
    [
        ("https://query.wikidata.org/sparql", None, "blazegraph"),
        ("https://qlever.cs.uni-freiburg.de/api/wikidata", "blazegraph", "qlever"),
        ("http://localhost:7200/repositories/museum", None, "graphdb"),
        ("http://localhost:9999/blazegraph/namespace/kb/sparql", None, "blazegraph"),
        ("http://localhost:8890/sparql", None, "standard"),
        ("http://localhost:8890/sparql", "virtuoso", "virtuoso"),
    ],
)
def test_address_and_profile_choose_the_dialect(url, profiled, dialect):
    assert dialect_of(url, profiled).name == dialect
    with pytest.raises(ConfigError, match="no SPARQL dialect 'oracle'"):
        Endpoint("http://localhost:1/sparql", settings(), dialect="oracle")


def test_languages_by_index_where_there_is_one():
    profile = load_profile("rdfs")
    by_range = QueryWriter(profile).labels(["urn:a"])
    by_tag = QueryWriter(profile, DIALECTS["qlever"]).labels(["urn:a"])
    assert 'LANGMATCHES(LANG(?nLabel), "en")' in by_range
    assert "LANGMATCHES" not in by_tag
    store = pyoxigraph.Store()
    label = pyoxigraph.NamedNode(profile.label[0])
    for language in ("en", "de"):
        value = pyoxigraph.Literal("Ada", language=language)
        store.add(pyoxigraph.Quad(pyoxigraph.NamedNode("urn:a"), label, value))
    for query in (by_range, by_tag):
        assert len(list(store.query(query))) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dialect", "pattern"),
    [
        ("qlever", 'contains-word> "jim o neil"'),
        ("virtuoso", "?l <bif:contains> \"'jim' AND 'o' AND 'neil'\""),
        ("blazegraph", '?l <http://www.bigdata.com/rdf/search#search> "jim o neil"'),
        ("graphdb", '?l <http://www.ontotext.com/fts> ("jim AND o AND neil" "*")'),
    ],
)
def test_names_by_the_servers_text_index(dialect, pattern):
    profile = load_profile("rdfs")
    assert "UNION" not in QueryWriter(profile, DIALECTS[dialect]).find(["jim O'Neil", "…"])
    profile = profile.model_copy(update={"text_search": True})
    query = QueryWriter(profile, DIALECTS[dialect]).find(["jim o'neil", "…"])
    assert pattern in query
    assert 'LCASE(STR(?l)) = "jim o\'neil"' in query
    assert query.count("UNION") == 1  # no word is in the second name
    list(pyoxigraph.Store().query(query))  # type: ignore[arg-type]


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_a_server_that_knows_no_dialect_understands_all(dialect, sparql_server):
    sparql_server.put(PAINTERS)
    profile = load_profile("wikidata-mirror").model_copy(update={"dialect": dialect})
    graph = SparqlGraph(sparql_server.query_url, profile=profile, settings=settings())
    [[painter]] = graph.find(["Artemisia Gentileschi"])
    assert painter.label == "Artemisia Gentileschi"
    [subgraph] = graph.subgraphs([painter.id])
    assert "Artemisia Gentileschi, place of birth: Rome." in [t.text for t in subgraph.triples]
    assert graph.query("PREFIX : <urn:address> ASK { ?s ?p ?o }").boolean
    assert graph.query("CONSTRUCT WHERE { ?s ?p ?o }").rows
    graph.close()
