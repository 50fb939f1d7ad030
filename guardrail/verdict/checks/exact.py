"""Exact evidence: a triple whose value, subject and property are in the sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardrail.core.text.dates import names_weekday
from guardrail.core.text.words import Span, fold, plain
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.base import NAMED, Context, finding, named_share
from guardrail.verdict.citations import is_cited

if TYPE_CHECKING:
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["ExactMatch"]


OPPOSED = 0.2
"""Probability of contradiction from which a model's own citation counts for nothing: 152 of 152
denials of facts of the people graph had more, and 25 of 152 true sentences."""


class ExactMatch:
    """Says that triples carry a part of the sentence which states them word for word.

    Without a judge any value other than a name or number suffices next to its subject. If several
    triples have the same value, those are meant whose property the sentence names best.
    """

    name = "exact_match"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the triples that the sentence states in their own words."""
        text = plain(claim.text)
        stated: dict[int, tuple[Span, float]] = {}
        for number, statement in evidence.chosen:
            if statement.triple is None or not evidence.speaks_of(statement):
                continue
            if statement.yes is not None or names_weekday(statement.triple.property):
                continue  # their values tell nothing without their properties
            share = named_share(claim, statement.triple.property)
            if is_cited(claim, statement) and _unopposed(evidence):
                share = 1.0  # the model's own citation names the property
            if evidence.grounding is not None and share < NAMED:
                continue
            spans = statement.stands_in(text, claim.tokens, claim.values)
            if not spans or fold(statement.triple.value) in fold(statement.subject):
                continue
            if share > 0.0 or _describes(text[slice(*spans[0])], statement.triple.value):
                stated[number] = (spans[0], share)
        best: dict[Span, float] = {}
        for span, share in stated.values():
            best[span] = max(share, best.get(span, 0.0))
        kept = {n: span for n, (span, share) in stated.items() if share >= best[span]}
        found, spans = list(kept), list(kept.values())
        if not found:
            return ()
        span = min(start for start, _ in spans), max(end for _, end in spans)
        texts = "; ".join(evidence.indexed.statements[number].text for number in found)
        return (
            finding(self.name, Effect.CARRIES, claim, span, f"stands in {texts}", tuple(found)),
        )


def _unopposed(evidence: Premises) -> bool:
    """True if the judge sees little conflict, as it does in a denial that cites what it denies."""
    return evidence.grounding is None or evidence.grounding.contradicted < OPPOSED


def _describes(text: str, value: str) -> bool:
    """Whether a value tells its property by itself: a *painter*, an *Italian*, but no *London*."""
    return fold(text) != fold(value) or not any(item.isupper() or item.isdigit() for item in value)
