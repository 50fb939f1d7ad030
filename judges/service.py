"""One judge for many callers: threads share its batches and its cache."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Generic, TypeVar

from guardrail.core.errors import DeadlineExceededError, JudgeError
from guardrail.core.types import CacheUse, Grounding, NLIScores, Usage
from guardrail.core.workers import Closing
from judges.base import (
    GroundingItem,
    GroundingJudge,
    Judge,
    JudgeAround,
    NLIJudge,
    Pair,
)

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")

CACHE_SIZE = 65_536
"""Default number of cached results; about 50 MB with short texts."""


class _Request(Generic[Item, Result]):
    """Pending request of one caller."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = list(dict.fromkeys(items))
        self.found: dict[Item, Result] = {}
        self.future: Future[dict[Item, Result]] = Future()

    def settle(self, results: dict[Item, Result]) -> None:
        """Accept results; the last one wakes the caller."""
        self.found.update((item, results[item]) for item in self.items if item in results)
        if len(self.found) == len(self.items) and not self.future.done():
            self.future.set_result(self.found)

    def fail(self, error: BaseException) -> None:
        """Pass an error to the caller."""
        if not self.future.done():
            self.future.set_exception(error)


class MicroBatcher(Closing, Generic[Item, Result]):
    """Merges items of concurrent callers into batches for one function, and caches results.

    The next batch fills while one is computed; an idle batcher waits briefly for more items. An
    item that several callers request at the same time is computed once. A caller that gives up
    withdraws the items that only it requested. When a batch fails, each caller's items are retried
    alone, so that the error reaches only the callers whose items caused it.

    Args:
        run: Computes a batch; called from one thread at a time.
        key: Names what ``run`` depends on, for the cache; called once per batch.
        cache_size: Results to cache, least recently used dropped first; 0 for none.
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
        if not items:
            return []
        request = self._submit(items)
        try:
            found = request.future.result(timeout_s)
        except FutureTimeoutError:
            with self._changed:
                self._withdraw(request)
            if not request.future.done():
                raise DeadlineExceededError(f"the judge gave no answer in {timeout_s} s") from None
            found = request.future.result()
        return [found[item] for item in items]

    def close(self, *, timeout_s: float | None = None) -> None:
        """Stop; callers still waiting get a ``JudgeError``.

        Args:
            timeout_s: Longest wait for the batch in work, seconds; None to wait for its end.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            worker, queued, self._queued = self._worker, self._queued, OrderedDict()
            _fail_closed(queued)
        if worker is not None and worker is not threading.current_thread():
            worker.join(timeout_s)

    def in_use(self) -> Usage:
        """Length of the queue, use of the cache, and sizes of the batches."""
        with self._changed:
            return Usage(
                queues={"judge": len(self._queued)},
                caches={"verdicts": CacheUse(hits=self._hits, misses=self._misses)},
                batches=self._batches,
            )

    def _submit(self, items: Sequence[Item]) -> _Request[Item, Result]:
        request: _Request[Item, Result] = _Request(items)
        key = self._key()
        with self._changed:
            if self._closed:
                raise JudgeError("the judge is closed")
            known = [item for item in request.items if (key, item) in self._cache]
            for item in known:
                self._cache.move_to_end((key, item))
            self._hits += len(known)
            self._misses += len(request.items) - len(known)
            request.settle({item: self._cache[key, item] for item in known})
            for item in request.items:
                if item in self._computed and item not in request.found:
                    self._computed[item].append(request)
                elif item not in request.found:
                    self._queued.setdefault(item, []).append(request)
            # A fork leaves the thread behind: the child's is not alive and must be made anew.
            if self._queued and (self._worker is None or not self._worker.is_alive()):
                self._worker = threading.Thread(
                    target=self._work, name="micro-batcher", daemon=True
                )
                self._worker.start()
            self._changed.notify_all()
        return request

    def _withdraw(self, request: _Request[Item, Result]) -> None:
        """Remove a caller that gave up or failed; the lock must be held."""
        for table in (self._queued, self._computed):
            for item in request.items:
                group = table.get(item, [])
                if request in group:
                    group.remove(request)
                    if not group:
                        del table[item]

    def _work(self) -> None:
        most = 512  # items of a batch
        while True:
            with self._changed:
                idle = not self._queued
                self._changed.wait_for(lambda: self._queued or self._closed)
                if self._closed:
                    return
                if idle:
                    # Wait for a tenth of the time that eight pairs take on two cores.
                    end = time.monotonic() + 0.002
                    while len(self._queued) < most and not self._closed:
                        left = end - time.monotonic()
                        if left <= 0 or not self._changed.wait(left):
                            break
                size = min(len(self._queued), most)
                batch = [self._queued.popitem(last=False) for _ in range(size)]
                self._computed = dict(batch)
                if batch:
                    self._batches[len(batch)] += 1
            items = [item for item, _ in batch]
            try:
                self._compute(items)
            except Exception as error:
                self._compute_apart(items, error)

    def _compute(self, items: Sequence[Item]) -> None:
        """Compute items, cache their results, and hand them to the callers."""
        if not items:
            return
        key, results = self._key(), self._run(items)
        if len(results) != len(items):
            raise JudgeError(f"the judge gave {len(results)} results for {len(items)} items")
        found = dict(zip(items, results, strict=True))
        with self._changed:
            if self._cache_size:
                self._cache.update(((key, item), result) for item, result in found.items())
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
            for request in _callers(self._computed.pop(item, []) for item in items):
                request.settle(found)

    def _compute_apart(self, items: Sequence[Item], error: Exception) -> None:
        """After a failure, give every caller its own batch."""
        with self._changed:
            callers = _callers(self._computed.get(item, []) for item in items)
        left = set(items)
        for request in callers:
            own = [item for item in request.items if item in left]
            try:
                if len(callers) == 1:
                    raise error
                self._compute(own)
            except Exception as again:
                with self._changed:
                    self._withdraw(request)
                    request.fail(again)
            else:
                left.difference_update(own)
        with self._changed:
            joined, self._computed = self._computed, {}  # callers that joined in the meantime
            if self._closed:
                _fail_closed(joined)
                return
            for item, group in joined.items():
                self._queued.setdefault(item, []).extend(group)


def _callers(
    groups: Iterable[list[_Request[Item, Result]]],
) -> list[_Request[Item, Result]]:
    """The distinct requests of several groups."""
    return list(dict.fromkeys(request for group in groups for request in group))


def _fail_closed(table: dict[Item, list[_Request[Item, Result]]]) -> None:
    for request in _callers(table.values()):
        request.fail(JudgeError("the judge was closed before it answered"))


class _Service(JudgeAround[Judge], MicroBatcher[Item, Result]):
    """Base of the services.

    Args:
        judge: Does the work.
        work: Its method that computes a batch.
        cache_size: Results to cache; 0 for none.
    """

    def __init__(
        self, judge: Judge, work: Callable[[Sequence[Item]], Sequence[Result]], cache_size: int
    ) -> None:
        JudgeAround.__init__(self, judge)
        MicroBatcher.__init__(self, work, key=lambda: judge.name, cache_size=cache_size)


class JudgeService(_Service[Pair, NLIScores]):
    """An NLI judge shared by threads; itself an ``NLIJudge``."""

    def __init__(self, judge: NLIJudge, *, cache_size: int = CACHE_SIZE) -> None:
        super().__init__(judge, judge.judge, cache_size)

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs from any thread; see ``MicroBatcher.call``."""
        return self.call(pairs)


class GroundingService(_Service[GroundingItem, Grounding]):
    """A grounding judge shared by threads; itself a ``GroundingJudge``."""

    def __init__(self, judge: GroundingJudge, *, cache_size: int = CACHE_SIZE) -> None:
        super().__init__(judge, judge.ground, cache_size)

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n items from any thread; see ``MicroBatcher.call``."""
        return self.call(items)


class RememberedGrounding(JudgeAround[GroundingJudge]):
    """A grounding judge with an unbounded cache and no thread.

    It serves one answer that is judged repeatedly while it grows.
    """

    def __init__(self, judge: GroundingJudge) -> None:
        super().__init__(judge)
        self._known: dict[GroundingItem, Grounding] = {}

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n items; see ``GroundingJudge``."""
        new = [item for item in dict.fromkeys(items) if item not in self._known]
        if new:
            self._known.update(zip(new, self._inner.ground(new), strict=True))
        return [self._known[item] for item in items]
