"""Several graphs as one."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from guardrail.cli import app
from kg import FederatedGraph, OxigraphGraph
from kg.base import KnowledgeGraph, MentionIndex, PlaceIndex

from .conftest import PAINTERS

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

    other = OxigraphGraph.from_text(SHOP + ":Fell rdfs:label 'Fell' .")
    [subgraph] = FederatedGraph([other, names]).subgraphs([tarn])
    assert subgraph.entity.label == "Tarn City"  # the graph that does not know it gives no name


def test_commands_on_several_graphs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.nt").write_text(f"<urn:{name}> <urn:p> <urn:{name}> .\n")
    both = f"{tmp_path / 'a.nt'} + {tmp_path / 'b.nt'}"
    done = CliRunner().invoke(app, ["kg", "stats", "--kg", both, "--json"], catch_exceptions=False)
    counts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(count["name"], count["triples"]) for count in counts] == [("a.nt", 1), ("b.nt", 1)]
    done = CliRunner().invoke(app, ["kg", "query", "ASK {}", "--kg", both])
    assert "is several graphs" in str(done.exception)


def test_two_halves_are_one_graph() -> None:
    """The second half knows the facts of scholarly articles, the first the names of persons."""
    second = f"""{PAINTERS[: PAINTERS.index("wd:Q212657")]}
    wd:Q1000 rdfs:label "On Light"@en ; wdt:P50 wd:Q212657 ; wdt:P31 wd:Q13442814 .
    wd:P50 wikibase:directClaim wdt:P50 ; rdfs:label "author"@en .
    """
    halves = [OxigraphGraph.from_text(text, profile="wikidata") for text in (PAINTERS, second)]
    graph = FederatedGraph(halves)
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
