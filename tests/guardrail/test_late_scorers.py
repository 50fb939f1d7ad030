"""A further scorer that is late or fails costs its scores, never the verdict."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from guardrail import STRICT, Guardrail, GuardrailConfig, Score, Triple
from guardrail.engine import flow
from guardrail.scorers import ScoringRequest
from tests.clock import PATIENCE_S, Deadline

FACT = Triple(subject="Ada Lovelace", property="date of birth", value="1815-12-10")


class Late:
    name = "late"

    def __init__(self, deadline: Deadline) -> None:
        self.wake = threading.Event()
        self.deadline = deadline

    def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        self.deadline.end()
        self.wake.wait(PATIENCE_S)
        return [{} for _ in batch]


@pytest.fixture
def late(monkeypatch):
    late = Late(Deadline(monkeypatch, flow))
    yield late
    late.wake.set()


def guarding(scorer):
    config = GuardrailConfig(judge="none", policy=STRICT)
    return Guardrail(config, scorers=[scorer], retriever=lambda question: [FACT])


def test_the_verdict_stands(late):
    with guarding(late) as guard:
        answer = guard.check(
            question="When was Ada Lovelace born?",
            answer="Ada Lovelace was born in 1815. She was born on 4 May 1999.",
        )
        late.wake.set()
    assert answer.text == "Ada Lovelace was born in 1815."
    assert [problem.part for problem in answer.errors] == ["scorers"]


async def test_a_scorer_that_hangs_leaves_the_loops_own_threads_to_others(late) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    with guarding(late) as guard:
        answer = await guard.acheck("When was Ada Lovelace born?", "Ada Lovelace was born in 1815.")
        assert [problem.part for problem in answer.errors] == ["scorers"]
        try:
            assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), PATIENCE_S / 2) == 1
        finally:
            late.wake.set()
