"""Exact evidence: a triple whose value and subject stand in the sentence, with its property's word."""

from __future__ import annotations

from guardrail.evidence.statements import Statement
from guardrail.text.names import label_in
from guardrail.text.words import content_stems, plain, property_words
from guardrail.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding
from guardrail.verdict.claims import Claim
from guardrail.verdict.premises import Premises

__all__ = ["ExactMatch"]


class ExactMatch:
    """Says that triples carry a part of the sentence which states them word for word.

    Without a judge the value and the subject are enough.
    """

    name = "exact_match"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Finding | None:
        """Find the triples that the sentence states in their own words."""
        text = plain(claim.text)
        found: list[int] = []
        spans: list[tuple[int, int]] = []
        for number, statement in evidence.chosen:
            if statement.triple is None or not evidence.speaks_of(statement):
                continue
            if evidence.grounding is not None and not _worded(claim, statement):
                continue
            stands = label_in(text, claim.tokens, statement.triple.value)
            if stands:
                found.append(number)
                spans.append(stands[0])
        if not found:
            return None
        span = min(start for start, _ in spans), max(end for _, end in spans)
        told = "; ".join(evidence.holdings.statements[number].text for number in found)
        return finding(self.name, Effect.CARRIES, claim, span, f"stands in {told}", tuple(found))


def _worded(claim: Claim, statement: Statement) -> bool:
    """Whether all content words of a triple's property stand in the sentence."""
    assert statement.triple is not None
    words = content_stems(property_words(statement.triple.property))
    return bool(words) and words <= claim.stems
