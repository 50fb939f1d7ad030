"""A hub costs no more than another node, and a look-up no more in a larger graph."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kg import OxigraphGraph, load_graph, open_graph

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
PEOPLE = 100_000


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of a city where 100,000 persons were born, and a village of 200."""
    folder = tmp_path_factory.mktemp("city")
    with (folder / "a.nt").open("w") as file:
        file.write(f'<urn:city> {LABEL} "Big City" .\n<urn:village> {LABEL} "Small Village" .\n')
        for n in range(PEOPLE):
            place = "village" if n % 500 == 0 else "city"
            file.write(f'<urn:n{n}> {LABEL} "Ana{n} Smith{n}" .\n')
            file.write(f"<urn:n{n}> <urn:in> <urn:{place}> .\n")
    load_graph(folder / "a.nt", folder / "g")
    return folder / "g"


def best_of(calls: Callable[[OxigraphGraph], object], graph: Path) -> float:
    """Least CPU time of five calls, each on a graph opened anew, in seconds."""
    spent = []
    for _ in range(5):
        opened = open_graph(graph)
        assert isinstance(opened, OxigraphGraph)
        opened.find(["Ana1 Smith1"])
        started = time.thread_time()
        calls(opened)
        spent.append(time.thread_time() - started)
        opened.close()
    return min(spent)


def test_a_hub_costs_no_more(city: Path) -> None:
    def look_up(name: str) -> Callable[[OxigraphGraph], object]:
        return lambda graph: graph.subgraphs([graph.find([name])[0][0].id], limit=200)

    assert best_of(look_up("Big City"), city) <= best_of(look_up("Small Village"), city) + 0.001


def test_what_is_told_of_a_hub(city: Path) -> None:
    [graph] = open_graph(city).subgraphs(["urn:city"], limit=200)
    assert graph.truncated
    assert 0 < len(graph.incoming) <= 200
    assert graph.entity.prominence > 1000
    [village] = open_graph(city).subgraphs(["urn:village"], limit=200)
    assert len(village.incoming) == 200
    assert not village.truncated
    assert village.entity.prominence < graph.entity.prominence
