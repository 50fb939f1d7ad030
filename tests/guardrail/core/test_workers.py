"""Threads stay bounded where a part hangs, and callers are told."""

import asyncio
import threading

import pytest

from guardrail import (
    ANNOTATE,
    STRICT,
    Action,
    CheckRequest,
    Guardrail,
    GuardrailConfig,
    GuardrailError,
    Triple,
)
from guardrail.config import LimitsConfig
from guardrail.core.errors import OverloadedError
from guardrail.core.workers import Workers
from guardrail.policy import Unavailable
from tests.clock import PATIENCE_S, until

FACT = Triple(subject="Ada Lovelace", property="occupation", value="writer")
SAID = "Ada Lovelace was a writer."
HURRY = ANNOTATE.model_copy(update={"deadline_s": 0.4})


def ours() -> int:
    """How many threads of workers there are."""
    return sum(thread.name == "guardrail" for thread in threading.enumerate())


async def test_calls_beyond_the_concurrency_wait() -> None:
    workers = Workers(2, 4)
    running: list[int] = []
    most: list[int] = []
    lock, pairs = threading.Lock(), threading.Barrier(2, timeout=PATIENCE_S)

    def work(number: int) -> int:
        with lock:
            running.append(number)
            most.append(len(running))
        pairs.wait()  # comes back only where another is in work
        with lock:
            running.remove(number)
        return number

    assert await asyncio.gather(*(workers.run(work, n) for n in range(6))) == list(range(6))
    assert max(most) == 2
    workers.close()
    with pytest.raises(GuardrailError, match="closed"):
        await workers.run(work, 1)


async def test_errors_and_results_reach_their_caller() -> None:
    workers = Workers(1, 1)
    with pytest.raises(ZeroDivisionError):
        await workers.run(lambda: 1 / 0)
    assert await workers.run(lambda: 7) == 7
    workers.close()


async def test_stuck_calls_leave_room_until_there_are_too_many() -> None:
    workers = Workers(1, 2)
    wake = threading.Event()
    before = ours()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await workers.run(wake.wait)
        # Until the bound is reached, another thread takes the place of the stuck one.
    assert workers.stuck == 2
    for _ in range(20):
        with pytest.raises(OverloadedError, match="still hang"):
            await workers.run(lambda: 1)
    assert ours() <= before + 3
    wake.set()
    async with asyncio.timeout(PATIENCE_S):
        while workers.stuck:
            await asyncio.sleep(0.01)
    assert await workers.run(lambda: 1) == 1
    workers.close()


def test_a_hanging_retriever_is_told_and_bounded() -> None:
    wake = threading.Event()

    def retriever(question: str) -> list[Triple]:
        if question == "hang":
            wake.wait()
        return [FACT]

    limits = LimitsConfig(concurrency=1)
    config = GuardrailConfig(judge="none", limits=limits)
    with Guardrail(config, retriever=retriever) as guard:
        guard.warm_up()
        late = [guard.check(question="hang", answer=SAID, policy=HURRY) for _ in range(4)]
        assert [item.errors[0].part for item in late] == ["deadline"] * 4
        refused = guard.check(question="Who?", answer=SAID, policy=STRICT)
        assert refused.action is Action.REFUSE
        assert [error.part for error in refused.errors] == ["overload"]
        with pytest.raises(OverloadedError):
            guard.check(
                question="Who?",
                answer=SAID,
                policy=STRICT.model_copy(update={"unavailable": Unavailable.RAISE}),
            )
        wake.set()
        until(lambda: guard.check(question="Who?", answer=SAID).action is Action.PASS)


@pytest.mark.parametrize(("batch_s", "allowed_s"), [(0.5, 0.5), (60.0, 2.0)])
def test_a_batch_has_the_time_of_its_answers_up_to_a_bound(
    batch_s: float, allowed_s: float
) -> None:
    wake = threading.Event()
    config = GuardrailConfig(judge="none", limits=LimitsConfig(batch_s=batch_s))
    with Guardrail(config, retriever=lambda question: wake.wait()) as guard:
        guard.warm_up()
        requests = [CheckRequest(question="hang", answer=SAID)] * 5
        answers = guard.check_batch(requests, policy=HURRY)
        assert {answer.errors[0].part for answer in answers} == {"deadline"}
        assert f"the {allowed_s:g} s of policy" in answers[0].errors[0].message
        wake.set()


def test_the_candidates_of_a_ranking_share_the_time_of_one_answer() -> None:
    wake = threading.Event()
    with Guardrail(GuardrailConfig(judge="none"), retriever=lambda question: wake.wait()) as guard:
        guard.warm_up()
        ranking = guard.rank(question="hang", answers=[SAID] * 40, policy=HURRY)
        [problem] = ranking[0].errors
        assert "the 0.4 s of policy" in problem.message  # 40 answers alone would have 16 s
        wake.set()
