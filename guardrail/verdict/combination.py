"""What the judge's word and the findings of the checks make together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.names import find_names
from guardrail.core.text.values import Agreement, compare
from guardrail.core.text.words import content_stems, plain
from guardrail.core.types import Effect, Finding, Verdict, Weight
from guardrail.core.types.judging import Weighed, Weighing, features_of
from guardrail.verdict.checks.base import applies, named_share
from guardrail.verdict.checks.names import opens_unknown

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.checks.base import Premises
    from guardrail.verdict.claims import Claim

CITED = 0.5
"""Least probability that a statement carries a part of the sentence for it to be cited."""

VERDICTS = {
    Effect.CARRIES: Verdict.SUPPORTED,
    Effect.MISSING: Verdict.UNSUPPORTED,
    Effect.CONTRADICTS: Verdict.CONTRADICTED,
}


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
        """The outcome for the answer *no* to this proposition."""
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

    A finding that decides wins over the judge. A check may say that there is no claim. Without a
    judge what is found carried or in conflict decides. What the judge did not read whole is neither
    supported nor without a claim. A sentence without support cites only statements that it says
    something about: the judge also scores the evidence of the sentences before it.

    Args:
        claim: The sentence.
        evidence: What it is held against, with the judge's word.
        findings: What the checks found.
        weighing: How much each of them weighs.
    """
    by_effect = {finding.effect: finding for finding in reversed(findings)}
    if Effect.NO_CLAIM in by_effect:
        return Outcome(Verdict.NO_CLAIM, spoke=by_effect[Effect.NO_CLAIM])
    grounding, settled = evidence.grounding, _settled(findings)
    weighed: Weighed | None = None
    parts: tuple[Weight, ...] = ()
    if grounding is not None:
        no_claim = grounding.no_claim >= 0.5 and not grounding.unread and not claim.is_data
        if no_claim and settled is None and Effect.CONTRADICTS not in by_effect:
            return Outcome(Verdict.NO_CLAIM)
        weights = weighing.triples if _rests_on_triples(evidence, findings) else weighing.passages
        features = features_of(grounding, findings)
        weighed, parts = weights.weigh(features), weights.parts(features)
    elif not findings and claim.text.rstrip().endswith("?"):
        return Outcome(Verdict.NO_CLAIM)  # what a question presupposes takes a judge to tell
    if settled is not None:
        verdict = VERDICTS[settled.effect]
    elif weighed is not None:
        verdict = evidence.thresholds.verdict(*weighed)
    elif Effect.CONTRADICTS in by_effect:
        verdict = Verdict.CONTRADICTED
    else:
        cited = any(item.statements for item in findings if item.effect is Effect.CARRIES)
        whole = cited and Effect.MISSING not in by_effect
        verdict = Verdict.SUPPORTED if whole else Verdict.UNSUPPORTED
    carried = _carried(evidence, findings, verdict)
    if settled is None and verdict is Verdict.SUPPORTED and grounding and grounding.unread:
        verdict = Verdict.UNSUPPORTED
    named = settled is not None or claim.head or claim.labels
    if verdict is Verdict.CONTRADICTED and not named and opens_unknown(claim, evidence):
        verdict = Verdict.UNSUPPORTED  # what the evidence says is about others
    spoke = settled or next((by_effect.get(e) for e, v in VERDICTS.items() if v is verdict), None)
    statements = evidence.indexed.statements
    touched = tuple([
        number  # the sentence has a value or a content word of this statement
        for number in carried
        if claim.where(statements[number]) or not claim.stems.isdisjoint(_said(statements[number]))
    ])  # fmt: skip
    if verdict is Verdict.SUPPORTED:
        first = settled.statements if settled else ()
        before = content_stems(plain(claim.before))  # the judge also scores its evidence
        own = [n for n in carried if n in touched or _said(statements[n]).isdisjoint(before)]
        own = _without_others(claim, [(n, statements[n]) for n in own])
        sources = (*first, *(number for number in own or carried if number not in first))
        return Outcome(verdict, sources, None, spoke, weighed, False, parts)
    if verdict is Verdict.UNSUPPORTED:
        return Outcome(verdict, touched, None, spoke, weighed, False, parts)
    if spoke is not None:  # what is computed of many statements conflicts with none of them alone
        against = spoke.statements[0] if spoke.statements else None
    else:
        against = _most_conflicting(claim, evidence, findings)
        if against is None:  # a contradiction needs a statement that conflicts
            return Outcome(Verdict.UNSUPPORTED, touched, None, None, weighed, False, parts)
    sure = (
        settled is not None
        or weighed is None
        or weighed.contradiction >= evidence.thresholds.removal
    )
    kept = tuple([number for number in touched if number != against])
    return Outcome(verdict, kept, against, spoke, weighed, sure, parts)


def _settled(findings: Sequence[Finding]) -> Finding | None:
    """The finding that settles the verdict whatever the judge says; None if there is none."""
    rank = {
        ("copied", Effect.CARRIES): 0,
        ("stated", Effect.CONTRADICTS): 1,
        ("stated", Effect.CARRIES): 2,
    }
    deciding = [finding for finding in findings if finding.decides]
    if deciding and Effect.CONTRADICTS in [finding.effect for finding in findings]:
        # A fact of the subject's own is against it, whatever a fact about another says
        deciding = [finding for finding in deciding if finding.check != "known_subject"]
    return min(
        deciding, key=lambda item: rank.get((item.check, item.effect), len(rank)), default=None
    )


def _rests_on_triples(evidence: Premises, findings: Sequence[Finding]) -> bool:
    statements = evidence.indexed.statements
    numbers = {number for finding in findings for number in finding.statements}
    named = [statements[number] for number in numbers] or [item for _, item in evidence.chosen]
    return None not in [item.triple for item in named]


def _without_others(claim: Claim, found: Sequence[tuple[int, Statement]]) -> list[int]:
    """The statements without facts of other amounts, where others give all amounts of the sentence.

    *Ridden less than 50 km* shares a unit with a range of 110 km, and nothing else.
    """

    def given(statements: Sequence[Statement]) -> list[bool]:
        """Which amounts of the sentence these statements give."""
        held = [value for statement in statements for value in statement.values]
        return [any(compare(mine, v) is Agreement.SAME for v in held) for mine in claim.values]

    def of_another(statement: Statement) -> bool:
        fact = statement.fact if statement.is_typed and not any(given([statement])) else None
        named = fact is None or not content_stems(fact.property).isdisjoint(claim.stems)
        return not named and _clashes(claim, statement)

    several = len(found) > 1 and claim.values
    if not several or not all(given([statement for _, statement in found])):
        return [number for number, _ in found]
    return [number for number, statement in found if not of_another(statement)]


def _said(statement: Statement) -> frozenset[str]:
    """Stems of what a statement says of its subject."""
    triple = statement.triple
    return content_stems(f"{triple.property} {triple.value}") if triple else statement.stems


def _carried(evidence: Premises, findings: Sequence[Finding], verdict: Verdict) -> tuple[int, ...]:
    """Statements that carry the sentence, by the judge or a check, best first.

    Of a supported sentence the statement that carries it most, though none may do so alone.
    """
    scores = {number: evidence.carries(number) for number in evidence.selection.places}
    found = {number: score for number, score in scores.items() if score >= CITED}
    for finding in findings:
        if finding.effect is Effect.CARRIES:
            found |= dict.fromkeys(finding.statements, 1.0)
    if not found and verdict is Verdict.SUPPORTED and max(scores.values(), default=0.0) > 0.0:
        best = max(scores, key=scores.__getitem__)
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
    scores = {
        number: evidence.conflicts(number)
        for number, statement in evidence.chosen
        if (statement.fact is None or evidence.speaks_of(statement))
        and applies(claim, statement)
        and not statement.is_missing
        and number not in carried
        and (_clashes(claim, statement) if statement.is_typed else _may_clash(claim, statement))
    }
    if evidence.grounding and not evidence.grounding.statements:
        order = [evidence.selection.places[place] for place in evidence.selection.priority]
        return next((number for number in order if number in scores), None)
    best = max(scores, key=scores.__getitem__, default=None)
    least = CITED if only else 0.0
    return best if best is not None and scores[best] > least else None


def _may_clash(claim: Claim, statement: Statement) -> bool:
    """True unless a fact gives a name, and the sentence neither a name nor the fact's property."""
    fact = statement.fact
    if fact is None or find_names(fact.value) != [(0, len(fact.value))]:
        return True
    own = content_stems(f"{fact.subject} {' '.join(statement.names)}")
    others = (content_stems(claim.text[start:end]) - own for start, end in claim.names)
    return any(others) or named_share(claim, fact.property) > 0.0


def _clashes(claim: Claim, statement: Statement) -> bool:
    """True if a value of the sentence is another than that of a fact: times contradict no price."""
    pairs = [(mine, held) for mine in claim.values for held in statement.values]
    return any(compare(mine, held) is Agreement.CONFLICT for mine, held in pairs)
