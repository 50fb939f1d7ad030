"""Headings and code, which claim nothing."""

from __future__ import annotations

import re

from guardrail.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding
from guardrail.verdict.claims import Claim
from guardrail.verdict.premises import Premises

__all__ = ["Layout"]

PLAIN_WORDS = re.compile(r"\w[\w'’-]*+(?:,? \w[\w'’-]*+){3,}")
"""Four or more words with nothing but spaces and commas between them, as prose has."""


class Layout:
    """Says that headings claim nothing, nor lines of code without prose in them."""

    name = "layout"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Finding | None:
        """Tell a heading or a line of code."""
        whole = (0, len(claim.text))
        if claim.heading and not claim.values:
            return finding(self.name, Effect.NO_CLAIM, claim, whole, "a heading")
        if claim.code and not PLAIN_WORDS.search(claim.text):
            return finding(self.name, Effect.NO_CLAIM, claim, whole, "code")
        return None
