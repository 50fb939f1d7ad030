"""Properties that hold or do not: *waterproof: false* against *it is waterproof*."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from guardrail.text.lexicon import lexicon, lexicon_set
from guardrail.text.words import Token, content_stems, fold, property_words
from guardrail.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding

if TYPE_CHECKING:
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["TruthValues", "truth_of"]

REACH = 6
"""Words before a property's word in which a negation turns it, and after it half as many."""


class TruthValues:
    """Compares a truth value with whether the sentence affirms or denies its property."""

    name = "truth_values"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Finding | None:
        """Find the first property that the sentence tells as it is not, else one as it is."""
        carried: Finding | None = None
        for number, statement in evidence.chosen:
            triple = statement.triple
            truth = truth_of(triple.value) if triple else None
            if triple is None or truth is None or not evidence.speaks_of(statement):
                continue
            words = content_stems(property_words(triple.property)) - _empty_stems()
            if not words or not words <= claim.stems:
                continue
            places = [n for n, token in enumerate(claim.tokens) if token.stem in words]
            span = claim.tokens[places[0]].start, claim.tokens[places[-1]].end
            affirmed = not _denied(claim.tokens, places)
            because = statement.text
            if affirmed is not truth:
                return finding(self.name, Effect.CONTRADICTS, claim, span, because, (number,))
            carried = carried or finding(self.name, Effect.CARRIES, claim, span, because, (number,))
        return carried


def truth_of(value: str) -> bool | None:
    """The truth value that a value consists of; None for any other."""
    word = fold(value.strip())
    if word in lexicon("truth")["true"][:3]:
        return True
    return False if word in lexicon("truth")["false"][:3] else None


@cache
def _empty_stems() -> frozenset[str]:
    return content_stems(" ".join([*lexicon("truth")["true"], "is", "has", "can"]))


def _denied(tokens: list[Token], places: list[int]) -> bool:
    """Whether an odd number of negations stands round a property's words."""
    negations = lexicon_set("function_words", "negations")
    denials = lexicon_set("function_words", "denials")
    opening = 1 if tokens[0].folded in lexicon_set("function_words", "answers") else 0
    first, last = max(opening, places[0] - REACH), places[-1] + REACH // 2 + 1
    return (
        sum(token.folded in negations or token.folded in denials for token in tokens[first:last])
        % 2
        == 1
    )
