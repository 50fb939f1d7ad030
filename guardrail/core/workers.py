"""Worker threads for blocking parts, bounded also where a part never comes back.

A graph or judge that hangs cannot be stopped from outside. The call is given up when the answer's
time runs out, its thread stays behind until the part comes back, and another takes its place, up
to a bound. Beyond it calls are refused at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Protocol, TypeVar, TypeVarTuple, cast

from guardrail.core.cancellation import watch
from guardrail.core.errors import GuardrailError, OverloadedError
from guardrail.core.types import Usage

__all__ = ["InThread", "Workers", "called", "off_loop"]

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class InThread(Protocol):
    """Runs a blocking call in a thread, as ``Workers.run`` does."""

    async def __call__(self, work: Callable[[*Arguments], T], *args: *Arguments) -> T:
        """Run ``work(*args)``."""
        ...


async def called(
    in_thread: InThread, work: Callable[[*Arguments], Awaitable[T] | T], *args: *Arguments
) -> T:
    """Call foreign code that may be a coroutine function, block, or return what is awaited.

    Args:
        in_thread: Runs it where it is no coroutine function.
        work: The function.
        args: What it takes.
    """
    result: Awaitable[T] | T
    if inspect.iscoroutinefunction(work):
        result = work(*args)
    else:
        result = await in_thread(work, *args)
    return cast("T", await result if inspect.isawaitable(result) else result)


class _Job:
    """One call and where it stands."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.future: Future[object] = Future()
        self.running = False
        self.given_up = False
        self._work = work

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._work()
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class Workers:
    """Runs blocking calls for coroutines of any event loop.

    Args:
        concurrency: Calls in work at once; more wait.
        stuck: Calls that may be given up and still run. With those in work they bound the
            threads: ``concurrency + stuck`` before calls are refused, at most ``concurrency`` more
            where all in work get stuck as well.
    """

    def __init__(self, concurrency: int, stuck: int) -> None:
        self._concurrency = concurrency
        self._most_stuck = stuck
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._idle: list[SimpleQueue[_Job | None]] = []
        self._settled = threading.Condition(self._lock)
        self._busy = 0
        self._stuck = 0
        self._closed = False

    @property
    def stuck(self) -> int:
        """Calls that were given up and still run."""
        with self._lock:
            return self._stuck

    def in_use(self) -> Usage:
        """How many calls wait, are in work, and are stuck."""
        with self._lock:
            queues = {"calls": len(self._waiting)}
            return Usage(queues=queues, running=self._busy, stuck=self._stuck)

    async def run(self, work: Callable[[*Arguments], T], *args: *Arguments) -> T:
        """Run a blocking call in a thread, in the caller's context variables.

        Cancelling gives the call up: one that waits is dropped, one in work goes on unheard until
        it looks whether it was (``guardrail.core.cancellation``).

        Raises:
            OverloadedError: Too many calls that were given up still run.
            GuardrailError: The workers are closed.
        """
        if self._process != os.getpid():
            self._reset()  # a fork leaves the threads behind
        context = contextvars.copy_context()
        job = _Job(lambda: context.run(work, *args))
        context.run(watch, lambda: job.given_up)
        with self._lock:
            if self._closed:
                raise GuardrailError("the guardrail is closed; make another")
            if self._stuck >= self._most_stuck:
                raise OverloadedError(
                    f"{self._stuck} calls of the graph, the judge, the model or the retriever were "
                    "given up and still hang; give that part a timeout, or raise limits.concurrency"
                )
            self._waiting.append(job)
            self._start()
        try:
            result = await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            self._give_up(job)
            raise
        return cast("T", result)  # of this work; jobs of all types wait in one queue

    def close(self) -> None:
        """Drop calls that wait and wait for those in work, but not for those given up."""
        with self._lock:
            self._closed = True
            for job in self._waiting:
                job.future.cancel()
            self._waiting.clear()
            for inbox in self._idle:
                inbox.put(None)
            self._idle.clear()
            while self._busy:
                self._settled.wait()

    def _start(self) -> None:
        """Start calls while there is room. Holds the lock."""
        while self._waiting and self._busy < self._concurrency:
            job = self._waiting.popleft()
            job.running = True
            self._busy += 1
            if self._idle:
                self._idle.pop().put(job)
            else:
                # A daemon, so that a part that hangs does not keep the process from its end.
                threading.Thread(
                    target=self._work, args=(job,), name="guardrail", daemon=True
                ).start()

    def _work(self, first: _Job) -> None:
        job: _Job | None = first
        inbox: SimpleQueue[_Job | None] = SimpleQueue()
        while job is not None:
            job.run()
            with self._lock:
                job.running = False
                if job.given_up:
                    self._stuck -= 1
                else:
                    self._busy -= 1
                self._settled.notify_all()
                self._start()
                if self._closed or len(self._idle) >= self._concurrency:
                    return
                self._idle.append(inbox)
            job = inbox.get()

    def _give_up(self, job: _Job) -> None:
        with self._lock:
            if job.running and not job.given_up:
                job.given_up = True
                self._busy -= 1
                self._stuck += 1
                self._settled.notify_all()
                self._start()


off_loop = Workers(concurrency=2, stuck=10_000).run
"""``run`` for work of this project's own, which ends by itself: no part that hangs holds it up."""
