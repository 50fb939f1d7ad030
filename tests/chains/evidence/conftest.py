import pytest

from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import scripted_guard


def never(question):
    raise AssertionError("evidence was handed over: nothing is to be fetched")


@pytest.fixture(scope="module")
def alone():
    """A guardrail that must not ask its retriever."""
    with scripted_guard(config=GuardrailConfig(policy=STRICT), retriever=never) as guard:
        yield guard


@pytest.fixture(scope="module")
def empty():
    """A guardrail whose retriever finds nothing."""
    config = GuardrailConfig(policy=STRICT)
    with scripted_guard(config=config, retriever=lambda question: []) as guard:
        yield guard
