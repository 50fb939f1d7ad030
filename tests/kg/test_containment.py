"""Places within places: what every back end knows of them, and how far up it looks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from guardrail.core.errors import KnowledgeGraphError
from kg import OxigraphGraph, PlaceIndex, SparqlGraph, load_graph, load_profile, open_graph
from kg.base import MOST, STEPS, holders
from kg.opening import EndpointSettings

from .conftest import SparqlServer
from .test_endpoint import reply, serving, settings

PLACES = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .

wd:Q1 rdfs:label "Somers Town"@en ; wdt:P131 wd:Q2 ; wdt:P17 wd:Q5 ; wdt:P31 wd:Q9 .
wd:Q2 rdfs:label "London Borough of Camden"@en ; skos:altLabel "Camden"@en ; wdt:P131 wd:Q3 .
wd:Q3 rdfs:label "London"@en ; wdt:P131 wd:Q4 .
wd:Q4 rdfs:label "England"@en ; wdt:P131 wd:Q5 .
wd:Q5 rdfs:label "United Kingdom"@en ; skos:altLabel "UK"@en ; wdt:P17 wd:Q5 ; wdt:P131 "east" .
wd:Q6 rdfs:label "Louvre"@en ; wdt:P276 wd:Q7 .
wd:Q7 rdfs:label "Paris"@en .
wd:Q9 rdfs:label "quarter"@en ; wdt:P131 wd:Q7 .
"""
UPWARDS = ["London Borough of Camden", "United Kingdom", "London", "England"]


def labels(graph: PlaceIndex, *ids: str) -> list[list[str]]:
    return [[place.label for place in places] for places in graph.wider(ids)]


@pytest.fixture(params=["memory", "disk", "sparql"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OxigraphGraph | SparqlGraph]:
    made: OxigraphGraph | SparqlGraph
    if request.param == "memory":
        made = OxigraphGraph.from_text(PLACES)
    elif request.param == "disk":
        (tmp_path / "places.ttl").write_text(PLACES)
        load_graph(tmp_path / "places.ttl", tmp_path / "graph")
        made = open_graph(tmp_path / "graph")
    else:
        server: SparqlServer = request.getfixturevalue("sparql_server")
        server.put(PLACES)
        made = SparqlGraph(server.query_url, profile="wikidata-mirror", settings=settings())
    yield made
    made.close()


def test_the_places_that_hold_one_nearest_first(graph: OxigraphGraph | SparqlGraph) -> None:
    assert isinstance(graph, PlaceIndex)
    assert labels(graph, "Q1", "Q6", "Q7", "Q404", "> } x", "Q5", "Q1") == [
        UPWARDS,
        ["Paris"],
        [],
        [],
        [],
        [],  # its own country, which is no wider place
        UPWARDS,
    ]
    assert graph.wider(["Q1"])[0][0].aliases == ("Camden",)
    assert graph.wider([]) == []


def test_more_places_than_go_into_one_query(graph: OxigraphGraph | SparqlGraph) -> None:
    many = [f"Q{number}" for number in range(100, 125)]
    assert labels(graph, *many, "Q6") == [[]] * 25 + [["Paris"]]


def test_a_profile_without_containment_asks_nothing(tmp_path: Path) -> None:
    plain = tmp_path / "plain.toml"
    plain.write_text('extends = "wikidata"\nname = "plain"\nwithin = []\n')
    assert labels(OxigraphGraph.from_text(PLACES, profile=plain), "Q1") == [[]]
    with serving(reply(500)) as server:
        graph = SparqlGraph(server.url, profile=plain, settings=settings())
        assert labels(graph, "Q1", "Q2") == [[], []]
        assert server.requests == []


def test_a_users_profile_names_its_own_predicates(tmp_path: Path) -> None:
    file = tmp_path / "museum.toml"
    file.write_text(
        'extends = "rdfs"\nname = "museum"\nwithin = ["m:inside"]\n'
        '[prefixes]\nm = "https://museum.example/terms/"\n'
    )
    turtle = """
    @prefix m: <https://museum.example/terms/> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    <urn:room> rdfs:label "Room 4" ; m:inside <urn:wing> .
    <urn:wing> rdfs:label "West Wing" .
    """
    assert labels(OxigraphGraph.from_text(turtle, profile=file), "urn:room") == [["West Wing"]]
    assert labels(OxigraphGraph.from_text(turtle, profile="rdfs"), "urn:room") == [[]]


@pytest.mark.parametrize("name", ["wikidata", "wikidata-mirror", "dbpedia", "rdfs"])
def test_shipped_profiles_know_containment(name: str) -> None:
    assert all(item.startswith(("http://", "https://")) for item in load_profile(name).within)
    assert load_profile(name).within


def test_an_endpoint_that_fails_says_so() -> None:
    with serving(reply(503)) as server:
        graph = SparqlGraph(server.url, profile="wikidata", settings=settings(deadline_s=0.3))
        with pytest.raises(KnowledgeGraphError, match="503"):
            graph.wider(["Q1"])


def test_results_are_cached(sparql_server: SparqlServer, tmp_path: Path) -> None:
    kept = EndpointSettings(cache=tmp_path / "cache.sqlite")
    for turtle in (PLACES, ""):  # the second graph asks a server that has forgotten everything
        sparql_server.put(turtle)
        graph = SparqlGraph(sparql_server.query_url, profile="wikidata-mirror", settings=kept)
        assert labels(graph, "Q1") == [UPWARDS]
        graph.close()


def test_the_way_up_is_bounded_and_ends_in_circles() -> None:
    assert holders("a", {"a": ["b"], "b": ["c", "a"], "c": ["a", "b"]}.__getitem__) == ["b", "c"]
    assert holders("0", lambda item: [str(int(item) + 1)]) == [
        str(step) for step in range(1, STEPS + 1)
    ]
    assert len(holders("x", lambda item: [f"{item}{number}" for number in range(9)])) == MOST
