"""A guardrail on three facts of Mary Shelley, and an answer that one of them contradicts."""

import pytest

from guardrail import Guardrail, GuardrailConfig, Triple

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


@pytest.fixture(scope="session")
def guard():
    """Exact evidence alone decides, so that no model has a say in these tests."""
    config = GuardrailConfig(judge="none")
    with Guardrail(config, retriever=lambda question: FACTS) as guardrail:
        guardrail.warm_up()
        yield guardrail
