"""The two uses of Q_know (CONNER 5): choosing knowledge and choosing demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from guardrail.core.types import Score, Value
from judges.conner.report import ConnerInput, ConnerReport, QualityWeights

if TYPE_CHECKING:
    from judges.conner.scorer import ConnerScorer

__all__ = ["Selected", "quality", "rank", "select_demonstrations", "select_knowledge"]

RowT = TypeVar("RowT")

DEMONSTRATIONS_N = 8
"""Demonstrations kept of m = 30 (CONNER 5)."""


class Selected(Value):
    """A chosen row: its place in the input, its quality and its report."""

    index: int
    quality: float | None
    report: ConnerReport


def quality(report: ConnerReport, weights: QualityWeights) -> Score:
    """Q_know = γᵀ·(factuality, relevance, paragraph coherence, informativeness) (eq. 9).

    A perspective without a value is left out of sum and total weight, so that texts scored with
    the same models stay comparable.
    """
    parts = [
        ("factuality", weights.factuality, report.factuality.value),
        ("relevance", weights.relevance, report.relevance.value),
        ("coherence", weights.coherence, report.coherence_paragraph.value),
        ("informativeness", weights.informativeness, report.informativeness.value),
    ]
    present = [(name, weight, value) for name, weight, value in parts if value is not None]
    total = sum(weight for _, weight, _ in present)
    if not total:
        return Score(reason="no intrinsic perspective with a weight has a value")
    scale = sum(weight for _, weight, _ in parts) / total
    return Score(
        value=scale * sum(weight * value for _, weight, value in present),
        evidence=tuple(f"{weight:g} × {name} {value:.4f}" for name, weight, value in present),
    )


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
