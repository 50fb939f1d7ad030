import pytest

from guardrail import Guardrail


@pytest.fixture(scope="session")
def guard():
    """The guardrail of the examples: shipped judge, shipped graph."""
    with Guardrail() as guardrail:
        guardrail.warm_up()
        yield guardrail
