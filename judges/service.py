"""One judge for many callers: threads and coroutines share its batches and its memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from guardrail.core.types import Grounding, Judgement, NLIScores
from judges.base import (
    AttributionItem,
    AttributionJudge,
    GroundingItem,
    GroundingJudge,
    NLIJudge,
    NLITraits,
    Pair,
    traits_of,
)
from judges.microbatcher import CACHE_SIZE, MicroBatcher

__all__ = ["AttributionService", "GroundingService", "JudgeService"]

Judge = TypeVar("Judge", NLIJudge, AttributionJudge, GroundingJudge)
Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")


class _Service(MicroBatcher[Item, Result], Generic[Judge, Item, Result]):
    """What all services share.

    Args:
        judge: Does the work.
        cache_size: Results to remember; 0 for none.
    """

    def __init__(self, judge: Judge, *, cache_size: int = CACHE_SIZE) -> None:
        super().__init__(self._work_of(judge), key=lambda: judge.name, cache_size=cache_size)
        self._judge: Judge = judge

    @staticmethod
    @abstractmethod
    def _work_of(judge: Judge) -> Callable[[Sequence[Item]], Sequence[Result]]:
        """The method that computes a batch."""

    @property
    def name(self) -> str:
        """Name and version of the judge, for the score log."""
        return self._judge.name

    @property
    def traits(self) -> NLITraits:
        """What the judge can do."""
        return traits_of(self._judge)

    def warm_up(self) -> None:
        """Load the model; later calls do nothing."""
        self._judge.warm_up()


class JudgeService(_Service[NLIJudge, Pair, NLIScores]):
    """An NLI judge shared by threads and coroutines; itself an ``NLIJudge``."""

    @staticmethod
    def _work_of(judge: NLIJudge) -> Callable[[Sequence[Pair]], Sequence[NLIScores]]:
        return judge.judge

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs from any thread; see ``MicroBatcher.call``."""
        return self.call(pairs)

    async def ajudge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs from a coroutine; see ``MicroBatcher.acall``."""
        return await self.acall(pairs)


class AttributionService(_Service[AttributionJudge, AttributionItem, Judgement]):
    """An attribution judge shared by threads and coroutines; itself an ``AttributionJudge``."""

    @staticmethod
    def _work_of(judge: AttributionJudge) -> Callable[[Sequence[AttributionItem]], list[Judgement]]:
        return judge.attribute

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items from any thread; see ``MicroBatcher.call``."""
        return self.call(items)


class GroundingService(_Service[GroundingJudge, GroundingItem, Grounding]):
    """A grounding judge shared by threads and coroutines; itself a ``GroundingJudge``."""

    @staticmethod
    def _work_of(judge: GroundingJudge) -> Callable[[Sequence[GroundingItem]], list[Grounding]]:
        return judge.ground

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n items from any thread; see ``MicroBatcher.call``."""
        return self.call(items)
