"""Graphs and queries that others wrote are read in a time that grows with their length alone."""

import pytest

from guardrail.core.errors import InputError
from kg import OxigraphGraph
from kg.blank_nodes import with_iris
from tests.growth import is_linear


@pytest.mark.parametrize("unit", ["_:", "_:a", "_:a.", "a_:", "_:a ", ". _:"])
def test_what_looks_like_a_blank_node_in_a_literal(unit: str) -> None:
    def lines(n: int) -> str:
        return f'_:b <urn:p> "{unit * n}" .\n'

    assert is_linear(lambda text: with_iris(text.encode(), "0"), lines, 2_000)
    assert (
        with_iris(lines(20).encode(), "0")
        == lines(20).replace("_:b <", "<urn:blank:0:b> <").encode()
    )


@pytest.mark.parametrize("unit", ["-A", "A", "PREFIX ", "a:"])
def test_a_query_that_is_none(unit: str) -> None:
    graph = OxigraphGraph.from_text("<urn:a> <urn:b> <urn:c> .")

    def query(text: str) -> None:
        with pytest.raises(InputError):
            graph.query(text)

    assert is_linear(query, lambda n: unit * n, 5_000)
