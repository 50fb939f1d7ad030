"""A real SPARQL server, and one small graph in Wikidata's form for all back ends."""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kg import EndpointSettings, OxigraphGraph, SparqlGraph, load_graph, open_graph
from tests.clock import PATIENCE_S, until
from tests.ports import free_port

Graph = OxigraphGraph | SparqlGraph
BackEnd = Callable[..., Graph]

PAINTERS = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix schema: <http://schema.org/> .
@prefix wikibase: <http://wikiba.se/ontology#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .

wd:Q212657 rdfs:label "Artemisia Gentileschi"@en, "Artemisia Gentileschi"@it ;
    skos:altLabel "Artemisia Lomi"@en, "Die Gentileschi"@de ;
    schema:description "Italian painter"@en, "pittrice italiana"@it ;
    wdt:P31 wd:Q5 ;
    wdt:P22 wd:Q367360 ;
    wdt:P19 wd:Q220 ;
    wdt:P569 "1593-07-08T00:00:00Z"^^xsd:dateTime ;
    wdt:P1559 "Artemisia Gentileschi"@it ;
    wdt:P1449 "the painter"@en, "la pittrice"@it ;
    wdt:P214 "44308150" .
wd:Q367360 rdfs:label "Orazio Gentileschi"@en ; wdt:P31 wd:Q5 ; wdt:P40 wd:Q212657 ;
    wdt:P20 wd:Q84 ; wdt:P569 "1563-07-09"^^xsd:date .
wd:Q990001 rdfs:label "Orazio Gentileschi"@en ; wdt:P31 wd:Q5 ;
    wdt:P569 <http://www.wikidata.org/.well-known/genid/ab12> .
wd:Q990002
    rdfs:label "James \\"Jim\\" O'Neil } . \\\\u0022 # x"@en ; wdt:P31 wd:Q5 ; wdt:P19 wd:Q84 .
wd:Q5 rdfs:label "human"@en .
wd:Q220 rdfs:label "Rome"@en, "Roma"@it ; wdt:P31 wd:Q747074 .
wd:Q84 rdfs:label "London"@en ; wdt:P31 wd:Q515 .
wd:Q747074 rdfs:label "comune of Italy"@en ; wdt:P279 wd:Q990010 .
wd:Q990010 rdfs:label "municipality"@en ; wdt:P279 wd:Q515 .
wd:Q515 rdfs:label "city"@en .

wd:P19 wikibase:directClaim wdt:P19 ; rdfs:label "place of birth"@en .
wd:P20 wikibase:directClaim wdt:P20 ; rdfs:label "place of death"@en .
wd:P22 wikibase:directClaim wdt:P22 ; rdfs:label "father"@en .
wd:P31 wikibase:directClaim wdt:P31 ; rdfs:label "instance of"@en .
wd:P40 wikibase:directClaim wdt:P40 ; rdfs:label "child"@en .
wd:P279 wikibase:directClaim wdt:P279 ; rdfs:label "subclass of"@en .
wd:P569 wikibase:directClaim wdt:P569 ; rdfs:label "date of birth"@en .
wd:P1449 wikibase:directClaim wdt:P1449 ; rdfs:label "nickname"@en .
wd:P1559 wikibase:directClaim wdt:P1559 ; rdfs:label "name in native language"@en .
wd:P214 wikibase:directClaim wdt:P214 ; wikibase:propertyType wikibase:ExternalId ;
    rdfs:label "VIAF cluster ID"@en .
"""


class SparqlServer:
    """The ``oxigraph`` server, in memory, on a free port of this machine."""

    def __init__(self) -> None:
        binary = shutil.which("oxigraph", path=str(Path(sys.executable).parent))
        binary = binary or shutil.which("oxigraph")
        assert binary, "the oxigraph package of the dev extra is not installed"
        self.address = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            [binary, "serve", "--bind", self.address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.query_url = f"http://{self.address}/query"
        until(self._answers)

    def _answers(self) -> bool:
        assert self.process.poll() is None, "the server did not start"
        try:
            self.put("", "text/turtle")
        except urllib.error.URLError:
            return False
        return True

    def put(self, rdf: str, media_type: str = "text/turtle") -> None:
        """Replace the default graph."""
        request = urllib.request.Request(
            f"http://{self.address}/store?default",
            data=rdf.encode(),
            headers={"Content-Type": media_type},
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S):
            pass

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)


@pytest.fixture(scope="session")
def _server() -> Iterator[SparqlServer]:
    server = SparqlServer()
    yield server
    server.stop()


@pytest.fixture
def sparql_server(_server: SparqlServer) -> SparqlServer:
    """A running server whose default graph is empty."""
    _server.put("")
    return _server


@pytest.fixture(params=["memory", "disk", "sparql"])
def back_end(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BackEnd]:
    """Opens a graph of Turtle text, with a profile: in memory, on disk, and behind a server."""
    opened: list[Graph] = []

    def make(turtle: str, profile: str | None = None) -> Graph:
        if request.param == "memory":
            opened.append(OxigraphGraph.from_text(turtle))
        elif request.param == "disk":
            (tmp_path / "graph.ttl").write_text(turtle, encoding="utf-8")
            load_graph(tmp_path / "graph.ttl", tmp_path / "graph")
            opened.append(open_graph(tmp_path / "graph"))
        else:
            server: SparqlServer = request.getfixturevalue("sparql_server")
            server.put(turtle)
            settings = EndpointSettings(cache=tmp_path / "cache.sqlite")
            opened.append(SparqlGraph(server.query_url, profile=profile, settings=settings))
        return opened[-1]

    yield make
    for graph in opened:
        graph.close()
