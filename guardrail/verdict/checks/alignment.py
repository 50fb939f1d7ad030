"""Alignment: how well a sentence names the property of a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.core.text.properties import cues, property_name
from guardrail.core.text.words import content_stems

if TYPE_CHECKING:
    from guardrail.verdict.claims import Claim

__all__ = ["NAMED", "named_share"]

NAMED = 0.9
"""Share of a property's words, or another wording of it, that names it."""


def named_share(claim: Claim, label: str) -> float:
    """Share of a property's content words that stand in a sentence; 0.9 for other wordings."""
    words = content_stems(property_name(label))
    share = len(words & claim.stems) / len(words) if words else 0.0
    reworded = (cues(label) - words) & claim.stems
    return max(share, NAMED) if reworded else share
