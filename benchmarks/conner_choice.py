"""The two uses of Q_know (CONNER 5): choosing knowledge and choosing demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardrail.core.types import Value
from judges.conner import ConnerReport

if TYPE_CHECKING:
    from judges.conner import ConnerInput, ConnerScorer

__all__ = ["Selected", "rank", "select_demonstrations", "select_knowledge"]

DEMONSTRATIONS_N = 8
"""Demonstrations kept of m = 30 (CONNER 5)."""


class Selected(Value):
    """A row that was chosen, its place in the input and why."""

    index: int
    quality: float | None
    report: ConnerReport


def select_knowledge(scorer: ConnerScorer, candidates: Sequence[ConnerInput]) -> Selected:
    """Choose the candidate with the highest Q_know; the first of equals (CONNER 5).

    Args:
        scorer: Scores all candidates in one call.
        candidates: r >= 1 texts for one query, sampled with top-p 0.9 in the paper (r = 5).

    Raises:
        ValueError: There are no candidates.
    """
    if not candidates:
        raise ValueError("select_knowledge needs at least one candidate")
    return rank(scorer.score(candidates))[0]


def select_demonstrations(
    scorer: ConnerScorer, pool: Sequence[ConnerInput], n: int = DEMONSTRATIONS_N
) -> list[Selected]:
    """Choose the n demonstrations of highest Q_know from a pool of m, best first (CONNER 5)."""
    return rank(scorer.score(pool))[:n]


def rank(reports: Sequence[ConnerReport]) -> list[Selected]:
    """Order n reports by Q_know, best first; equals stay in order, those without value go last."""
    selected = [
        Selected(index=index, quality=report.quality.value, report=report)
        for index, report in enumerate(reports)
    ]
    return sorted(
        selected,
        key=lambda row: -float("inf") if row.quality is None else row.quality,
        reverse=True,
    )
