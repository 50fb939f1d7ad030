"""Values that are more than a literal, graphs with names, and files with faults."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat

from kg import OxigraphGraph, load_graph, open_graph

PREFIXES = """\
@prefix : <https://shop.example/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <http://schema.org/> .
@prefix qudt: <http://qudt.org/schema/qudt/> .
"""
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


def facts(text: str, format_: RdfFormat = RdfFormat.TURTLE) -> set[str]:
    graph = OxigraphGraph.from_text(PREFIXES + text, format=format_)
    [subgraph] = graph.subgraphs(["https://shop.example/F"])
    return {f"{triple.property}: {triple.value}" for triple in subgraph.triples}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (":weight [ rdf:value 21.5 ; qudt:unit 'kg' ]", {"weight: 21.5 kg"}),
        (":weight [ rdf:value 21.5 ; :year 2024 ]", {"weight: 21.5 (year: 2024)"}),
        (
            """schema:offers [ a schema:Offer ; schema:sku '7' ; schema:priceSpecification
            [ schema:price 2490 ; schema:priceCurrency 'EUR' ] ]""",
            {"offers sku: 7", "offers price specification price: 2490 EUR"},
        ),
        (":colours ('red' 'blue')", {"colours: red", "colours: blue"}),
        (
            ":colours [ a rdf:Bag ; rdf:_2 'red' ; rdf:_1 'blue' ]",
            {"colours: red", "colours: blue"},
        ),
        # Somebody with a name has facts that are not those of the bike.
        (":designer [ rdfs:label 'Ines' ; :born 1990 ]", {"designer: Ines (born: 1990)"}),
        (":empty []", set()),
        (":loop _:x . _:x :again _:x", set()),
    ],
)
def test_what_a_blank_node_holds_is_read(value: str, expected: set[str]) -> None:
    assert facts(f":F {value} .") == expected


def test_statements_of_wikidata_have_their_qualifiers() -> None:
    graph = OxigraphGraph.from_text("""\
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix s: <http://www.wikidata.org/entity/statement/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix p: <http://www.wikidata.org/prop/> .
@prefix ps: <http://www.wikidata.org/prop/statement/> .
@prefix pq: <http://www.wikidata.org/prop/qualifier/> .
@prefix wikibase: <http://wikiba.se/ontology#> .
wd:Q1 rdfs:label "Ines Falk"@en ; wdt:P39 wd:Q2 ; p:P39 s:a, s:b, s:c, s:d .
wd:Q2 rdfs:label "mayor"@en . wd:Q3 rdfs:label "head"@en .
wd:P39 rdfs:label "position held"@en . wd:P580 rdfs:label "start time"@en .
s:a ps:P39 wd:Q2 ; pq:P580 "2017" ; wikibase:rank wikibase:PreferredRank .
s:b ps:P39 wd:Q3 ; pq:P580 "2011" .
s:c ps:P39 wd:Q3 ; pq:P580 "1911" ; wikibase:rank wikibase:DeprecatedRank .
s:d ps:P39 wd:Q2 .
""")
    [subgraph] = graph.subgraphs(["Q1"])
    assert [(triple.property, triple.value, triple.value_id) for triple in subgraph.triples] == [
        ("position held", "head (start time: 2011)", None),
        ("position held", "mayor", "Q2"),
        ("position held", "mayor (start time: 2017)", None),
    ]


TRIG = """\
:price rdfs:label "price" .
:g1 { :F rdfs:label "Fjell Three" ; :price "2,490 euros" . }
:g2 { :F :price "2,490 euros" ; :range "110 km" . }
"""


def test_named_graphs_are_read_as_one() -> None:
    assert facts(TRIG, RdfFormat.TRIG) == {"price: 2,490 euros", "range: 110 km"}
    graph = OxigraphGraph.from_text(PREFIXES + TRIG, format=RdfFormat.TRIG)
    assert [entity.label for [entity] in graph.find(["fjell three"])] == ["Fjell Three"]
    assert graph.stats().entities == 1
    assert len(graph.query("SELECT DISTINCT ?v { ?s <https://shop.example/price> ?v }").rows) == 1
    named = "SELECT ?s { GRAPH <https://shop.example/g2> { ?s ?p ?o } }"
    assert len(graph.query(named).rows) == 2


def test_names_of_a_loaded_named_graph_are_found(tmp_path: Path) -> None:
    source = tmp_path / "a.nq"
    source.write_text(f'<urn:f> {LABEL} "Fjell Three" <urn:g> .\n<urn:f> <urn:w> "21" <urn:g> .\n')
    load_graph(source, tmp_path / "g")
    graph = open_graph(tmp_path / "g")
    assert [mention.text for mention in graph.spot("The Fjell Three is new.")] == ["Fjell Three"]
    assert [triple.value for triple in graph.subgraphs(["urn:f"])[0].triples] == ["21"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path, packed: bool) -> None:
    data = ("\ufeff" + PREFIXES + ':F :price "2" .').encode()
    source = tmp_path / ("a.ttl.gz" if packed else "a.ttl")
    source.write_bytes(gzip.compress(data) if packed else data)
    assert open_graph(source).subgraphs(["https://shop.example/F"])[0].triples
    assert facts("") == set()
    assert OxigraphGraph.from_text("\ufeff<urn:a> <urn:b> <urn:c> .").stats().triples == 1
