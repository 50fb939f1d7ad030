"""What each SPARQL server is told, and how it is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import httpx
import pyoxigraph
import pytest

from guardrail.core.errors import ConfigError, KnowledgeGraphError
from kg import SparqlGraph, load_profile
from kg.dialects import DIALECTS, dialect_of
from kg.endpoint import Endpoint
from kg.sparql_request import build_request
from kg.sparql_text import QueryWriter

from .conftest import PAINTERS, SparqlServer
from .test_endpoint import QUERY, Reply, reply, serving, settings

JSON = "application/sparql-results+json"


def request(
    dialect: str, *, url: str = "https://x.example/sparql", **options: Any
) -> httpx.Request:
    usual: dict[str, Any] = {"method": "POST", "timeout_s": 29.7, "agent": "me/1 (me@x.example)"}
    with httpx.Client() as client:
        return build_request(client, url, QUERY, dialect=DIALECTS[dialect], **usual | options)


def sent(request: httpx.Request) -> dict[str, list[str]]:
    """The parameters of a request, wherever they stand."""
    return parse_qs(urlsplit(str(request.url)).query) | parse_qs(request.content.decode())


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
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_the_server_is_told_the_time_limit(
    dialect: str,
    parameters: dict[str, list[str]],
    header: str | None,
    method: Literal["POST", "GET"],
) -> None:
    built = request(dialect, method=method)
    assert built.method == method
    assert sent(built) == {"query": [QUERY], **parameters}
    assert built.headers.get("X-BIGDATA-MAX-QUERY-MILLIS") == header
    assert built.headers["User-Agent"] == "me/1 (me@x.example)"


def test_virtuoso_takes_no_limit_below_a_second() -> None:
    assert sent(request("virtuoso", timeout_s=0.2))["timeout"] == ["1000"]


def test_which_formats_are_asked_for() -> None:
    assert request("standard").headers["Accept"].split(",")[0] == JSON
    assert "text/turtle" in request("standard", graph=True).headers["Accept"]
    assert request("blazegraph").headers["Accept"] == JSON
    assert request("blazegraph", graph=True).headers["Accept"] == "application/x-turtle"


def test_parameters_of_the_address_stay() -> None:
    url = "https://x.example/sparql?default-graph-uri=http%3A%2F%2Fg"
    for method in ("POST", "GET"):
        parameters = sent(request("virtuoso", url=url, method=method))
        assert parameters["default-graph-uri"] == ["http://g"]
        assert parameters["query"] == [QUERY]


@pytest.mark.parametrize(
    ("url", "named", "dialect"),
    [
        ("https://query.wikidata.org/sparql", (None, None), "blazegraph"),
        ("https://qlever.cs.uni-freiburg.de/api/wikidata", (None, "blazegraph"), "qlever"),
        ("http://localhost:7200/repositories/museum", (None, None), "graphdb"),
        ("http://localhost:9999/blazegraph/namespace/kb/sparql", (None, None), "blazegraph"),
        ("http://localhost:8890/sparql", (None, None), "standard"),
        ("http://localhost:8890/sparql", (None, "virtuoso"), "virtuoso"),
        ("http://localhost:7200/repositories/museum", ("standard", "virtuoso"), "standard"),
    ],
)
def test_who_says_what_the_server_is(
    url: str, named: tuple[str | None, str | None], dialect: str
) -> None:
    assert dialect_of(url, *named).name == dialect


def test_a_profile_and_settings_name_the_dialect(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('extends = "rdfs"\nname = "own"\ndialect = "graphdb"\n')
    sparql = "http://localhost:1/sparql"
    assert Endpoint(sparql, settings(), dialect=load_profile(own).dialect).dialect.name == "graphdb"
    with pytest.raises(ConfigError, match="no SPARQL dialect 'oracle'"):
        SparqlGraph(sparql, settings=settings(dialect="oracle"))


def test_the_label_service_is_asked_where_it_is() -> None:
    wikidata = load_profile("wikidata")
    iris = ["http://www.wikidata.org/entity/Q7259"]
    for name, dialect in DIALECTS.items():
        query = QueryWriter(wikidata, dialect).labels(iris)
        assert ("wikiba.se/ontology#label" in query) is (name == "blazegraph")


def test_languages_by_index_where_there_is_one() -> None:
    profile = load_profile("rdfs")
    by_range = QueryWriter(profile).labels(["urn:a"])
    by_tag = QueryWriter(profile, DIALECTS["qlever"]).labels(["urn:a"])
    assert 'LANGMATCHES(LANG(?nLabel), "en")' in by_range
    assert 'LANG(?nLabel) = "" || LANG(?nLabel) = "en"' in by_tag
    assert "LANGMATCHES" not in by_tag
    store = pyoxigraph.Store()
    label = pyoxigraph.NamedNode(profile.label[0])
    for text in (("Ada", "en"), ("Ada", "de")):
        value = pyoxigraph.Literal(text[0], language=text[1])
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
def test_names_by_the_servers_index_of_texts(dialect: str, pattern: str) -> None:
    profile = load_profile("rdfs")
    exact = QueryWriter(profile, DIALECTS[dialect]).find(["jim O'Neil", "…"])
    assert "UNION" not in exact
    query = QueryWriter(profile, DIALECTS[dialect], text_search=True).find(["jim o'neil", "…"])
    assert pattern in query
    assert 'LCASE(STR(?l)) = "jim o\'neil"' in query
    assert query.count("UNION") == 1  # no word is in the second name
    list(pyoxigraph.Store().query(query))  # type: ignore[arg-type]
    standard = QueryWriter(profile, text_search=True).find(["jim o'neil"])
    assert "UNION" not in standard


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_a_server_that_knows_no_dialect_understands_all(
    dialect: str, sparql_server: SparqlServer
) -> None:
    sparql_server.put(PAINTERS)
    graph = SparqlGraph(
        sparql_server.query_url, profile="wikidata-mirror", settings=settings(dialect=dialect)
    )
    [[painter]] = graph.find(["Artemisia Gentileschi"])
    assert painter.label == "Artemisia Gentileschi"
    [subgraph] = graph.subgraphs([painter.id])
    assert "Artemisia Gentileschi, place of birth: Rome." in [t.text for t in subgraph.triples]
    assert graph.query("PREFIX : <urn:address> ASK { ?s ?p ?o }").boolean
    assert graph.query("CONSTRUCT WHERE { ?s ?p ?o }").rows
    graph.close()


@pytest.mark.parametrize(
    ("answer", "message", "requests"),
    [
        (reply(206, X_SQL_State="S1TAT"), "time limit cut the answer short; tried 3 times", 3),
        (reply(200, X_SQL_State="S1TAT"), "time limit cut the answer short; tried 3 times", 3),
        (reply(206), "lower batch", 1),
    ],
)
def test_a_part_of_an_answer_is_none(
    answer: Reply, message: str, requests: int, tmp_path: Path
) -> None:
    with serving(answer) as server:
        endpoint = Endpoint(server.url, settings(cache=tmp_path / "cache.sqlite"))
        with pytest.raises(KnowledgeGraphError, match=message):
            endpoint.select(QUERY)
        assert len(server.requests) == requests


def test_local_graphs_load_no_http() -> None:
    program = (
        "import sys\nfrom kg import open_graph\nopen_graph().find(['Mary Shelley'])\n"
        "print([name for name in ('SPARQLWrapper', 'rdflib', 'httpx') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.strip() == "[]", out.stderr
