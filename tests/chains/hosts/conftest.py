import pytest

from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import scripted_guard


@pytest.fixture(scope="module")
def empty():
    """A guardrail with an empty graph: all evidence comes with the request."""
    config = GuardrailConfig(policy=STRICT)
    with scripted_guard(config=config, retriever=lambda question: []) as guard:
        yield guard
