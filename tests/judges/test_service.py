from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from guardrail.core.errors import DeadlineExceededError, JudgeError
from judges.base import Pair
from judges.onnx import OnnxJudge
from judges.service import JudgeService, MicroBatcher
from tests.clock import PATIENCE_S, until
from tests.judges.tiny import WORDS

Submit = Callable[..., Future[list[int]]]
PAIRS = [Pair(f"born in {a}", f"the {b} is {a}") for a in WORDS[:8] for b in WORDS[8:16]]


class Doubler:
    """Doubles numbers, can be made to wait, and fails on 13."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.batches.append(list(numbers))
        assert self.gate.wait(PATIENCE_S)
        if 13 in numbers:
            raise JudgeError("thirteen")
        return [2 * number for number in numbers]


def batcher(run: Doubler, **options: int) -> MicroBatcher[int, int]:
    return MicroBatcher(run, key=lambda: "doubler-1", **options)


@contextmanager
def held(first: int) -> Iterator[tuple[Doubler, MicroBatcher[int, int], Submit, Future[list[int]]]]:
    """A service whose first call runs until its gate opens, and how to make further ones."""
    run = Doubler()
    run.gate.clear()
    with batcher(run) as service, ThreadPoolExecutor(8) as threads:
        running = threads.submit(service.call, [first])
        until(lambda: run.batches)
        yield run, service, partial(threads.submit, service.call), running


def waiting(service: MicroBatcher[int, int], count: int) -> None:
    until(lambda: service.in_use().queues["judge"] == count)


def test_threads_get_what_an_unbatched_call_gives(tiny_judge: OnnxJudge) -> None:
    calls = [PAIRS[start : start + 8] for start in range(0, 64, 4)]
    expected = [tiny_judge.judge(call) for call in calls]
    with JudgeService(tiny_judge) as service, ThreadPoolExecutor(16) as threads:
        assert list(threads.map(service.judge, calls)) == expected
        assert service.judge(calls[0]) == expected[0]


def test_requests_that_wait_share_a_batch_and_duplicates_are_computed_once() -> None:
    with held(0) as (run, service, submit, first):
        rest = [submit([n, 7, 0]) for n in range(1, 6)]
        waiting(service, 7)
        run.gate.set()
        assert first.result() == [0]
        assert [task.result() for task in rest] == [[2 * n, 14, 0] for n in range(1, 6)]
    assert [sorted(batch) for batch in run.batches] == [[0], [1, 2, 3, 4, 5, 7]]


def test_the_cache_forgets_what_was_not_used_for_longest() -> None:
    run = Doubler()
    with batcher(run, cache_size=2) as service:
        for numbers in ([1], [2], [1], [3], [1], [2]):
            service.call(numbers)
    assert run.batches == [[1], [2], [3], [2]]


def test_a_caller_that_gives_up_frees_its_place_and_stalls_nobody() -> None:
    with held(1) as (run, service, submit, first):
        given_up, kept = submit([2, 3], timeout_s=0.2), submit([3, 4])
        waiting(service, 3)
        with pytest.raises(DeadlineExceededError):
            given_up.result()
        run.gate.set()
        assert (first.result(), kept.result()) == ([2], [6, 8])
    assert run.batches == [[1], [3, 4]]


def test_an_error_reaches_only_the_callers_whose_items_caused_it() -> None:
    with held(0) as (run, service, submit, first):
        good, bad = submit([1, 2]), submit([2, 13])
        waiting(service, 3)
        run.gate.set()
        assert (first.result(), good.result()) == ([0], [2, 4])
        with pytest.raises(JudgeError, match="thirteen"):
            bad.result()
        assert service.call([2]) == [4]


@pytest.mark.parametrize("fails", [False, True])
def test_closing_fails_waiting_calls(fails: bool) -> None:
    first = 13 if fails else 1
    with held(first) as (run, service, submit, running), ThreadPoolExecutor(1) as closer:
        late = submit([2, first])
        waiting(service, 2)
        closing = closer.submit(service.close)
        with pytest.raises(JudgeError, match="closed"):
            late.result()
        run.gate.set()
        closing.result()
        assert running.result() == [2] if not fails else str(running.exception()) == "thirteen"
        with pytest.raises(JudgeError, match="closed"):
            service.call([3])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_worker_of_its_own() -> None:
    with batcher(Doubler()) as service:
        assert service.call([1]) == [2]
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if service.call([2], timeout_s=PATIENCE_S) == [4] else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
