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

PAINTERS = Path(__file__).with_name("painters.ttl").read_text("utf-8")


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
