"""Worker threads, the private event loop, and deadlines for blocking parts.

A graph or judge that hangs cannot be stopped from outside. The call is given up when the answer's
time runs out, its thread stays behind until the part comes back, and another takes its place, up
to a bound. Beyond it calls are refused at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import math
import os
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from queue import SimpleQueue
from typing import Never, ParamSpec, Protocol, Self, TypeVar, TypeVarTuple, cast

from guardrail.core.errors import GuardrailError, OverloadedError
from guardrail.core.types import Usage


class Closing(ABC):
    """Something that is closed."""

    @abstractmethod
    def close(self) -> None:
        """Release what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_UNTIL: ContextVar[float] = ContextVar("guardrail_until", default=math.inf)


class GivenUpError(GuardrailError):
    """The caller went away, or its time ran out, before the work was done."""


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Let the work of a block, on other threads too, know how long it may take.

    Args:
        seconds: From now on, and no longer than a block around it; None for as long as that.
    """
    own = math.inf if seconds is None else time.monotonic() + seconds
    until = _UNTIL.set(min(own, _UNTIL.get()))
    try:
        yield
    finally:
        _UNTIL.reset(until)


def time_left() -> float:
    """Seconds until the result is waited for no more; infinite where there is no bound."""
    return max(0.0, _UNTIL.get() - time.monotonic())


P = ParamSpec("P")
T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run_sync(coroutine: Coroutine[object, Never, T]) -> T:
    """Run a coroutine to its end from synchronous code, in the caller's context variables.

    Args:
        coroutine: What to run; it is cancelled when the caller is interrupted.

    Raises:
        GuardrailError: Called from a coroutine of this project, where it would wait for itself.
    """
    loop = _private_loop()
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        coroutine.close()
        raise GuardrailError("a synchronous call inside the guardrail's own loop; await instead")
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def synchronous(method: Callable[P, Coroutine[object, Never, T]]) -> Callable[P, T]:
    """The synchronous form of a coroutine method, also of one that a subclass overrides."""

    @wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        own: Callable[..., Coroutine[object, Never, T]] = getattr(args[0], method.__name__)
        return run_sync(own(*args[1:], **kwargs))

    run.__name__ = method.__name__.removeprefix("a")
    return run


def _private_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="guardrail-loop", daemon=True).start()
        return _loop


def _forget() -> None:
    """After a fork the thread is gone: the child starts a loop of its own."""
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


Arguments = TypeVarTuple("Arguments")


class InThread(Protocol):
    """Runs a blocking call in a thread, as ``Workers.run`` does."""

    async def __call__(self, work: Callable[[*Arguments], T], *args: *Arguments) -> T:
        """Run ``work(*args)``."""
        ...


async def called(
    in_thread: InThread, work: Callable[[*Arguments], Awaitable[T] | T], *args: *Arguments
) -> T:
    """Call foreign code that may be a coroutine function, block, or return what is awaited."""
    result: Awaitable[T] | T
    if inspect.iscoroutinefunction(work):
        result = work(*args)
    else:
        result = await in_thread(work, *args)
    return cast("T", await result if inspect.isawaitable(result) else result)


class Job:
    """One call in its context, and where it stands."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.future: Future[object] = Future()
        self.running = False
        self.given_up = False
        self._work = work
        self._context = contextvars.copy_context()
        self._context.run(_JOB.set, self)

    def run(self) -> None:
        """Do the work, unless it was cancelled while it waited."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._context.run(self._work)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


_JOB: ContextVar[Job | None] = ContextVar("guardrail_job", default=None)


def stop_if_given_up() -> None:
    """Stop here where nobody waits for the result.

    Raises:
        GivenUpError: Nobody does.
    """
    job = _JOB.get()
    if job is not None and job.given_up:
        raise GivenUpError("nobody waits for this answer any more")


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
        self._waiting: deque[Job] = deque()
        self._idle: list[SimpleQueue[Job | None]] = []
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
        it looks whether it was (``guardrail.core.workers``).

        Raises:
            OverloadedError: Too many calls that were given up still run.
            GuardrailError: The workers are closed.
        """
        if self._process != os.getpid():
            self._reset()  # a fork leaves the threads behind
        job = Job(partial(work, *args))
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

    def _work(self, first: Job) -> None:
        job: Job | None = first
        inbox: SimpleQueue[Job | None] = SimpleQueue()
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

    def _give_up(self, job: Job) -> None:
        with self._lock:
            if job.running and not job.given_up:
                job.given_up = True
                self._busy -= 1
                self._stuck += 1
                self._settled.notify_all()
                self._start()


off_loop = Workers(concurrency=2, stuck=10_000).run
"""``run`` for work of this project's own, which ends by itself: no part that hangs holds it up."""


def usable_cpus(root: Path = Path("/")) -> int:
    """Return the number of processors this process may use, at least 1.

    The CPU quota of a container (that of Docker, or a limit of Kubernetes) bounds it as well; more
    threads than that are throttled. A part of a processor counts as one.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html (``cpu.max``) and
    https://docs.kernel.org/scheduler/sched-bwc.html (``cpu.cfs_quota_us``, version 1).
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    count = len(allowed) or os.cpu_count() or 1
    return max(1, min([count, *map(math.ceil, _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """The quotas of this process's control groups and of all groups above them, in processors."""
    mount = root / "sys" / "fs" / "cgroup"
    for line in _read(root / "proc" / "self" / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        # Version 2 has one tree and names no controllers.
        tops = [mount / controllers, mount / "cpu"] if controllers else [mount, mount / "unified"]
        for top in tops:
            group = top / path.strip("/")
            for folder in (group, *group.parents):
                if not folder.is_relative_to(top):
                    break
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    both = _read(folder / "cpu.max").split() or [
        _read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")
    ]
    try:
        quota, period = map(int, both)
    except ValueError:  # no such file, or "max", for no limit
        return
    if quota > 0 and period > 0:
        yield quota / period


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
