"""Fixtures that several test modules share: one engine over the shipped graph, made once."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from guardrail import Guardrail, GuardrailConfig

# The same examples on each run, however busy the machine: a run fails by what was changed. To look
# for new ones: pytest --hypothesis-profile=explore
FREE_OF_TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", FREE_OF_TIME, max_examples=1_000)
settings.register_profile("same", FREE_OF_TIME, derandomize=True, database=None)
settings.load_profile("same")


@pytest.fixture(scope="session")
def guard() -> Iterator[Guardrail]:
    """The embedded defaults: people graph and shipped judge."""
    with Guardrail(GuardrailConfig()) as guard:
        guard.warm_up()
        yield guard


@pytest.fixture(scope="session")
def exact_guard() -> Iterator[Guardrail]:
    """The people graph with exact evidence alone: fast, and the same on every machine."""
    with Guardrail(GuardrailConfig(judge="none")) as guard:
        guard.warm_up()
        yield guard
