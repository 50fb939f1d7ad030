"""Keeps the load on an endpoint within bounds: rate limit, breaker, and what is remembered here."""

from __future__ import annotations

import threading
import time
from typing import Final, Generic, TypeVar

from guardrail.core.token_bucket import TokenBucket

__all__ = ["CircuitBreaker", "RateLimit", "TimedCache", "keep"]

K = TypeVar("K")
V = TypeVar("V")

_NEVER: Final = float("-inf")


class RateLimit:
    """Spaces calls out to at most so many a second, of which one second's worth may come at once.

    Args:
        per_second: Calls a second; None for no limit.
    """

    def __init__(self, per_second: float | None) -> None:
        self._lock = threading.Lock()
        self._bucket = TokenBucket(per_second, max(1.0, per_second)) if per_second else None

    def take(self, until: float) -> bool:
        """Wait for a turn.

        Args:
            until: Time of the monotonic clock at which to give up.

        Returns:
            Whether the turn came in time.
        """
        if self._bucket is None:
            return True
        with self._lock:
            pause = self._bucket.wait()
            if time.monotonic() + pause > until:
                return False
            self._bucket.take()
        time.sleep(pause)
        return True


class CircuitBreaker:
    """Stops calls to an endpoint that failed several times in a row, and tries again later.

    Args:
        failures: Failures in a row that open it; None for never.
        pause_s: Seconds until one call is let through again; if it fails, as long once more.
    """

    def __init__(self, failures: int | None, pause_s: float) -> None:
        self._most, self._pause = failures, pause_s
        self._lock = threading.Lock()
        self._failed = 0
        self._opened = _NEVER
        self._trying = False

    def closed_in(self) -> float:
        """Seconds until a call is let through; 0 to go ahead, which counts as the trial call."""
        with self._lock:
            if self._most is None or self._failed < self._most:
                return 0.0
            left = self._opened + self._pause - time.monotonic()
            if left <= 0 and not self._trying:
                self._trying = True
                return 0.0
            return max(left, 0.01)

    def succeeded(self) -> None:
        """Close it."""
        with self._lock:
            self._failed, self._trying = 0, False

    def unasked(self) -> None:
        """Leave it as it is: the call was not made, so that the next one may be the trial."""
        with self._lock:
            self._trying = False

    def failed(self) -> None:
        """Count a failure."""
        with self._lock:
            self._failed += 1
            self._opened, self._trying = time.monotonic(), False


def keep(known: dict[K, V], key: K, value: V, *, most: int) -> V:
    """Keep a value among at most so many: all others go where it finds no place.

    So plain dictionaries are safe between threads, and what is lost is read again.
    """
    if len(known) >= most:
        known.clear()
    known[key] = value
    return value


class TimedCache(Generic[K, V]):
    """Values by key, for a time; emptied when it is full. Safe between threads.

    Args:
        most: Values kept.
        keep_s: Seconds that a value is good for.
    """

    def __init__(self, most: int, keep_s: float) -> None:
        self._most, self._keep = most, keep_s
        self._values: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        """The value of a key, None where there is none that is fresh."""
        found = self._values.get(key)
        return None if found is None or found[0] < time.monotonic() else found[1]

    def put(self, key: K, value: V) -> None:
        """Keep a value."""
        keep(self._values, key, (time.monotonic() + self._keep, value), most=self._most)
