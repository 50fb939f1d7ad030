"""Reading a hub costs no more than reading another node."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from kg import OxigraphGraph, load_graph, open_graph

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
LINKS = 100_000
"""Triples that end at the hub."""
KEPT = 25
"""Triples that are kept of those that end at a hub."""
TOWNSMEN = 200
"""Triples that end at the town: all of them are read."""
MOST = 1.5
"""A hub may take so many times the calls that a town takes."""


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of a city where 100,000 persons were born, and of a town."""
    folder = tmp_path_factory.mktemp("city")
    places = ["city"] * LINKS + ["town"] * TOWNSMEN
    with (folder / "a.nt").open("w") as file:
        file.write(f'<urn:city> {LABEL} "Big City" .\n<urn:town> {LABEL} "Old Town" .\n')
        for n, place in enumerate(places):
            file.write(f'<urn:n{n}> {LABEL} "Ana{n} Smith{n}" .\n')
            file.write(f"<urn:n{n}> <urn:in> <urn:{place}> .\n")
    load_graph(folder / "a.nt", folder / "g")
    return folder / "g"


def calls(call: Callable[[OxigraphGraph, str], object], graph: Path, name: str) -> int:
    """Functions that run in a call on a graph opened anew, so that nothing is remembered."""
    opened = open_graph(graph)
    assert isinstance(opened, OxigraphGraph)
    opened.find(["Ana1 Smith1"])
    made = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        call(opened, name)
    finally:
        sys.setprofile(None)
    opened.close()
    return made


def times_dearer(call: Callable[[OxigraphGraph, str], object], graph: Path) -> float:
    """Cost of a call for the city over that for a town of which all links are read."""
    return calls(call, graph, "Big City") / calls(call, graph, "Old Town")


def look_up(graph: OxigraphGraph, name: str) -> None:
    """What the linker does with a name: find who bears it, describe it, read its facts."""
    assert [mention.text for mention in graph.spot(f"It was in {name}.")] == [name]
    [[entity]] = graph.find([name])
    graph.entities([entity.id])
    [subgraph] = graph.subgraphs([entity.id], limit=200)
    assert subgraph.incoming


def test_a_hub_costs_no_more(city: Path) -> None:
    assert times_dearer(look_up, city) <= MOST


def test_what_is_told_of_a_hub(city: Path) -> None:
    [graph] = open_graph(city).subgraphs(["urn:city"], limit=200)
    assert graph.truncated
    assert len(graph.incoming) == KEPT
    assert graph.entity.prominence > 1000
    [town] = open_graph(city).subgraphs(["urn:town"], limit=200)
    assert len(town.incoming) == TOWNSMEN
    assert not town.truncated
    assert town.entity.prominence < graph.entity.prominence
