"""What a judge's heads answer, and what its description says."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, FiniteFloat

from guardrail.core.types import Category, Complexity, Value
from guardrail.core.types.weighing import Weighing
from judges.folder import Card

__all__ = ["HEADS", "STATEMENT_MARK", "TOKEN_HEADS", "Calibration", "JudgeCard"]

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


class Calibration(Value):
    """What makes a verdict's probabilities mean what they say: softmax((logits + bias) / T).

    Attributes:
        temperature: T.
        bias: Added to the logits of ``HEADS["nli"]``, in their order.
    """

    temperature: FiniteFloat = Field(default=1.0, gt=0)
    bias: tuple[FiniteFloat, FiniteFloat, FiniteFloat] = (0.0, 0.0, 0.0)


class JudgeCard(Card):
    """What ``judge.json`` says of a model.

    Attributes:
        grounding: Calibration of verdicts by kind of evidence, ``triples`` and ``passages``.
        weighing: How much its probabilities and the findings of checks weigh in a verdict.
    """

    grounding: dict[str, Calibration] = Field(default_factory=dict)
    weighing: Weighing | None = None
