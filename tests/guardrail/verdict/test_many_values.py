"""A sentence of many values takes bounded time, and what is not compared never looks like fine."""

import time

import pytest

from guardrail import Guardrail, GuardrailConfig, Passage, Triple
from guardrail.core.types import Effect
from guardrail.verdict.checks.typed_values import COMPARED
from tests.guardrail.scripted import Overlap

MANY = 2 * COMPARED
SECONDS = 20.0  # of the processor; all with all took minutes
TOLD = " ".join(f"{1_000 + 7 * number} km" for number in range(MANY))
HELD = [f"{900_000 + 11 * number} km" for number in range(MANY)]
EVIDENCE = {
    "prose": [Passage(f"The Fjell 3 has a range of {' '.join(HELD)}.")],
    "facts": [Triple("Fjell 3", "range", held) for held in HELD],
}


@pytest.fixture
def guard():
    with Guardrail(GuardrailConfig(graph={"location": "none"}), grounding=Overlap()) as guard:
        yield guard


@pytest.mark.parametrize("evidence", EVIDENCE.values(), ids=EVIDENCE)
def test_many_values_take_bounded_time(guard, evidence):
    begin = time.process_time()
    guard.check("", f"The Fjell 3 has a range of {TOLD}.", evidence=evidence, policy="annotate")
    assert time.process_time() - begin < SECONDS


def test_values_behind_the_bound_are_missing(guard):
    told = " ".join(f"{1_000 + 7 * number} km" for number in range(COMPARED + 2))
    evidence = [Triple("depot", "range", value) for value in told.split(" km") if value]
    answer = guard.check("", f"The depot has a range of {told}.", evidence=evidence)
    (missing,) = [
        item
        for item in answer.sentences[0].findings
        if item.effect is Effect.MISSING and "were not compared" in item.because
    ]
    assert missing.because.startswith("2 values")
    assert answer.text[missing.start : missing.end] == told[-len("1000 km 1000 km") :].strip()
