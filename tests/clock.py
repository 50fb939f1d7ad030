"""Time without waiting: a clock that moves by hand, and waiting for what is sure to come."""

import asyncio
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

PATIENCE_S = 300.0
"""For what comes at once: even a machine that does much else has come to it by then."""


class HandClock:
    """Fake of the module ``time`` whose clock advances only when something sleeps.

    Attributes:
        now: What it shows, in seconds.
        slept: How long each sleep was.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """What it shows."""
        return self.now

    def time(self) -> float:
        """The date, which it does not move."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Let the time pass at once."""
        self.slept.append(seconds)
        self.now += seconds

    def runs(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> "HandClock":
        """Be the time of some modules."""
        for module in modules:
            monkeypatch.setattr(module, "time", self)
        return self


class Deadline:
    """In place of ``asyncio.timeout``: it ends when a test says so, not when a clock does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
        self._running: list[tuple[asyncio.AbstractEventLoop, asyncio.Timeout]] = []
        own = SimpleNamespace(**{**vars(asyncio), "timeout": self._timeout})
        monkeypatch.setattr(module, "asyncio", own)

    def _timeout(self, seconds: float | None) -> asyncio.Timeout:
        self._running.append((asyncio.get_running_loop(), asyncio.timeout(None)))
        return self._running[-1][1]

    def end(self) -> None:
        """Let it end, from any thread."""
        for loop, running in self._running:
            loop.call_soon_threadsafe(running.reschedule, loop.time())


def until(condition: Callable[[], object]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.002)
