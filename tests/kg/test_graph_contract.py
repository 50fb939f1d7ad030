"""What every back end promises: in memory, on disk, and behind a SPARQL server."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from guardrail.core.errors import InputError
from kg import KnowledgeGraph, OxigraphGraph, PlaceIndex, SparqlGraph
from kg.base import holders
from kg.nodes import Memory

from .conftest import PAINTERS, BackEnd, Graph
from .test_endpoint import reply, serving, settings

ARTEMISIA, ORAZIO, ROME = "Q212657", "Q367360", "Q220"
HOSTILE = 'James "Jim" O\'Neil } . \\u0022 # x'

MIRROR = "wikidata-mirror"


@pytest.fixture
def graph(back_end: BackEnd) -> Graph:
    return back_end(PAINTERS, MIRROR)


def test_finds_by_label_and_alias_in_any_case_most_prominent_first(graph: Graph) -> None:
    found = graph.find(
        ["Artemisia  Gentileschi", "artemisia lomi", "Orazio Gentileschi", "nobody", "", "father"]
    )
    assert [[entity.id for entity in entities] for entities in found] == [
        [ARTEMISIA],
        [ARTEMISIA],
        [ORAZIO, "Q990001"],
        [],
        [],
        [],  # a property is no entity
    ]
    artemisia = found[0][0]
    assert artemisia.aliases == ("Artemisia Lomi",)
    assert artemisia.description == "Italian painter"
    assert artemisia.types == ("Q5",)
    assert artemisia.url == "https://www.wikidata.org/wiki/Q212657"


def test_a_hostile_name_is_only_a_name(graph: Graph) -> None:
    [found] = graph.find([HOSTILE])
    assert [entity.id for entity in found] == ["Q990002"]
    assert found[0].label == HOSTILE
    assert graph.find(['x" } #', "\\", "\x00\n\ud800", "Robert'); DROP ALL;--"]) == [[]] * 4


def test_entities_are_none_where_unknown(graph: Graph) -> None:
    rome, unknown, malformed, prop = graph.entities([ROME, "Q404", "> } DROP ALL", "P19"])
    assert rome is not None
    assert rome.label == "Rome"
    assert rome.types == ("Q747074", "Q515")  # its class, and the wider one that is a GPE
    assert (unknown, malformed, prop) == (None, None, None)


def test_one_hop_subgraph(graph: Graph) -> None:
    ids = [ARTEMISIA, "Q404", "a b\ud800>", "Q990001"]
    artemisia, unknown, malformed, other = graph.subgraphs(ids)
    assert [triple.text for triple in artemisia.triples] == [
        "Artemisia Gentileschi, date of birth: 1593-07-08.",
        "Artemisia Gentileschi, father: Orazio Gentileschi.",
        "Artemisia Gentileschi, instance of: human.",
        # A name in one language only is kept; of several, the readable one; no external ids.
        "Artemisia Gentileschi, name in native language: Artemisia Gentileschi.",
        "Artemisia Gentileschi, nickname: the painter.",
        "Artemisia Gentileschi, place of birth: Rome.",
    ]
    assert [triple.text for triple in artemisia.incoming] == [
        "Orazio Gentileschi, child: Artemisia Gentileschi."
    ]
    father = artemisia.triples[1]
    assert (father.subject_id, father.property_id, father.value_id) == (ARTEMISIA, "P22", ORAZIO)
    assert artemisia.triples[0].value_id is None
    assert unknown.triples == unknown.incoming == malformed.triples == ()
    assert unknown.entity.id == unknown.entity.label == "Q404"
    assert not artemisia.truncated
    # A birth on an unknown day is no fact.
    assert [triple.text for triple in other.triples] == ["Orazio Gentileschi, instance of: human."]


def test_subgraph_says_when_it_was_cut(graph: Graph) -> None:
    [human] = graph.subgraphs(["Q5"], limit=2)
    assert len(human.incoming) == 2
    assert human.truncated
    [artemisia] = graph.subgraphs([ARTEMISIA], limit=2)
    assert len(artemisia.triples) <= 2
    assert artemisia.truncated


def test_links_between_entities(graph: Graph) -> None:
    assert [triple.text for triple in graph.links([ORAZIO, ARTEMISIA, ROME, "Q404", "?"])] == [
        "Orazio Gentileschi, child: Artemisia Gentileschi.",
        "Artemisia Gentileschi, father: Orazio Gentileschi.",
        "Artemisia Gentileschi, place of birth: Rome.",
    ]
    assert graph.links([]) == graph.links([ROME]) == []
    assert isinstance(graph, KnowledgeGraph)
    assert graph.find([]) == graph.entities([]) == graph.subgraphs([]) == []


def test_queries_and_counts(graph: Graph) -> None:
    assert graph.query("ASK { ?s ?p ?o }").boolean is True
    result = graph.query(
        "SELECT ?name ?none WHERE { <http://www.wikidata.org/entity/Q84> "
        "<http://www.w3.org/2000/01/rdf-schema#label> ?name }"
    )
    assert result.variables == ("name", "none")
    [(name, nothing)] = result.rows
    assert (str(name), name.language if name else None, nothing) == ("London", "en", None)
    constructed = graph.query("CONSTRUCT { <urn:a> <urn:b> 1 } WHERE {}")
    assert [[str(term) for term in row] for row in constructed.rows] == [["urn:a", "urn:b", "1"]]
    stats = graph.stats()
    assert (stats.triples, stats.entities) == (57, 10)
    with pytest.raises(InputError):
        graph.query("SELECT nonsense")


def test_a_hub_is_read_in_part() -> None:
    """A city where 3,000 persons were born, and a town where 200 were."""
    places = ["city"] * 3_000 + ["town"] * 200
    links = (f"<urn:n{n}> <urn:in> <urn:{place}> ." for n, place in enumerate(places))
    city, town = OxigraphGraph.from_text("\n".join(links)).subgraphs(
        ["urn:city", "urn:town"], limit=200
    )
    assert (len(city.incoming), city.truncated, city.entity.prominence) == (25, True, 2_000)
    assert (len(town.incoming), town.truncated, town.entity.prominence) == (200, False, 200)


def test_a_look_up_costs_no_more_in_a_larger_graph() -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"

    def seconds(count: int) -> float:
        lines = (f'<urn:n{n}> {label} "n{n}" ; <urn:knows> <urn:n{n // 2}> .' for n in range(count))
        graph, times = OxigraphGraph.from_text("\n".join(lines)), []
        for _ in range(3):
            graph.refresh()
            started = time.process_time()
            graph.subgraphs([f"urn:n{n}" for n in range(100, 120)])
            times.append(time.process_time() - started)
        return min(times)

    assert seconds(60_000) < 4 * seconds(3_000)  # in which all neighbours have neighbours


NAMES_FOR_ALL = """
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix ex: <https://shop.example/> .
ex:fjell rdfs:label "Fjell Three"@mul ; ex:price 2490 .
ex:tarn rdfs:label "Tarn"@fr ; ex:price 990 .
ex:price rdfs:label "prix"@mul, "price"@en .
"""


def test_names_for_all_languages_are_read_behind_those_of_the_profile(back_end: BackEnd) -> None:
    graph = back_end(NAMES_FOR_ALL)
    [[fjell], others] = graph.find(["Fjell Three", "Tarn"])
    [subgraph] = graph.subgraphs([fjell.id])
    assert [(triple.property, triple.value) for triple in subgraph.triples] == [("price", "2490")]
    assert others == []


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


def test_the_places_that_hold_one_nearest_first(back_end: BackEnd) -> None:
    graph = back_end(PLACES, MIRROR)
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
    more_than_one_query = [f"Q{number}" for number in range(100, 125)]
    assert labels(graph, *more_than_one_query, "Q6") == [[]] * 25 + [["Paris"]]


def test_a_profile_without_containment_asks_nothing(tmp_path: Path) -> None:
    plain = tmp_path / "plain.toml"
    plain.write_text('extends = "wikidata"\nname = "plain"\nwithin = []\n')
    assert labels(OxigraphGraph.from_text(PLACES, profile=plain), "Q1") == [[]]
    with serving(reply(500)) as server:
        graph = SparqlGraph(server.url, profile=plain, settings=settings())
        assert labels(graph, "Q1", "Q2") == [[], []]
        assert server.requests == []


def test_the_way_up_is_bounded_and_ends_in_circles() -> None:
    assert holders("a", {"a": ["b"], "b": ["c", "a"], "c": ["a", "b"]}.__getitem__) == ["b", "c"]
    assert holders("0", lambda item: [str(int(item) + 1)]) == [str(step) for step in range(1, 9)]
    assert len(holders("x", lambda item: [f"{item}{number}" for number in range(9)])) == 30


def test_caches_are_bounded_by_the_size_of_what_they_hold() -> None:
    memory: Memory[int, str] = Memory(10, len)
    for key in range(4):
        memory[key] = "abc"
    assert memory == {3: "abc"}
    assert memory.known([2, 3, 2]) == ({3: "abc"}, [2])
