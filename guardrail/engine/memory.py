"""Judges that remember, for one answer that is looked at again and again while it grows.

``judges.service`` shares one memory among many callers; this one lives as long as its answer and
needs no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from guardrail.types import Judgement, NLIScores
from judges.base import AttributionItem, AttributionJudge, NLIJudge, Pair

__all__ = ["RememberedAttribution", "RememberedNLI"]

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")


class _Memory(Generic[Item, Result]):
    def __init__(self, run: Callable[[Sequence[Item]], Sequence[Result]]) -> None:
        self._run = run
        self._known: dict[Item, Result] = {}

    def __call__(self, items: Sequence[Item]) -> list[Result]:
        new = [item for item in dict.fromkeys(items) if item not in self._known]
        if new:
            self._known.update(zip(new, self._run(new), strict=True))
        return [self._known[item] for item in items]


class RememberedNLI:
    """An NLI judge that is asked about each pair once.

    Args:
        judge: Does the work.
    """

    def __init__(self, judge: NLIJudge) -> None:
        self._judge = judge
        self._memory = _Memory(judge.judge)

    @property
    def name(self) -> str:
        """Name of the judge."""
        return self._judge.name

    def warm_up(self) -> None:
        """Load the model."""
        self._judge.warm_up()

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs, in order.

        Raises:
            JudgeError: The judge failed.
        """
        return self._memory(pairs)


class RememberedAttribution:
    """An attribution judge that is asked about each item once.

    Args:
        judge: Does the work.
    """

    def __init__(self, judge: AttributionJudge) -> None:
        self._judge = judge
        self._memory = _Memory(judge.attribute)

    @property
    def name(self) -> str:
        """Name of the judge."""
        return self._judge.name

    def warm_up(self) -> None:
        """Load the model."""
        self._judge.warm_up()

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items, in order.

        Raises:
            JudgeError: The judge failed.
        """
        return self._memory(items)
