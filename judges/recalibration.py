"""A chat judge whose calibration is fitted: asked once, calibrated anew as often as needed."""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.core.errors import JudgeError
from guardrail.core.types import Grounding, NLIScores
from judges.base import GroundingItem, Pair
from judges.calibration import Calibration
from judges.chat import ChatJudge, Cost, calibrated, given

__all__ = ["RecalibratedJudge"]


class RecalibratedJudge:
    """A chat judge that is asked about each sentence once, with a calibration that may change.

    Args:
        inner: The judge, without a calibration of its own.
    """

    follows_instructions = True
    traits = ChatJudge.traits

    def __init__(self, inner: ChatJudge) -> None:
        self._inner = inner
        self.calibration = Calibration()
        self._known: dict[GroundingItem, Grounding | JudgeError] = {}
        self.name = inner.name
        self.warm_up = inner.warm_up
        self.close = inner.close
        self.in_use = inner.in_use

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs, not calibrated; see ``NLIJudge``."""
        return self._inner.judge(pairs)

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences; see ``GroundingJudge``."""
        return given(self.answers(items))

    def answers(self, items: Sequence[GroundingItem]) -> list[Grounding | JudgeError]:
        """Judge n sentences; an error for each that has no answer."""
        new = [item for item in dict.fromkeys(items) if item not in self._known]
        if new:
            self._known.update(zip(new, self._inner.answers(new), strict=True))
        found = [self._known[item] for item in items]
        return [
            calibrated(item, self.calibration) if isinstance(item, Grounding) else item
            for item in found
        ]

    def estimate(self, items: Sequence[GroundingItem]) -> Cost:
        """See ``ChatJudge.estimate``."""
        return self._inner.estimate(items)
