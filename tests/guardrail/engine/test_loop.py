"""The synchronous forms run on one loop of their own, whoever calls."""

import asyncio
import contextvars
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from guardrail.core.errors import GuardrailError
from guardrail.core.workers import run_sync

WHO = contextvars.ContextVar("who", default="nobody")


async def told(value):
    await asyncio.sleep(0)
    return value, asyncio.get_running_loop()


def test_threads_share_one_loop():
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: run_sync(told(number)), range(8)))
    assert [value for value, _ in found] == list(range(8))
    assert len({id(loop) for _, loop in found}) == 1


async def test_a_caller_s_running_loop_is_another():
    _, ours = run_sync(told(1))
    assert ours is not asyncio.get_running_loop()


def test_a_call_within_that_loop_is_refused_and_not_waited_for():
    async def inside():
        run_sync(told(1))

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
    run_sync(told(1))
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if run_sync(told(2))[0] == 2 else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
