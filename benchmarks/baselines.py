"""What the bench compares with: rdflib, an endpoint with and without a cache, one call a pair."""

from __future__ import annotations

import gzip
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

from guardrail.core.errors import KnowledgeGraphError

__all__ = ["pair_by_pair", "rdflib_look_ups", "sparql_look_ups"]

_LIMIT: Final = 200
_START_S: Final = 30.0


def rdflib_look_ups(source: Path, names: Sequence[str]) -> tuple[float, ...]:
    """Find each name by its exact label and read one hop, each way, with labels; milliseconds.

    Args:
        source: Gzipped N-Triples, which rdflib holds in memory.
        names: English labels.
    """
    from rdflib import RDFS, Graph, Literal

    graph = Graph()
    with gzip.open(source) as file:
        graph.parse(cast("IO[bytes]", file), format="nt")
    times = []
    for name in names:
        started = time.perf_counter()
        [node] = graph.subjects(RDFS.label, Literal(name, lang="en"))
        around = {value for _, _, value in graph.triples((node, None, None))}
        around |= {subject for subject, _, _ in graph.triples((None, None, node))}
        for item in around:
            graph.value(item, RDFS.label)
        times.append(_ms(started))
    return tuple(times)


def sparql_look_ups(graph: Path, names: Sequence[str], *, cached: bool) -> tuple[float, ...]:
    """Find each name and read one hop from the ``oxigraph`` server on this machine; milliseconds.

    Args:
        graph: Directory of the graph that it serves.
        names: Names.
        cached: Whether another process has asked the same before and its answers were kept.
    """
    from kg import SparqlGraph
    from kg.opening import EndpointSettings

    with _serving(graph) as url, tempfile.TemporaryDirectory() as folder:
        settings = EndpointSettings(cache=Path(folder) / "cache.sqlite" if cached else None)
        times: list[float] = []
        for _ in range(2 if cached else 1):
            # Made anew, so that nothing is remembered but what the cache holds.
            remote = SparqlGraph(url, profile="wikidata-mirror", settings=settings)
            times = []
            for name in names:
                started = time.perf_counter()
                [[entity]] = remote.find([name])
                remote.subgraphs([entity.id], limit=_LIMIT)
                times.append(_ms(started))
            remote.close()
    return tuple(times)


def pair_by_pair(
    graph: Path, answers: Sequence[tuple[str, Sequence[str]]], judge: str | None
) -> tuple[float, ...]:
    """Judge each sentence by each fact round the person, one call a pair; milliseconds an answer.

    Args:
        graph: Directory of the graph.
        answers: Persons, and the sentences about them.
        judge: The judge; None for the shipped one.
    """
    from judges.base import Pair
    from judges.registry import create_nli
    from kg import OxigraphGraph

    nli = create_nli(judge or "onnx")
    nli.warm_up()
    opened = OxigraphGraph.open(graph)
    times = []
    for name, sentences in answers:
        started = time.perf_counter()
        [[entity]] = opened.find([name])
        [around] = opened.subgraphs([entity.id], limit=_LIMIT)
        for triple in (*around.triples, *around.incoming):
            for sentence in sentences:
                nli.judge([Pair(triple.text, sentence)])
        times.append(_ms(started))
    opened.close()
    return tuple(times)


@contextmanager
def _serving(graph: Path) -> Iterator[str]:
    """Serve a graph over SPARQL while the block runs."""
    folder = str(Path(sys.executable).parent)
    binary = shutil.which("oxigraph", path=folder) or shutil.which("oxigraph")
    if binary is None:
        raise FileNotFoundError(
            "there is no oxigraph server; install it with: pip install oxigraph"
        )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [binary, "serve-read-only", "--location", str(graph), "--bind", address]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://{address}/query"
        _wait_for(url)
        yield url
    finally:
        server.terminate()
        server.wait()


def _wait_for(url: str) -> None:
    from kg.endpoint import Endpoint
    from kg.opening import EndpointSettings

    endpoint = Endpoint(url, EndpointSettings(cache=None, deadline_s=0.3))
    end = time.monotonic() + _START_S
    while True:
        try:
            endpoint.json("ASK {}")
            break
        except KnowledgeGraphError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    endpoint.close()


def _ms(started: float) -> float:
    return (time.perf_counter() - started) * 1e3
