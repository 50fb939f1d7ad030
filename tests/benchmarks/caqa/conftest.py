import pytest

from benchmarks.caqa.build import build_rows
from benchmarks.caqa.graph import FactGraph
from benchmarks.caqa.rows import CAQARow
from benchmarks.caqa.sources import open_source


@pytest.fixture(scope="session")
def people() -> FactGraph:
    return open_source("people")


@pytest.fixture(scope="session")
def train(people: FactGraph) -> list[CAQARow]:
    return list(build_rows(people, n=1500, seed=7, split="train"))


@pytest.fixture(scope="session")
def unseen(people: FactGraph) -> list[CAQARow]:
    return list(build_rows(people, n=600, seed=7, split="test"))
