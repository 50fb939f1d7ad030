import pytest

from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import scripted_guard


@pytest.fixture(scope="module")
def empty():
    """A guardrail whose graph knows nothing: all that counts stands in the request."""
    config = GuardrailConfig(policy=STRICT)
    with scripted_guard(config=config, retriever=lambda question: []) as guard:
        yield guard
