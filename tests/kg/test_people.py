"""The people graph that ships with the package."""

from __future__ import annotations

import subprocess
import sys

from kg import open_graph, open_people_graph


def test_is_the_default_graph() -> None:
    graph = open_graph()
    assert graph.name == "people"
    [[elvis]] = graph.find(["elvis presley"])
    assert elvis.id == "Q303"
    assert elvis.types == ("Q5",)
    [subgraph] = graph.subgraphs([elvis.id])
    birth = next(triple for triple in subgraph.triples if triple.property_id == "P569")
    assert (birth.property, birth.value) == ("date of birth", "1935-01-08")


def test_namesakes_are_distinguished() -> None:
    [found] = open_people_graph().find(["Thomas Jefferson"])
    assert [entity.id for entity in found] == ["Q11812", "Q76012398"]
    assert found[0].prominence > found[1].prominence
    assert found[0].description == "teacher, United States of America (1743–1826)"


def test_persons_of_the_graph_are_linked() -> None:
    graph = open_people_graph()
    links = graph.links(["Q47152", "Q188569"])
    assert {(link.subject, link.property, link.value) for link in links} == {
        ("Mary Shelley", "father", "William Godwin"),
        ("William Godwin", "child", "Mary Shelley"),
    }


def test_the_package_loads_what_a_graph_needs() -> None:
    code = """
import sys, kg
print([m for m in ('pyoxigraph', 'httpx') if m in sys.modules])
kg.open_graph().find(['Mary Shelley'])
print('httpx' in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["[]", "False"]
