"""What the judge's word and the findings of the checks make together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.text.words import content_stems, plain
from guardrail.types import Category, Effect, Finding, Grounding, Judgement, Verdict

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["Outcome", "combine", "judgement_of"]

CITED = 0.5
"""Least probability that a statement carries a part of the sentence for it to be cited."""

CONFIDENT = 0.9
"""A judge this sure of support is believed against a value or name that is found nowhere: it may
follow from others."""


class Outcome(NamedTuple):
    """The verdict on a sentence, and what it rests on.

    Attributes:
        verdict: The verdict.
        carried: Numbers of the statements that carry the sentence or a part of it, best first.
        against: Number of the statement that it conflicts with; None where none is known.
        spoke: The finding that decided against the judge; None where the judge decided.
    """

    verdict: Verdict
    carried: tuple[int, ...] = ()
    against: int | None = None
    spoke: Finding | None = None

    @property
    def category(self) -> Category | None:
        """The category of CAQA; None for a sentence that claims nothing."""
        if self.verdict is Verdict.NO_CLAIM:
            return None
        if self.verdict is Verdict.SUPPORTED:
            return Category.SUPPORTIVE
        if self.verdict is Verdict.CONTRADICTED:
            return Category.CONTRADICTORY
        return Category.PARTIALLY_SUPPORTIVE if self.carried else Category.IRRELEVANT


def combine(claim: Claim, evidence: Premises, findings: Sequence[Finding]) -> Outcome:
    """The verdict on a sentence.

    A check may say that there is no claim, or that a value contradicts; what it finds missing
    turns support into none. What it finds carried is cited, and decides alone where there is no
    judge. A sentence without support cites only statements of which it says something: the judge
    also scores what the sentences before it rest on.
    """
    by_effect = {finding.effect: finding for finding in reversed(findings)}
    nothing = by_effect.get(Effect.NO_CLAIM)
    if nothing is not None:
        return Outcome(Verdict.NO_CLAIM, spoke=nothing)
    carried = _carried(evidence, findings)
    statements = evidence.indexed.statements
    touched = tuple(number for number in carried if _touches(claim, statements[number]))
    clash = by_effect.get(Effect.CONTRADICTS)
    if clash is not None:
        against = clash.statements[0] if clash.statements else None
        kept = tuple(number for number in touched if number != against)
        return Outcome(Verdict.CONTRADICTED, kept, against, clash)
    missing = by_effect.get(Effect.MISSING)
    word = _word(evidence, carried)
    said = evidence.grounding
    confident = said is not None and said.supported >= CONFIDENT
    if word is Verdict.SUPPORTED and missing is not None and not confident:
        return Outcome(Verdict.UNSUPPORTED, touched, None, missing)
    if word is Verdict.CONTRADICTED:
        against = _most_conflicting(evidence)
        return Outcome(word, tuple(number for number in touched if number != against), against)
    if word is Verdict.NO_CLAIM:
        return Outcome(word)
    return Outcome(word, carried if word is Verdict.SUPPORTED else touched)


def _touches(claim: Claim, statement: Statement) -> bool:
    """Whether a sentence has a value or a content word of what a statement says of its subject."""
    triple = statement.triple
    said = content_stems(f"{triple.property} {triple.value}") if triple else statement.stems
    spans = statement.stands_in(plain(claim.text), claim.tokens, claim.values)
    return bool(spans) or not said.isdisjoint(claim.stems)


def _word(evidence: Premises, carried: Sequence[int]) -> Verdict:
    if evidence.word is not None:
        return evidence.word
    return Verdict.SUPPORTED if carried else Verdict.UNSUPPORTED


def _carried(evidence: Premises, findings: Sequence[Finding]) -> tuple[int, ...]:
    """Statements that carry the sentence, by the judge or a check, best first.

    Where the judge calls a sentence supported, the statement that carries it most is cited,
    though none may do so alone.
    """
    found = {
        number: 1.0
        for finding in findings
        if finding.effect is Effect.CARRIES
        for number in finding.statements
    }
    scores = {number: evidence.carries(number) for number in evidence.selection.places}
    found |= {
        number: score for number, score in scores.items() if score >= CITED and number not in found
    }
    if not found and scores and evidence.word is Verdict.SUPPORTED:
        best = max(scores, key=lambda number: scores[number])
        if scores[best] > 0.0:
            found[best] = scores[best]
    return tuple(sorted(found, key=lambda number: (-found[number], number)))


def _most_conflicting(evidence: Premises) -> int | None:
    scores = {number: evidence.conflicts(number) for number in evidence.selection.places}
    best = max(scores, key=lambda number: scores[number], default=None)
    return best if best is not None and scores[best] > 0.0 else None


def judgement_of(outcome: Outcome, grounding: Grounding | None) -> Judgement | None:
    """The judge's word in the four categories; where a check decided, its word instead."""
    category = outcome.category
    if category is None or grounding is None:
        return None
    if outcome.spoke is not None:
        scores = {item: float(item is category) for item in Category}
        return Judgement(category=category, scores=scores, rationale=outcome.spoke.because)
    partly = category is Category.PARTIALLY_SUPPORTIVE
    claims = max(1e-9, 1.0 - grounding.no_claim)
    supported, against = grounding.supported / claims, grounding.contradicted / claims
    rest = max(0.0, 1.0 - min(1.0, supported) - min(1.0, against))
    scores = {
        Category.SUPPORTIVE: min(1.0, supported),
        Category.PARTIALLY_SUPPORTIVE: rest if partly else 0.0,
        Category.CONTRADICTORY: min(1.0, against),
        Category.IRRELEVANT: 0.0 if partly else rest,
    }
    return Judgement(category=category, scores=scores)
