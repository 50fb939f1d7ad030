"""Fixtures that several test modules share: one engine over the shipped graph, made once."""

from collections.abc import Iterator

import pytest

from guardrail import Guardrail, GuardrailConfig


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
