"""Work that nobody waits for any more stops by itself: a thread cannot be stopped from outside."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from guardrail.core.errors import GuardrailError

__all__ = ["GivenUpError", "stop_if_given_up", "watch"]

_GIVEN_UP: ContextVar[Callable[[], bool]] = ContextVar("guardrail_given_up", default=lambda: False)


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
