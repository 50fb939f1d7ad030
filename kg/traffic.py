"""Limits the load on an endpoint: rate limit, circuit breaker and caches."""

from __future__ import annotations

import threading
import time
from typing import Final, Generic, TypeVar

from guardrail.core.http_clients import TokenBucket

__all__ = ["CircuitBreaker", "RateLimit", "TimedCache", "keep"]

K = TypeVar("K")
V = TypeVar("V")

_NEVER: Final = float("-inf")


class RateLimit:
    """Limits the rate of calls, with bursts of up to one second's calls.

    Args:
        per_second: Calls per second; None for no limit.
    """

    def __init__(self, per_second: float | None) -> None:
        self._lock = threading.Lock()
        self._bucket = TokenBucket(per_second, max(1.0, per_second)) if per_second else None

    def take(self, until: float) -> bool:
        """Wait until a call is allowed.

        Args:
            until: Time of the monotonic clock at which to give up.

        Returns:
            False if it would take longer.
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
    """Pauses calls to an endpoint that failed several times in a row.

    Args:
        failures: Consecutive failures that open it; None for never.
        pause_s: Seconds until a trial call; if that fails, the pause begins again.
    """

    def __init__(self, failures: int | None, pause_s: float) -> None:
        self._most, self._pause = failures, pause_s
        self._lock = threading.Lock()
        self._failed = 0
        self._opened = _NEVER
        self._trying = False

    def closed_in(self) -> float:
        """Seconds until a call is allowed; 0 allows it, as a trial if the breaker is open."""
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

    def skipped(self) -> None:
        """The call was not made, so the next one may be the trial."""
        with self._lock:
            self._trying = False

    def failed(self) -> None:
        """Count a failure."""
        with self._lock:
            self._failed += 1
            self._opened, self._trying = time.monotonic(), False


def keep(known: dict[K, V], key: K, value: V, *, most: int) -> V:
    """Store a value in a cache of bounded size, which is cleared when it is full.

    This keeps plain dictionaries safe between threads; lost values are read again.
    """
    if len(known) >= most:
        known.clear()
    known[key] = value
    return value


class TimedCache(Generic[K, V]):
    """A cache with expiry, cleared when it is full. Safe between threads.

    Args:
        most: Maximum number of values.
        keep_s: Seconds until a value expires.
    """

    def __init__(self, most: int, keep_s: float) -> None:
        self._most, self._keep = most, keep_s
        self._values: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        """The value of a key; None if it is missing or expired."""
        found = self._values.get(key)
        return None if found is None or found[0] < time.monotonic() else found[1]

    def put(self, key: K, value: V) -> None:
        """Store a value."""
        keep(self._values, key, (time.monotonic() + self._keep, value), most=self._most)
