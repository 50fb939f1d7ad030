"""The intents of questions (SCK 2.2; the NFQA taxonomy and factoid)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

__all__ = ["Intent", "agreement", "likeliest", "seven"]


class Intent(StrEnum):
    """What a question asks for; ``NONE`` where the text is no question."""

    INSTRUCTION = "instruction"
    REASON = "reason"
    EVIDENCE = "evidence-based"
    COMPARISON = "comparison"
    EXPERIENCE = "experience"
    DEBATE = "debate"
    FACTOID = "factoid"
    NONE = "not-a-question"


def likeliest(scores: Mapping[str, float]) -> Intent:
    """The likeliest intent; the first in the order of ``Intent`` where two are equal."""
    return max(Intent, key=lambda intent: scores.get(intent, 0.0))


def seven(scores: Mapping[str, float]) -> dict[str, float]:
    """The distribution over the seven intents alone, given that there is one."""
    kept = {intent.value: scores.get(intent, 0.0) for intent in Intent if intent != Intent.NONE}
    total = sum(kept.values())
    if total <= 0:
        return dict.fromkeys(kept, 1 / len(kept))
    return {name: share / total for name, share in kept.items()}


def agreement(question: Mapping[str, float], answer: Mapping[str, float]) -> float:
    """How far two intent distributions agree: 1 - Jensen-Shannon divergence in bits, in [0, 1]."""
    divergence = 0.0
    for name in question.keys() | answer.keys():
        left, right = question.get(name, 0.0), answer.get(name, 0.0)
        middle = (left + right) / 2
        for share in (left, right):
            if share > 0:
                divergence += share * math.log2(share / middle) / 2
    return min(1.0, max(0.0, 1.0 - divergence))
