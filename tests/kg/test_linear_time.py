"""Queries are read in time linear in their length."""

import pytest

from guardrail.core.errors import InputError
from kg import OxigraphGraph
from tests.growth import is_linear


@pytest.mark.parametrize("unit", ["-A", "A", "PREFIX ", "a:"])
def test_a_query_that_is_none(unit: str) -> None:
    graph = OxigraphGraph.from_text("<urn:a> <urn:b> <urn:c> .")

    def query(text: str) -> None:
        with pytest.raises(InputError):
            graph.query(text)

    assert is_linear(query, lambda n: unit * n, 5_000)
