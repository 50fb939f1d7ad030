"""The shipped judge: what these frameworks are shown is what a user would see."""

from collections.abc import Iterator

import pytest

from guardrail import Guardrail


@pytest.fixture(scope="session")
def guard() -> Iterator[Guardrail]:
    with Guardrail() as guard:
        guard.warm_up()
        yield guard
