"""What a judge's heads answer, and what its description says."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from guardrail.core.types import Category, Complexity
from guardrail.core.types.weighing import Weighing
from judges.calibration import Calibration
from judges.folder import Card

__all__ = ["HEADS", "STATEMENT_MARK", "TOKEN_HEADS", "JudgeCard"]

HEADS: Mapping[str, tuple[str, ...]] = {
    "nli": ("entailment", "neutral", "contradiction"),
    "attribution": tuple(Category),
    "complexity": tuple(Complexity),
    "claim": ("claim", "no_claim"),
}
"""The heads a judge may have, which read a whole pair; the first label stands for full support."""

TOKEN_HEADS: Mapping[str, tuple[str, ...]] = {
    "words": ("carried", "missing", "contradicted"),
    "statements": ("neither", "carries", "conflicts"),
}
"""Heads that read one token: a word piece of the sentence, or the mark before a statement."""

STATEMENT_MARK = "[unused0]"
"""The token that stands before each numbered statement of the evidence."""


class JudgeCard(Card):
    """What ``judge.json`` says of a model.

    Attributes:
        grounding: Calibration of verdicts by kind of evidence, ``triples`` and ``passages``.
        weighing: How much its probabilities and the findings of checks weigh in a verdict.
    """

    grounding: dict[str, Calibration] = Field(default_factory=dict)
    weighing: Weighing | None = None
