"""One judge for many callers: threads share its batches and its cache."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import ClassVar, Generic, NamedTuple, TypeVar

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


class _Request(NamedTuple, Generic[Item, Result]):
    """Distinct items of one caller, who waits for all their results."""

    items: tuple[Item, ...]
    future: Future[dict[Item, Result]]


class MicroBatcher(Closing, Generic[Item, Result]):
    """Merges requests of concurrent callers into batches for one function, and caches results.

    The next batch fills while one is computed; an idle batcher waits briefly for more items. An
    item that several callers wait for is computed once. The request of a caller that gives up is
    dropped. When a batch fails, each request is retried alone, so that the error reaches only the
    callers whose items caused it.

    Args:
        run: Computes a batch; called from one thread at a time.
        key: Names what ``run`` depends on, for the cache; called once per batch.
        cache_size: Results to cache, least recently used dropped first; 0 for none.
    """

    _most: ClassVar[int] = 512
    """Items that are computed at once."""

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
        self._queue: deque[_Request[Item, Result]] = deque()
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
        request: _Request[Item, Result] = _Request(tuple(dict.fromkeys(items)), Future())
        self._submit(request)
        try:
            found = request.future.result(timeout_s)
        except FutureTimeoutError:
            with self._changed:
                given_up = request.future.cancel()
            if given_up:
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
            worker, closed = self._worker, JudgeError("the judge was closed before it answered")
            while self._queue:
                _fail(self._queue.popleft(), closed)
        if worker is not None and worker is not threading.current_thread():
            worker.join(timeout_s)

    def in_use(self) -> Usage:
        """Number of waiting items, use of the cache, and sizes of the batches."""
        with self._changed:
            return Usage(
                queues={"judge": len(_items_of(self._queue))},
                caches={"verdicts": CacheUse(hits=self._hits, misses=self._misses)},
                batches=self._batches,
            )

    def _submit(self, request: _Request[Item, Result]) -> None:
        """Answer a request from the cache, or queue it."""
        key = self._key()
        with self._changed:
            if self._closed:
                raise JudgeError("the judge is closed")
            known = self._cached(key, request.items)
            self._hits += len(known)
            self._misses += len(request.items) - len(known)
            if len(known) == len(request.items):
                request.future.set_result(known)
                return
            self._queue.append(request)
            # A fork leaves the thread behind: the child's is not alive and must be made anew.
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(
                    target=self._work, name="micro-batcher", daemon=True
                )
                self._worker.start()
            self._changed.notify_all()

    def _cached(self, key: str, items: Iterable[Item]) -> dict[Item, Result]:
        """The cached results among n items, which now count as used; the lock must be held."""
        known = {item: self._cache[key, item] for item in items if (key, item) in self._cache}
        for item in known:
            self._cache.move_to_end((key, item))
        return known

    def _work(self) -> None:
        while batch := self._next_batch():
            try:
                self._answer(batch)
            except Exception as error:
                for request in batch:
                    try:
                        if len(batch) == 1:
                            raise error
                        self._answer([request])
                    except Exception as own:
                        with self._changed:
                            _fail(request, own)

    def _next_batch(self) -> list[_Request[Item, Result]]:
        """Wait for requests and take the first ones; none once the batcher is closed."""
        with self._changed:
            idle = not self._queue
            self._changed.wait_for(lambda: self._queue or self._closed)
            if idle:
                # Wait for a tenth of the time that eight pairs take on two cores.
                end = time.monotonic() + 0.002
                while not self._closed and self._most > sum(len(one.items) for one in self._queue):
                    left = end - time.monotonic()
                    if left <= 0 or not self._changed.wait(left):
                        break
            batch: list[_Request[Item, Result]] = []
            size = 0
            while self._queue and size < self._most:
                batch.append(self._queue.popleft())
                size += len(batch[-1].items)
            return batch

    def _answer(self, batch: Sequence[_Request[Item, Result]]) -> None:
        """Compute what the cache lacks of a batch, and hand every caller its results."""
        key = self._key()
        with self._changed:
            wanted = _items_of(batch)
            found = self._cached(key, wanted)
        missing = [item for item in wanted if item not in found]
        for first in range(0, len(missing), self._most):
            if not _items_of(batch):
                return
            items = missing[first : first + self._most]
            with self._changed:
                self._batches[len(items)] += 1
            results = self._run(items)
            if len(results) != len(items):
                raise JudgeError(f"the judge gave {len(results)} results for {len(items)} items")
            found.update(zip(items, results, strict=True))
        with self._changed:
            if self._cache_size:
                self._cache.update(((key, item), found[item]) for item in missing)
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
            for request in batch:
                if not request.future.done():
                    request.future.set_result({item: found[item] for item in request.items})


def _items_of(requests: Iterable[_Request[Item, Result]]) -> list[Item]:
    """The distinct items of the requests that somebody still waits for."""
    waiting = (request for request in requests if not request.future.done())
    return list(dict.fromkeys(item for request in waiting for item in request.items))


def _fail(request: _Request[Item, Result], error: BaseException) -> None:
    """Pass an error to the caller, if it still waits; the lock must be held."""
    if not request.future.done():
        request.future.set_exception(error)


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
