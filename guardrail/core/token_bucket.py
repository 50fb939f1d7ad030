"""A token bucket: so many calls a second, and some at once after a quiet time."""

from __future__ import annotations

import time

__all__ = ["TokenBucket"]


class TokenBucket:
    """Counts calls; whoever uses it from several threads holds a lock.

    Args:
        per_second: Tokens that come in a second.
        capacity: Most tokens that gather; the bucket begins full.
    """

    def __init__(self, per_second: float, capacity: float) -> None:
        self._rate, self._capacity = per_second, capacity
        self._tokens, self._filled = capacity, time.monotonic()

    def wait(self) -> float:
        """Return the seconds until there is a token; 0 if there is one."""
        now = time.monotonic()
        gained = (now - self._filled) * self._rate
        self._tokens, self._filled = min(self._capacity, self._tokens + gained), now
        return max(0.0, (1.0 - self._tokens) / self._rate)

    def take(self) -> None:
        """Take a token, also one that is still to come: who takes the next waits behind it."""
        self._tokens -= 1.0
