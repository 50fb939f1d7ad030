"""What every back end promises: in memory, on disk, and behind a SPARQL server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from guardrail.core.errors import InputError
from kg import (
    EndpointSettings,
    KnowledgeGraph,
    OxigraphGraph,
    SparqlGraph,
    load_graph,
    open_graph,
)

from .conftest import PAINTERS, SparqlServer

ARTEMISIA, ORAZIO, ROME = "Q212657", "Q367360", "Q220"
HOSTILE = 'James "Jim" O\'Neil } . \\u0022 # x'

Graph = OxigraphGraph | SparqlGraph


@pytest.fixture(params=["memory", "disk", "sparql"])
def graph(request: pytest.FixtureRequest, painters_file: Path, tmp_path: Path) -> Iterator[Graph]:
    made: Graph
    if request.param == "memory":
        made = OxigraphGraph.from_text(PAINTERS)
    elif request.param == "disk":
        load_graph(painters_file, tmp_path / "graph")
        opened = open_graph(tmp_path / "graph")
        assert isinstance(opened, OxigraphGraph)
        made = opened
    else:
        server: SparqlServer = request.getfixturevalue("sparql_server")
        server.put(PAINTERS)
        settings = EndpointSettings(cache=tmp_path / "cache.sqlite")
        made = SparqlGraph(server.query_url, profile="wikidata-mirror", settings=settings)
    yield made
    made.close()


def test_is_a_knowledge_graph(graph: Graph) -> None:
    assert isinstance(graph, KnowledgeGraph)


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
    artemisia, unknown, malformed = graph.subgraphs([ARTEMISIA, "Q404", "a b\ud800>"])
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


def test_an_unknown_value_is_no_fact(graph: Graph) -> None:
    [other] = graph.subgraphs(["Q990001"])
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


def test_empty_batches(graph: Graph) -> None:
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


NAMES_FOR_ALL = """
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix ex: <https://shop.example/> .
ex:fjell rdfs:label "Fjell Three"@mul ; ex:price 2490 .
ex:tarn rdfs:label "Tarn"@fr ; ex:price 990 .
ex:price rdfs:label "prix"@mul, "price"@en .
"""


@pytest.mark.parametrize("back_end", ["memory", "disk", "sparql"])
def test_names_for_all_languages_are_read_behind_those_of_the_profile(
    back_end: str, tmp_path: Path, sparql_server: SparqlServer
) -> None:
    file = tmp_path / "shop.ttl"
    file.write_text(NAMES_FOR_ALL)
    sparql_server.put(NAMES_FOR_ALL)
    if back_end == "disk":
        load_graph(file, tmp_path / "graph")
    place = {"memory": file, "disk": tmp_path / "graph", "sparql": sparql_server.query_url}
    graph = open_graph(place[back_end], settings=EndpointSettings(cache=None))
    [[fjell], others] = graph.find(["Fjell Three", "Tarn"])
    [subgraph] = graph.subgraphs([fjell.id])
    assert [(triple.property, triple.value) for triple in subgraph.triples] == [("price", "2490")]
    assert others == []
    graph.close()
