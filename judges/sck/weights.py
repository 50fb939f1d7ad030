"""Weights: K of its parts, S of its features, SCK of S, C and K by intent (SCK Table 3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from guardrail.core.errors import ConfigError
from guardrail.core.types import Score, Value
from judges.sck.intents import Intent
from judges.sck.report import Weighted

__all__ = [
    "EQUAL",
    "TABLE_3",
    "FeatureWeights",
    "KnowledgeWeights",
    "PartWeights",
    "combine",
    "load_weights",
]


class PartWeights(Value):
    """Weights of S, C and K in SCK (eq. 5), not all zero.

    Attributes:
        structure: α.
        content: β.
        knowledge: γ.
        reason: The rationale.
    """

    structure: float = Field(ge=0)
    content: float = Field(ge=0)
    knowledge: float = Field(ge=0)
    reason: str = ""


class KnowledgeWeights(Value):
    """Weights of VE, ER and KG-Attr in K (eq. 3); the paper's are equal."""

    ve: float = Field(default=1 / 3, ge=0)
    er: float = Field(default=1 / 3, ge=0)
    kg_attr: float = Field(default=1 / 3, ge=0)


class FeatureWeights(Value):
    """Weights of the features in S; equal by default, since the paper gives none."""

    length: float = Field(default=1 / 6, ge=0)
    tense: float = Field(default=1 / 6, ge=0)
    keywords: float = Field(default=1 / 6, ge=0)
    pronoun: float = Field(default=1 / 6, ge=0)
    format: float = Field(default=1 / 6, ge=0)
    alignment: float = Field(default=1 / 6, ge=0)


def _row(structure: float, content: float, knowledge: float, reason: str) -> PartWeights:
    return PartWeights(structure=structure, content=content, knowledge=knowledge, reason=reason)


EQUAL = _row(1 / 3, 1 / 3, 1 / 3, "no intent was found, so all parts count alike")

TABLE_3: Mapping[Intent, PartWeights] = {
    Intent.INSTRUCTION: _row(0.5, 0.2, 0.3, "answer structure > KG matching > entity mentioning"),
    Intent.REASON: _row(0.5, 0.3, 0.2, "keywords of the feature table are useful"),
    Intent.EVIDENCE: _row(0.2, 0.3, 0.5, "no salient structure, knowledge is more important"),
    Intent.COMPARISON: _row(0.5, 0.3, 0.2, "the structure of a comparison is easy to capture"),
    Intent.EXPERIENCE: _row(0.4, 0.5, 0.1, "entity matching > structure > KG matching"),
    Intent.DEBATE: _row(0.4, 0.4, 0.2, "can hardly be grounded by a KG"),
    Intent.FACTOID: _row(0.1, 0.1, 0.8, "KG matching > others"),
    Intent.NONE: EQUAL,
}
"""The paper's heuristic weights by intent; equal ones without an intent."""


def load_weights(path: Path) -> dict[Intent, PartWeights]:
    """Read weights by intent, as written by ``judges.sck.learning --out``.

    Raises:
        ConfigError: The file cannot be read, or an intent or a weight is wrong.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {Intent(name): PartWeights.model_validate(row) for name, row in rows.items()}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path} holds no SCK weights: {error}") from error


def combine(
    parts: Sequence[tuple[str, Score, float]], *, what: str
) -> tuple[Score, tuple[Weighted, ...]]:
    """Weighted mean of the parts that have a value.

    Args:
        parts: Name, score and weight of each part.
        what: Name of the whole, for the reason if no part has a value.

    Returns:
        The mean, and each part with its share of the total weight.
    """
    total = sum(weight for _, score, weight in parts if score.value is not None)
    weighted = tuple(
        Weighted(
            name=name,
            score=score,
            weight=weight,
            share=weight / total if total > 0 and score.value is not None else 0.0,
        )
        for name, score, weight in parts
    )
    if total <= 0:
        reasons = "; ".join(f"{name}: {score.reason or 'weight 0'}" for name, score, _ in parts)
        return Score(reason=f"no part of {what} has a value ({reasons})"), weighted
    value = sum(part.share * part.score.value for part in weighted if part.score.value is not None)
    terms = tuple(
        f"{part.share:.3f} x {part.name} {part.score.value:.3f}"
        for part in weighted
        if part.score.value is not None
    )
    return Score(value=min(1.0, max(0.0, value)), evidence=terms), weighted
