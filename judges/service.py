"""One judge for many callers: threads and coroutines share its batches and its memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from guardrail.core.types import Grounding, Judgement, NLIScores
from judges.base import (
    AttributionItem,
    AttributionJudge,
    GroundingItem,
    GroundingJudge,
    Judge,
    JudgeAround,
    NLIJudge,
    Pair,
)
from judges.microbatcher import CACHE_SIZE, MicroBatcher

__all__ = ["AttributionService", "GroundingService", "JudgeService"]

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")


class _Service(JudgeAround[Judge], MicroBatcher[Item, Result]):
    """What all services share.

    Args:
        judge: Does the work.
        work: Its method that computes a batch.
        cache_size: Results to remember; 0 for none.
    """

    def __init__(
        self, judge: Judge, work: Callable[[Sequence[Item]], Sequence[Result]], cache_size: int
    ) -> None:
        JudgeAround.__init__(self, judge)
        MicroBatcher.__init__(self, work, key=lambda: judge.name, cache_size=cache_size)


class JudgeService(_Service[Pair, NLIScores]):
    """An NLI judge shared by threads and coroutines; itself an ``NLIJudge``."""

    def __init__(self, judge: NLIJudge, *, cache_size: int = CACHE_SIZE) -> None:
        super().__init__(judge, judge.judge, cache_size)

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs from any thread; see ``MicroBatcher.call``."""
        return self.call(pairs)


class AttributionService(_Service[AttributionItem, Judgement]):
    """An attribution judge shared by threads and coroutines; itself an ``AttributionJudge``."""

    def __init__(self, judge: AttributionJudge, *, cache_size: int = CACHE_SIZE) -> None:
        super().__init__(judge, judge.attribute, cache_size)

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items from any thread; see ``MicroBatcher.call``."""
        return self.call(items)


class GroundingService(_Service[GroundingItem, Grounding]):
    """A grounding judge shared by threads and coroutines; itself a ``GroundingJudge``."""

    def __init__(self, judge: GroundingJudge, *, cache_size: int = CACHE_SIZE) -> None:
        super().__init__(judge, judge.ground, cache_size)

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n items from any thread; see ``MicroBatcher.call``."""
        return self.call(items)
