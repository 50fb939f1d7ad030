"""Who is told of every assertion on an answer: pytest's plugin, while one of its tests runs.

pytest loads this with its plugin at every start, so it imports nothing of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guardrail.core.types import GuardedAnswer
    from guardrail.evaluation.assessment import Assessment

__all__ = ["observed_by", "tell_observer"]

# No context variable: a test may assert in a thread of its own, which would not see it.
_observers: list[Callable[[GuardedAnswer, Assessment], None]] = []


@contextmanager
def observed_by(observer: Callable[[GuardedAnswer, Assessment], None]) -> Iterator[None]:
    """Tell an observer of all assertions until the end, in place of the one before."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def tell_observer(answer: GuardedAnswer, found: Assessment) -> None:
    """Tell of an answer that was held against a requirement; of nobody's interest without one."""
    for observer in _observers[-1:]:
        observer(answer, found)
