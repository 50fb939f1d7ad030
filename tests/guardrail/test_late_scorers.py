"""A further scorer that is late or fails costs its scores, never the verdict."""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

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


async def test_a_scorer_that_hangs_leaves_the_loops_own_threads_to_others() -> None:
    wake = threading.Event()

    class Hanging:
        name = "hanging"

        def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
            wake.wait(20)
            return [{} for _ in batch]

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    policy = STRICT.model_copy(update={"deadline_s": 1.0})
    config = GuardrailConfig(judge="none", policy=policy)
    with Guardrail(config, scorers=[Hanging()], retriever=lambda question: [FACT]) as guard:
        guard.warm_up()
        answer = await guard.acheck("When was Ada Lovelace born?", "Ada Lovelace was born in 1815.")
        assert [problem.part for problem in answer.errors] == ["scorers"]
        try:
            assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), 5.0) == 1
        finally:
            wake.set()
