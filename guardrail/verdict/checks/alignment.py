"""Alignment: how well a sentence names the property of a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.core.text.properties import cues
from guardrail.core.text.units import unit_of_label
from guardrail.core.text.words import content_stems, property_words

if TYPE_CHECKING:
    from guardrail.verdict.claims import Claim

__all__ = ["NAMED", "named_share"]

NAMED = 0.9
"""Share of a property's words, or another wording of it, that names it."""


def named_share(claim: Claim, label: str) -> float:
    """Share of a property's content words that stand in a sentence; 0.9 for other wordings."""
    name = property_words(label)
    if unit_of_label(label) is not None:
        name = name.rpartition(" ")[0]
    words = content_stems(name)
    share = len(words & claim.stems) / len(words) if words else 0.0
    reworded = (cues(label) - words) & claim.stems
    return max(share, NAMED) if reworded else share
