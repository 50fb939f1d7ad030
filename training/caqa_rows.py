"""Rows of the attribution and complexity heads, built from graphs as the CAQA benchmark is."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.caqa.build import build_rows
from benchmarks.caqa.graph import FactGraph
from benchmarks.caqa.rows import CAQARow, Split
from judges.folder import HEADS
from training.rows import Row

__all__ = ["attribution_rows", "caqa_rows"]

TRAINING_DECOYS = 0.5
"""Share of training rows with decoys; plain edits in the others teach matching sooner."""
_NLI_OF = tuple(HEADS["nli"].index(label) for label in (
    "entailment", "neutral", "contradiction", "neutral"))  # fmt: skip
"""NLI label by category: a training row teaches the NLI head too, which learns to match facts."""


def caqa_rows(graph: FactGraph, *, rows: int, seed: int, split: Split) -> list[Row]:
    """Build rows of one split; splits share no entity with facts of its own.

    Relations of the split ``test_relations`` occur in no other.

    Args:
        graph: All facts.
        rows: Number of rows.
        seed: Seed of all choices.
        split: Part of the benchmark.
    """
    if split == "train":
        made = build_rows(graph, n=rows, seed=seed, split=split, decoys=TRAINING_DECOYS)
        return [
            row._replace(nli=_NLI_OF[row.attribution[0]]) for row in attribution_rows(made, "caqa")
        ]
    return attribution_rows(build_rows(graph, n=rows, seed=seed, split=split), f"caqa_{split}")


def attribution_rows(rows: Iterable[CAQARow], source: str) -> list[Row]:
    """Benchmark rows as the judge reads them: evidence, then question and answer."""
    return [
        Row(
            premise=" ".join(row.evidence),
            hypothesis=f"{row.question} {row.answer}",
            source=source,
            attribution=(HEADS["attribution"].index(row.category.value),),
            complexity=HEADS["complexity"].index(row.complexity.value),
        )
        for row in rows
    ]
