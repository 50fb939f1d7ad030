"""Merges items of many callers into batches, remembers results, and pushes back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Generic, TypeVar

from guardrail.core.errors import DeadlineExceededError, JudgeError
from guardrail.core.types import CacheUse, Usage
from guardrail.core.workers import Closing

__all__ = ["MicroBatcher"]

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")

WAIT_S = 0.002
"""Longest wait for company; a tenth of what eight pairs take on two cores."""
MAX_BATCH = 512
"""Most items of a batch."""
CACHE_SIZE = 65_536
"""Default number of remembered results; about 50 MB with short texts."""
MAX_QUEUE = 8_192
"""Most items that wait to be computed; a larger request is let in alone."""


class _Request(Generic[Item, Result]):
    """What one caller waits for."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = list(dict.fromkeys(items))
        self.found: dict[Item, Result] = {}
        self.future: Future[dict[Item, Result]] = Future()

    def settle(self, item: Item, result: Result) -> None:
        """Take one result; the caller wakes up on the last."""
        self.found[item] = result
        if len(self.found) == len(self.items):
            self.finish()

    def finish(self) -> None:
        """Hand the results over."""
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_result(self.found)

    def fail(self, error: BaseException) -> None:
        """Hand an error over."""
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class MicroBatcher(Closing, Generic[Item, Result]):
    """Merges items of concurrent callers into batches for one function.

    While a batch is computed, the next gathers; an idle batcher waits a moment for
    company. An item that several callers ask for at the same time is computed once. Where more
    than ``MAX_QUEUE`` items wait, further callers wait, first come first served, before their
    items are taken in. A caller that gives up frees the place of the items only it asked for.
    When a batch fails, each caller's items are tried again alone, so that the error reaches
    only those whose items caused it.

    Args:
        run: Computes a batch; called from one thread at a time.
        key: Names what ``run`` depends on, for the cache; asked for once per batch.
        cache_size: Results to remember, least recently used dropped first; 0 for none.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Sequence[Result]],
        *,
        key: Callable[[], str],
        cache_size: int = CACHE_SIZE,
    ) -> None:
        if cache_size < 0:
            raise ValueError("the cache's size is at least 0")
        self._run = run
        self._key = key
        self._cache_size = cache_size
        self._changed = threading.Condition()
        self._cache: OrderedDict[tuple[str, Item], Result] = OrderedDict()
        self._queued: OrderedDict[Item, list[_Request[Item, Result]]] = OrderedDict()
        self._computed: dict[Item, list[_Request[Item, Result]]] = {}
        self._outside: deque[_Request[Item, Result]] = deque()
        self._worker: threading.Thread | None = None
        self._closed = False
        self._hits = self._misses = 0
        self._batches: Counter[int] = Counter()

    def call(self, items: Sequence[Item], *, timeout_s: float | None = None) -> list[Result]:
        """Compute n items from any thread; the result has the order of the input.

        Raises:
            DeadlineExceededError: ``timeout_s`` ran out; the request is withdrawn.
            JudgeError: The batcher is closed. Also whatever ``run`` raises.
        """
        request = self._submit(items)
        try:
            found = request.future.result(timeout_s)
        except FutureTimeoutError:
            if not request.future.cancel():
                return self._ordered(items, request.future.result())
            raise DeadlineExceededError(f"the judge gave no answer in {timeout_s} s") from None
        except CancelledError:
            raise JudgeError("the request was withdrawn") from None
        except BaseException:
            request.future.cancel()
            raise
        return self._ordered(items, found)

    async def acall(self, items: Sequence[Item]) -> list[Result]:
        """Compute n items from a coroutine; cancelling it withdraws the request.

        Raises:
            JudgeError: The batcher is closed. Also whatever ``run`` raises.
        """
        request = self._submit(items)
        return self._ordered(items, await asyncio.wrap_future(request.future))

    def close(self, *, timeout_s: float | None = None) -> None:
        """Stop; callers still waiting get a ``JudgeError``.

        Args:
            timeout_s: Longest wait for the batch in work, seconds; None to wait for its end.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            worker = self._worker
            waiting = {id(r): r for r in self._outside}
            waiting |= {id(r): r for group in self._queued.values() for r in group}
            self._outside.clear()
            self._queued.clear()
        for request in waiting.values():
            request.fail(JudgeError("the judge was closed before it answered"))
        if worker is not None and worker is not threading.current_thread():
            worker.join(timeout_s)

    @property
    def waiting(self) -> int:
        """Items that wait to be computed, those of callers not yet let in included."""
        with self._changed:
            return len(self._queued) + sum(len(request.items) for request in self._outside)

    def in_use(self) -> Usage:
        """What waits, what was remembered, and how large the batches were."""
        waiting = self.waiting
        with self._changed:
            return Usage(
                queues={"judge": waiting},
                caches={"verdicts": CacheUse(hits=self._hits, misses=self._misses)},
                batches=self._batches,
            )

    @staticmethod
    def _ordered(items: Sequence[Item], found: dict[Item, Result]) -> list[Result]:
        return [found[item] for item in items]

    def _submit(self, items: Sequence[Item]) -> _Request[Item, Result]:
        request: _Request[Item, Result] = _Request(items)
        key = self._key() if request.items else ""
        request.future.add_done_callback(lambda future: self._withdraw(request, future))
        with self._changed:
            if self._closed:
                raise JudgeError("the judge is closed")
            for item in request.items:
                if (key, item) in self._cache:
                    self._cache.move_to_end((key, item))
                    request.found[item] = self._cache[key, item]
            self._hits += len(request.found)
            self._misses += len(request.items) - len(request.found)
            complete = len(request.found) == len(request.items)
            if not complete:
                self._outside.append(request)
                self._admit()
                self._start_worker()
                self._changed.notify_all()
        if complete:
            request.finish()
        return request

    def _admit(self) -> None:
        """Let callers in while there is room. Holds the lock."""
        while self._outside:
            request = self._outside[0]
            missing = [item for item in request.items if item not in request.found]
            fresh = [i for i in missing if i not in self._queued and i not in self._computed]
            if self._queued and len(self._queued) + len(fresh) > MAX_QUEUE:
                return
            self._outside.popleft()
            for item in missing:
                if item in self._computed:
                    self._computed[item].append(request)
                else:
                    self._queued.setdefault(item, []).append(request)

    def _withdraw(
        self, request: _Request[Item, Result], future: Future[dict[Item, Result]]
    ) -> None:
        """Forget a caller that gave up."""
        if not future.cancelled():
            return
        with self._changed:
            if request in self._outside:
                self._outside.remove(request)
            _take_out(request, self._queued)
            self._admit()
            self._changed.notify_all()

    def _start_worker(self) -> None:
        # A fork leaves the thread behind: the child's is not alive and must be made anew.
        if self._worker is None or not self._worker.is_alive():
            self._worker = threading.Thread(target=self._work, name="micro-batcher", daemon=True)
            self._worker.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                idle = not self._queued
                while not self._queued and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                if idle:
                    self._wait_for_company()
                size = min(len(self._queued), MAX_BATCH)
                batch = [self._queued.popitem(last=False) for _ in range(size)]
                self._computed = dict(batch)
                if batch:
                    self._batches[len(batch)] += 1
                self._admit()
            if batch:
                self._compute([item for item, _ in batch])

    def _wait_for_company(self) -> None:
        """Give other callers a moment. Holds the lock, which waiting releases."""
        end = time.monotonic() + WAIT_S
        while len(self._queued) < MAX_BATCH and not self._closed:
            left = end - time.monotonic()
            if left <= 0 or not self._changed.wait(left):
                return

    def _compute(self, items: Sequence[Item]) -> None:
        try:
            key = self._key()
            results = self._checked(items)
        except Exception as error:
            self._compute_apart(items, error)
            return
        self._deliver(key, dict(zip(items, results, strict=True)))

    def _checked(self, items: Sequence[Item]) -> Sequence[Result]:
        results = self._run(items)
        if len(results) != len(items):
            raise JudgeError(f"the judge gave {len(results)} results for {len(items)} items")
        return results

    def _compute_apart(self, items: Sequence[Item], error: Exception) -> None:
        """After a failure, give every caller its own batch."""
        with self._changed:
            callers = {id(r): r for item in items for r in self._computed.get(item, ())}
        wanted = set(items)
        done: set[Item] = set()
        for request in callers.values():
            own = [item for item in request.items if item in wanted - done]
            try:
                if len(callers) == 1:
                    raise error
                results = dict(zip(own, self._checked(own) if own else (), strict=True))
                done.update(own)
                self._deliver(self._key(), results)
            except Exception as again:
                self._drop(request)
                request.fail(again)
        with self._changed:
            joined, self._computed = self._computed, {}
            if not self._closed:
                for item, group in joined.items():  # callers that joined in the meantime
                    self._queued.setdefault(item, []).extend(group)
                self._admit()
                return
        for request in {id(r): r for group in joined.values() for r in group}.values():
            request.fail(JudgeError("the judge was closed before it answered"))

    def _drop(self, request: _Request[Item, Result]) -> None:
        """Take a failed request out of everything it still waits for."""
        with self._changed:
            _take_out(request, self._queued)
            _take_out(request, self._computed)

    def _deliver(self, key: str, results: dict[Item, Result]) -> None:
        with self._changed:
            for item, result in results.items():
                if self._cache_size:
                    self._cache[key, item] = result
                    self._cache.move_to_end((key, item))
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
            waiting = [(item, self._computed.pop(item, [])) for item in results]
        for item, requests in waiting:
            for request in requests:
                request.settle(item, results[item])


def _take_out(
    request: _Request[Item, Result], table: dict[Item, list[_Request[Item, Result]]]
) -> None:
    """Take a request out of the groups that wait for an item, and groups that are empty then."""
    for item in request.items:
        group = table.get(item)
        if group is not None and request in group:
            group.remove(request)
            if not group:
                del table[item]
