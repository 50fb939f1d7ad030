"""Work that nobody waits for any more stops by itself: a thread cannot be stopped from outside."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from guardrail.core.errors import GuardrailError

__all__ = ["GivenUpError", "stop_if_given_up", "time_left", "watch", "within"]

_GIVEN_UP: ContextVar[Callable[[], bool]] = ContextVar("guardrail_given_up", default=lambda: False)
_UNTIL: ContextVar[float] = ContextVar("guardrail_until", default=math.inf)


class GivenUpError(GuardrailError):
    """The caller went away, or its time ran out, before the work was done."""


def watch(given_up: Callable[[], bool]) -> None:
    """Name, in this context, what tells whether its work was given up."""
    _GIVEN_UP.set(given_up)


def stop_if_given_up() -> None:
    """Stop here where nobody waits for the result.

    Raises:
        GivenUpError: Nobody does.
    """
    if _GIVEN_UP.get()():
        raise GivenUpError("nobody waits for this answer any more")


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
