"""A guardrail on three facts of Mary Shelley, and an answer that one of them contradicts."""

import pytest

from guardrail import STRICT, Guardrail, GuardrailConfig, Triple
from tests.chains.scripted import ScriptedJudge

QUESTION = "Who was Mary Shelley?"
TRUE_START = "Mary Shelley was a writer."
CANARY = "zanzibarcanary"
FALSE_MIDDLE = f"Mary Shelley was born on 4 May 1999 in {CANARY}."
TRUE_END = "Her mother was Mary Wollstonecraft."
ANSWER = f"{TRUE_START} {FALSE_MIDDLE} {TRUE_END}"

FACTS = [
    Triple(subject="Mary Shelley", subject_id="Q47152", property=name, value=value)
    for name, value in (
        ("occupation", "writer"),
        ("date of birth", "1797-08-30"),
        ("mother", "Mary Wollstonecraft"),
    )
]


def scripted_guard(**options):
    """A guardrail whose judge is scripted, so that no model has a say in these tests."""
    config = options.pop("config", GuardrailConfig())
    options.setdefault("retriever", lambda question: FACTS)
    return Guardrail(config, grounding=ScriptedJudge(), **options)


@pytest.fixture(scope="session")
def guard():
    with scripted_guard() as guardrail:
        guardrail.warm_up()
        yield guardrail


@pytest.fixture(scope="module")
def strict_guard():
    config = GuardrailConfig(policy=STRICT)
    with scripted_guard(config=config) as guard:
        guard.warm_up()
        yield guard


@pytest.fixture(scope="session")
def empty():
    """A guardrail that finds no evidence by itself."""
    config = GuardrailConfig(policy=STRICT, graph="none")
    with scripted_guard(config=config, retriever=lambda question: []) as guard:
        yield guard


@pytest.fixture(scope="module")
def fake():
    from tests.chains.fake_openai import FakeOpenAI  # which takes its answers from here

    return FakeOpenAI()


@pytest.fixture(scope="module")
def upstream(fake):
    """The address of the API of a model's server."""
    from tests.chains.fake_openai import served

    with served(fake.app) as url:
        yield f"{url}/v1"
