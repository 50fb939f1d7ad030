"""A further scorer that is late or fails costs its scores, never the verdict."""

import time
from collections.abc import Mapping, Sequence

import pytest

from guardrail import STRICT, Guardrail, GuardrailConfig, JudgeError, Score, Triple
from guardrail.engine.scoring import ScoringRequest

FACT = Triple(subject="Ada Lovelace", property="date of birth", value="1815-12-10")


class Late:
    name = "late"

    def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        time.sleep(4.0)
        return [{} for _ in batch]


class Failing:
    name = "failing"

    def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        raise JudgeError("no model")


@pytest.mark.parametrize(("scorer", "part"), [(Late(), "scorers"), (Failing(), "scorer failing")])
def test_the_verdict_stands(scorer, part):
    policy = STRICT.model_copy(update={"deadline_s": 3.0})
    config = GuardrailConfig(judge="none", policy=policy)
    with Guardrail(config, scorers=[scorer], retriever=lambda question: [FACT]) as guard:
        guard.warm_up()
        answer = guard.check(
            question="When was Ada Lovelace born?",
            answer="Ada Lovelace was born in 1815. She was born on 4 May 1999.",
        )
    assert answer.text == "Ada Lovelace was born in 1815."
    assert [problem.part for problem in answer.errors] == [part]
