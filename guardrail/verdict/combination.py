"""What the judge's word and the findings of the checks make together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.values import Agreement, compare
from guardrail.core.text.words import content_stems, plain
from guardrail.core.types import Effect, Finding, Verdict, Weight
from guardrail.core.types.judging import Weighed, Weighing, features_of
from guardrail.verdict.checks.base import applies

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.checks.base import Premises
    from guardrail.verdict.claims import Claim

__all__ = ["Outcome", "combine"]

CITED = 0.5
"""Least probability that a statement carries a part of the sentence for it to be cited."""


class Outcome(NamedTuple):
    """The verdict on a sentence, with its statements.

    Attributes:
        verdict: The verdict.
        carried: Numbers of the statements that carry the sentence or a part of it, best first.
        against: Number of the statement that it conflicts with; None where none is known.
        spoke: The finding that speaks for the verdict; None where the judge alone does.
        weighed: Probabilities of support and contradiction; None without a judge.
        sure: Whether a contradiction is sure enough to act on it.
        weights: What the judge's word and each finding added to the probabilities.
    """

    verdict: Verdict
    carried: tuple[int, ...] = ()
    against: int | None = None
    spoke: Finding | None = None
    weighed: Weighed | None = None
    sure: bool = False
    weights: tuple[Weight, ...] = ()

    def denied(self) -> Outcome:
        """The verdict on a *no* to what this is the verdict on."""
        first = next(iter(self.carried), None)
        weighed = self.weighed and Weighed(self.weighed.contradiction, self.weighed.support)
        if self.verdict is Verdict.SUPPORTED and first is not None:
            sure = weighed is None or bool(self.spoke and self.spoke.decides)
            return Outcome(Verdict.CONTRADICTED, self.carried[1:], first, None, weighed, sure)
        if self.verdict is Verdict.CONTRADICTED:
            against = () if self.against is None else (self.against,)
            return Outcome(Verdict.SUPPORTED, (*against, *self.carried), weighed=weighed)
        return self._replace(verdict=Verdict.UNSUPPORTED, weighed=weighed, weights=())


def combine(
    claim: Claim, evidence: Premises, findings: Sequence[Finding], weighing: Weighing
) -> Outcome:
    """The verdict on a sentence: the judge's probabilities and the findings, weighed.

    A check may say that there is no claim. Without a judge what is found carried or in conflict
    decides. What the judge did not read whole is neither supported nor without a claim. A sentence
    without support cites only statements that it says something about: the judge also scores
    the evidence of the sentences before it.

    Args:
        claim: The sentence.
        evidence: What it is held against, with the judge's word.
        findings: What the checks found.
        weighing: How much each of them weighs.
    """
    by_effect = {finding.effect: finding for finding in reversed(findings)}
    nothing = by_effect.get(Effect.NO_CLAIM)
    if nothing is not None:
        return Outcome(Verdict.NO_CLAIM, spoke=nothing)
    grounding = evidence.grounding
    settled = _settled(findings)
    if grounding is None:
        if settled is not None:
            return _outcome(claim, evidence, findings, settled)
        return _without_judge(claim, evidence, findings, by_effect)
    no_claim = grounding.no_claim >= 0.5 and not grounding.unread
    if no_claim and settled is None and Effect.CONTRADICTS not in by_effect:
        return Outcome(Verdict.NO_CLAIM)
    weights = weighing.triples if _rests_on_triples(evidence, findings) else weighing.passages
    features = features_of(grounding, findings)
    weighed, parts = weights.weigh(features), weights.parts(features)
    if settled is not None:
        outcome = _outcome(claim, evidence, findings, settled)
        return outcome._replace(weighed=weighed, weights=parts)
    verdict = evidence.thresholds.verdict(*weighed)
    carried = _carried(evidence, findings, verdict)
    touched = _touched(claim, evidence, carried)
    if verdict is Verdict.SUPPORTED and not grounding.unread:
        return Outcome(verdict, carried, weighed=weighed, weights=parts)
    if verdict is not Verdict.CONTRADICTED:
        missing = by_effect.get(Effect.MISSING)
        return Outcome(Verdict.UNSUPPORTED, touched, spoke=missing, weighed=weighed, weights=parts)
    clash = by_effect.get(Effect.CONTRADICTS)
    if clash is None:
        against = _most_conflicting(claim, evidence, findings)
        if against is None:  # a contradiction needs a statement that conflicts
            return Outcome(Verdict.UNSUPPORTED, touched, weighed=weighed, weights=parts)
    else:  # what is computed of many statements conflicts with none of them alone
        against = clash.statements[0] if clash.statements else None
    kept = tuple(number for number in touched if number != against)
    sure = weighed.contradiction >= evidence.thresholds.removal
    return Outcome(verdict, kept, against, clash, weighed, sure, parts)


ORDER = (
    ("copied", Effect.CARRIES),
    ("stated", Effect.CONTRADICTS),
    ("stated", Effect.CARRIES),
)
"""Findings that settle a verdict, the strongest first; others follow in their own order."""


def _settled(findings: Sequence[Finding]) -> Finding | None:
    """The finding that settles the verdict whatever the judge says; None if there is none."""
    deciding = [finding for finding in findings if finding.decides]
    rank = {key: place for place, key in enumerate(ORDER)}
    deciding.sort(key=lambda item: rank.get((item.check, item.effect), len(rank)))
    return deciding[0] if deciding else None


def _outcome(
    claim: Claim, evidence: Premises, findings: Sequence[Finding], settled: Finding
) -> Outcome:
    """The verdict that a finding settles, with what supports or contradicts the sentence."""
    if settled.effect is Effect.CARRIES:
        carried = _carried(evidence, findings, Verdict.SUPPORTED)
        first = (*settled.statements, *(n for n in carried if n not in settled.statements))
        return Outcome(Verdict.SUPPORTED, first, spoke=settled)
    carried = _touched(claim, evidence, _carried(evidence, findings, Verdict.UNSUPPORTED))
    if settled.effect is Effect.MISSING:
        return Outcome(Verdict.UNSUPPORTED, carried, spoke=settled)
    against = settled.statements[0] if settled.statements else None
    kept = tuple(number for number in carried if number != against)
    return Outcome(Verdict.CONTRADICTED, kept, against, settled, sure=True)


def _rests_on_triples(evidence: Premises, findings: Sequence[Finding]) -> bool:
    statements = evidence.indexed.statements
    named = [statements[number] for finding in findings for number in finding.statements]
    return all(item.triple is not None for item in named) if named else evidence.structured


def _without_judge(
    claim: Claim,
    evidence: Premises,
    findings: Sequence[Finding],
    by_effect: Mapping[Effect, Finding],
) -> Outcome:
    if not findings and claim.text.rstrip().endswith("?"):
        return Outcome(Verdict.NO_CLAIM)  # what a question presupposes takes a judge to tell
    clash = by_effect.get(Effect.CONTRADICTS)
    verdict = Verdict.CONTRADICTED if clash is not None else Verdict.UNSUPPORTED
    carried = _carried(evidence, findings, verdict)
    touched = _touched(claim, evidence, carried)
    if clash is not None:
        against = clash.statements[0] if clash.statements else None
        kept = tuple(number for number in touched if number != against)
        return Outcome(verdict, kept, against, clash, sure=True)
    if carried and Effect.MISSING not in by_effect:
        return Outcome(Verdict.SUPPORTED, carried, spoke=by_effect.get(Effect.CARRIES))
    return Outcome(verdict, touched, spoke=by_effect.get(Effect.MISSING))


def _touched(claim: Claim, evidence: Premises, carried: Sequence[int]) -> tuple[int, ...]:
    statements = evidence.indexed.statements
    return tuple(number for number in carried if _touches(claim, statements[number]))


def _touches(claim: Claim, statement: Statement) -> bool:
    """Whether a sentence has a value or a content word of what a statement says of its subject."""
    triple = statement.triple
    said = content_stems(f"{triple.property} {triple.value}") if triple else statement.stems
    spans = statement.stands_in(plain(claim.text), claim.tokens, claim.values)
    return bool(spans) or not said.isdisjoint(claim.stems)


def _carried(evidence: Premises, findings: Sequence[Finding], verdict: Verdict) -> tuple[int, ...]:
    """Statements that carry the sentence, by the judge or a check, best first.

    Where a sentence is supported, the statement that carries it most is cited,
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
    if not found and scores and verdict is Verdict.SUPPORTED:
        best = max(scores, key=lambda number: scores[number])
        if scores[best] > 0.0:
            found[best] = scores[best]
    return tuple(sorted(found, key=lambda number: (-found[number], number)))


def _most_conflicting(claim: Claim, evidence: Premises, findings: Sequence[Finding]) -> int | None:
    """The statement that conflicts most, about the same subject and at the same time.

    Of a judge that scores no statements, the most relevant one. None if there is none. If checks
    only say that statements carry the sentence, it takes another statement that surely conflicts.
    """
    carrying = [item for item in findings if item.effect is Effect.CARRIES]
    only = bool(carrying) and len(carrying) == len(findings)
    carried = {number for item in carrying for number in item.statements} if only else set()
    least = CITED if only else 0.0
    scores = {
        number: evidence.conflicts(number)
        for number, statement in evidence.chosen
        if (statement.fact is None or evidence.speaks_of(statement))
        and applies(claim, statement)
        and not statement.is_missing
        and number not in carried
        and (not statement.is_typed or _clashes(claim, statement))
    }
    if evidence.grounding and not evidence.grounding.statements:
        order = [evidence.selection.places[place] for place in evidence.selection.priority]
        return next((number for number in order if number in scores), None)
    best = max(scores, key=lambda number: scores[number], default=None)
    return best if best is not None and scores[best] > least else None


def _clashes(claim: Claim, statement: Statement) -> bool:
    """Whether a value of the sentence is another than that of a fact: times contradict no price."""
    return any(
        compare(mine, held) is Agreement.CONFLICT
        for mine in claim.values
        for held in statement.values
    )
