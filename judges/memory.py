"""A judge that remembers, for one answer that is looked at again and again while it grows.

``judges.service`` shares one memory among many callers; this one lives as long as its answer and
needs no thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.core.types import Grounding
from judges.base import GroundingItem, GroundingJudge

__all__ = ["RememberedGrounding"]


class RememberedGrounding:
    """A grounding judge that is asked about each item once."""

    def __init__(self, judge: GroundingJudge) -> None:
        self._judge = judge
        self._known: dict[GroundingItem, Grounding] = {}

    @property
    def name(self) -> str:
        """Name of the judge."""
        return self._judge.name

    def warm_up(self) -> None:
        """Load the model."""
        self._judge.warm_up()

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n items; see ``GroundingJudge``."""
        new = [item for item in dict.fromkeys(items) if item not in self._known]
        if new:
            self._known.update(zip(new, self._judge.ground(new), strict=True))
        return [self._known[item] for item in items]
