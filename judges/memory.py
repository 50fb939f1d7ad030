"""A judge that remembers, for one answer that is looked at again and again while it grows.

``judges.service`` shares one memory among many callers; this one lives as long as its answer and
needs no thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.core.types import Grounding
from judges.base import GroundingItem, GroundingJudge, JudgeAround

__all__ = ["RememberedGrounding"]


class RememberedGrounding(JudgeAround[GroundingJudge]):
    """A grounding judge that is asked about each item once."""

    def __init__(self, judge: GroundingJudge) -> None:
        super().__init__(judge)
        self._known: dict[GroundingItem, Grounding] = {}

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n items; see ``GroundingJudge``."""
        new = [item for item in dict.fromkeys(items) if item not in self._known]
        if new:
            self._known.update(zip(new, self._inner.ground(new), strict=True))
        return [self._known[item] for item in items]
