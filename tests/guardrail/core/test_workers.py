"""Worker threads, deadlines, the private event loop, and processors."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from concurrent.futures import ThreadPoolExecutor

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
from guardrail.core import workers
from guardrail.core.errors import OverloadedError
from guardrail.core.workers import (
    GivenUpError,
    Job,
    Workers,
    run_sync,
    stop_if_given_up,
    synchronous,
    time_left,
    usable_cpus,
    within,
)
from guardrail.policy import Unavailable
from tests.clock import PATIENCE_S, HandClock, until

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


def test_a_hanging_retriever_is_reported_and_bounded() -> None:
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


def test_the_time_left_is_that_of_the_nearest_bound(monkeypatch):
    clock = HandClock().runs(monkeypatch, workers)
    assert time_left() == float("inf")
    with within(10.0):
        clock.now += 4.0
        assert time_left() == 6.0
        with within(1.0):
            assert time_left() == 1.0
            clock.now += 2.0
            assert time_left() == 0.0  # and never less
        assert time_left() == 4.0
        for longer in (None, 60.0):
            with within(longer):
                assert time_left() == 4.0  # no block has longer than the one around it
    assert time_left() == float("inf")


def test_the_bound_ends_with_its_block_where_that_fails():
    with pytest.raises(ZeroDivisionError), within(1.0):
        raise ZeroDivisionError
    assert time_left() == float("inf")


def test_work_stops_where_its_own_context_was_given_up():
    ours, others = Job(stop_if_given_up), Job(stop_if_given_up)
    ours.given_up = True
    ours.run()
    others.run()
    assert isinstance(ours.future.exception(), GivenUpError)
    assert others.future.exception() is None


WHO = contextvars.ContextVar("who", default="nobody")


async def stated(value):
    await asyncio.sleep(0)
    return value, asyncio.get_running_loop()


def test_threads_share_one_loop():
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: run_sync(stated(number)), range(8)))
    assert [value for value, _ in found] == list(range(8))
    assert len({id(loop) for _, loop in found}) == 1


async def test_a_caller_s_running_loop_is_another():
    _, ours = run_sync(stated(1))
    assert ours is not asyncio.get_running_loop()


def test_the_synchronous_form_of_a_method_calls_the_override_of_a_subclass():
    class Base:
        async def acheck(self, number: int) -> int:
            return number

        check = synchronous(acheck)

    class Doubling(Base):
        async def acheck(self, number: int) -> int:
            return 2 * await super().acheck(number)

    assert (Base().check(2), Doubling().check(2)) == (2, 4)


def test_a_call_within_that_loop_is_refused_and_not_waited_for():
    async def inside():
        run_sync(stated(1))

    with pytest.raises(GuardrailError, match="await instead"):
        run_sync(inside())


def test_errors_and_context_are_the_caller_s():
    async def fails():
        raise ZeroDivisionError(WHO.get())

    token = WHO.set("me")
    with pytest.raises(ZeroDivisionError, match="me"):
        run_sync(fails())
    WHO.reset(token)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_loop_of_its_own():
    run_sync(stated(1))
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if run_sync(stated(2))[0] == 2 else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A root folder for files of the kernel, on a machine with 16 processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("files", "processors"),
    [
        # Version 2, as Docker and Kubernetes mount it: the container's group is the root.
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 16),
        # Version 2 without a namespace: a group above has the limit.
        (
            {
                "proc/self/cgroup": "0::/system.slice/guardrail.service\n",
                "sys/fs/cgroup/system.slice/guardrail.service/cpu.max": "max 100000\n",
                "sys/fs/cgroup/system.slice/cpu.max": "400000 100000\n",
            },
            4,
        ),
        # Version 1
        (
            {
                "proc/self/cgroup": "4:memory:/docker/a1\n3:cpu,cpuacct:/docker/a1\n",
                "sys/fs/cgroup/cpu,cpuacct/docker/a1/cpu.cfs_quota_us": "300000\n",
                "sys/fs/cgroup/cpu,cpuacct/docker/a1/cpu.cfs_period_us": "100000\n",
            },
            3,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/docker/a1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            1,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            16,
        ),
        # A quota above what the machine has, nonsense, and no control groups at all
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "9900000 100000\n"}, 16),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "much\n"}, 16),
        ({}, 16),
    ],
)
def test_the_quota_of_the_container_bounds_the_processors(machine, files, processors):
    assert usable_cpus(machine(files)) == processors


def test_this_machine_has_some():
    assert 1 <= usable_cpus() <= (os.cpu_count() or 1)
