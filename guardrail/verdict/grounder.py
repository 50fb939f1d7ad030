"""Grounding: an answer and its evidence to cited sentences, spans and verdicts, in one pass.

For each sentence the statements that it needs, its context, and itself go to the judge
once. Checks compare what a judge reads badly. What both say makes the verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from guardrail.core.errors import JudgeError
from guardrail.core.plugins import note_failure
from guardrail.core.text.values import TypedValue
from guardrail.core.text.words import content_stems, plain
from guardrail.core.types import (
    AttributedAnswer,
    Effect,
    Finding,
    Grounding,
    Problem,
    SecondOpinion,
    Sentence,
    Verdict,
    VerdictThresholds,
)
from guardrail.core.types.judging import Weighing
from guardrail.core.workers import stop_if_given_up
from guardrail.correction.edits import Proposal, proposed
from guardrail.evidence.prepared import PreparedEvidence, Selection
from guardrail.evidence.statements import Statement
from guardrail.markers.rendering import marked_text
from guardrail.verdict.checks import Check, Context, all_checks, guarantees
from guardrail.verdict.checks.base import Premises, finding, relevant
from guardrail.verdict.checks.typed_values import COMPARED
from guardrail.verdict.citations import against_of, citation_errors, citations_of, note_of, spans_of
from guardrail.verdict.claims import Claim, GroundingRequest, claims_of, subjects_of
from guardrail.verdict.combination import Outcome, combine
from judges.base import GroundingItem, GroundingJudge, NLITraits, traits_of
from judges.grounding import grounded_by
from judges.notation import Notation, as_told, notation_of, with_notation
from judges.second_opinion import Doubt, SecondOpinions

__all__ = ["Grounder", "GroundingRequest"]

AT_ONCE = 64
"""Sentences that go to the judge together: between two lots it is seen whether somebody waits."""


class _Draft(NamedTuple):
    """A sentence before the judge has spoken; without a selection it is behind the bound."""

    request: int
    claim: Claim
    indexed: PreparedEvidence
    selection: Selection | None
    subjects: frozenset[str]
    context: Context
    notation: tuple[Notation, ...] = ()

    def premises(self, grounding: Grounding | None, thresholds: VerdictThresholds) -> Premises:
        """What the sentence is held against, and what the judge says of it as it is written."""
        assert self.selection is not None
        said = grounding and as_told(grounding, self.notation)
        return Premises(self.indexed, self.selection, self.subjects, said, thresholds)


class _Looked(NamedTuple):
    """What was found in a sentence."""

    evidence: Premises
    findings: list[Finding]
    outcome: Outcome
    second: SecondOpinion | None = None


class Grounder:
    """Grounds answers in evidence.

    Args:
        judge: Tells what statements say of a sentence; None for exact evidence alone.
        off: Names of checks that are switched off.
        more: Checks from outside, which speak after those of the package.
        verbatim: Cite only triples whose value is in its sentence as the graph writes it.
        weighing: How much the judge's probabilities and the findings weigh.
        second: Asked about sentences that the judge is not sure of; None for no second judge.
    """

    def __init__(
        self,
        judge: GroundingJudge | None,
        *,
        off: Collection[str] = (),
        more: Collection[Check] = (),
        verbatim: bool = False,
        weighing: Weighing | None = None,
        second: SecondOpinions | None = None,
    ) -> None:
        self._judge = judge
        switched = (check for check in all_checks() if check.name not in off)
        self._checks = (*guarantees(), *switched, *more)
        self._verbatim = verbatim
        self._weighing = weighing or Weighing()
        self._second = second
        self._chars = (NLITraits() if judge is None else traits_of(judge)).evidence_chars

    def ground(
        self, requests: Sequence[GroundingRequest]
    ) -> tuple[list[AttributedAnswer], list[list[Proposal]], list[Problem]]:
        """Ground n answers: all their sentences go to the judge in one call.

        Returns:
            n attributed answers in order, how the contradicted sentences of each may be corrected
            (if the request asks for it), and what went wrong; if the judge fails, exact evidence
            decides, if a check fails, the others.
        """
        problems: list[Problem] = []
        drafts = _drafts(requests, self._chars)
        sentences: list[list[Sentence]] = [[] for _ in requests]
        proposals: list[list[Proposal]] = [[] for _ in requests]
        for draft, looked in zip(drafts, self._heard(drafts, requests, problems), strict=True):
            request = requests[draft.request]
            sentence = self._sentence(draft, looked, request)
            sentences[draft.request].append(sentence)
            contradicted = sentence.verdict is Verdict.CONTRADICTED and draft.claim.answers is None
            if request.correct and contradicted and looked:
                proposals[draft.request].append(proposed(draft.claim, *looked[:3]))
        return (
            [
                AttributedAnswer(
                    text=request.answer.clean,
                    marked=marked_text(request.answer.clean, found),
                    sentences=tuple(found),
                )
                for request, found in zip(requests, sentences, strict=True)
            ],
            proposals,
            problems,
        )

    def look(
        self, requests: Sequence[GroundingRequest]
    ) -> list[list[tuple[Grounding | None, list[Finding]]]]:
        """What judge and checks say of each sentence of n answers, before it is weighed.

        Raises:
            JudgeError: The judge failed.
        """
        problems: list[Problem] = []
        drafts = _drafts(requests, self._chars)
        found: list[list[tuple[Grounding | None, list[Finding]]]] = [[] for _ in requests]
        for draft, grounding in zip(drafts, self._ask(drafts, problems), strict=True):
            evidence = draft.premises(grounding, requests[draft.request].thresholds)
            said = self._findings(draft.claim, evidence, draft.context, problems)
            found[draft.request].append((grounding, said))
        if problems:
            raise JudgeError(problems[0].message)
        return found

    def _ask(self, drafts: Sequence[_Draft], problems: list[Problem]) -> list[Grounding | None]:
        """The judge's word on every sentence; None without a judge, or where it fails."""
        if self._judge is None:
            return [None] * len(drafts)
        items = [_item(draft) for draft in drafts]
        asked = [item for item in items if item is not None]
        found: list[Grounding] = []
        try:
            for first in range(0, len(asked), AT_ONCE):
                stop_if_given_up()
                found += grounded_by(self._judge, asked[first : first + AT_ONCE])
        except JudgeError as error:
            problems.append(Problem(part="judge", message=str(error)))
            return [None] * len(drafts)
        groundings = iter(found)
        return [None if item is None else next(groundings) for item in items]

    def _heard(
        self,
        drafts: Sequence[_Draft],
        requests: Sequence[GroundingRequest],
        problems: list[Problem],
    ) -> list[_Looked | None]:
        """What judge, checks and second judge make of each sentence; None behind the bound."""
        found: list[_Looked | None] = []
        doubts: dict[int, Doubt] = {}
        for place, (draft, grounding) in enumerate(
            zip(drafts, self._ask(drafts, problems), strict=True)
        ):
            stop_if_given_up()
            looked = self._look(draft, grounding, requests[draft.request], problems)
            if self._second and looked and grounding:
                weighed, thresholds = looked.outcome.weighed, looked.evidence.thresholds
                if item := _item(draft, self._second.judge.evidence_chars):
                    doubts[place] = Doubt(draft.request, item, grounding, weighed, thresholds)
            found.append(looked)
        opinions = self._second.on(list(doubts.values())) if self._second else []
        for place, opinion in zip(doubts, opinions, strict=True):
            looked, draft = found[place], drafts[place]
            if opinion and opinion.grounding and self._second:
                weighing = self._second.judge.weighing
                request = requests[draft.request]
                looked = self._look(draft, opinion.grounding, request, problems, weighing)
            found[place] = looked and looked._replace(second=opinion and opinion.record)
        return found

    def _look(
        self,
        draft: _Draft,
        grounding: Grounding | None,
        request: GroundingRequest,
        problems: list[Problem],
        weighing: Weighing | None = None,
    ) -> _Looked | None:
        """What a sentence is held against, what was found, and what comes of it."""
        claim = draft.claim
        if draft.selection is None:
            return None
        evidence = draft.premises(grounding, request.thresholds)
        findings = self._findings(claim, evidence, draft.context, problems)
        outcome = Outcome(Verdict.NO_CLAIM)
        if claim.prose:
            outcome = combine(claim, evidence, findings, weighing or self._weighing)
            if claim.head and outcome.verdict is Verdict.UNSUPPORTED:
                outcome = Outcome(Verdict.NO_CLAIM)
        if claim.answers is not None:
            outcome = outcome.denied() if claim.denied else outcome
            findings = [_of_answer(item, claim) for item in findings]
            unread = evidence.grounding and evidence.grounding.model_copy(update={"words": ()})
            evidence = replace(evidence, grounding=unread)
        return _Looked(evidence, findings, outcome)

    def _sentence(
        self, draft: _Draft, looked: _Looked | None, request: GroundingRequest
    ) -> Sentence:
        claim = draft.claim
        if looked is None:
            return Sentence.not_judged(*claim.place)
        evidence, findings, outcome, second = looked
        carrying = citations_of(claim, evidence, outcome, verbatim=False)
        cited = carrying
        if self._verbatim:
            cited = citations_of(claim, evidence, outcome, verbatim=True)
        return Sentence(
            text=claim.place.text,
            start=claim.place.start,
            end=claim.place.end,
            verdict=outcome.verdict,
            partial=outcome.verdict is Verdict.UNSUPPORTED and bool(outcome.carried),
            citations=cited,
            uncited=tuple(citation for citation in carrying if citation not in cited),
            spans=spans_of(claim, evidence, outcome, findings),
            findings=tuple(finding.model_copy(update={"statements": ()}) for finding in findings),
            against=against_of(evidence, outcome),
            citation_errors=citation_errors(claim, evidence, outcome),
            note=note_of(claim, evidence, outcome, request.answer, cited, verbatim=self._verbatim),
            support=outcome.weighed and outcome.weighed.support,
            contradiction=outcome.weighed and outcome.weighed.contradiction,
            sure=outcome.sure,
            weights=outcome.weights,
            thresholds=evidence.thresholds if outcome.weighed else None,
            judged_by=self._name_of(evidence.grounding, second),
            second_opinion=second,
        )

    def _name_of(self, grounding: Grounding | None, second: SecondOpinion | None) -> str | None:
        """The judge that gave a grounding, where there are two."""
        if self._second is None or self._judge is None or grounding is None:
            return None
        return second.judge if second and second.missing is None else self._judge.name

    def _findings(
        self, claim: Claim, evidence: Premises, context: Context, problems: list[Problem]
    ) -> list[Finding]:
        """What the checks find, up to one that finds no claim."""
        unread = evidence.grounding.unread if evidence.grounding else ()
        because = "the judge cannot read this"
        size = len(evidence.indexed.statements)
        found = [finding("unread", Effect.MISSING, claim, span, because) for span in unread]
        for check in self._checks if claim.prose else ():
            said: Sequence[Finding] = ()
            try:
                said = check.apply(claim, evidence, context)
                for item in said:
                    if item.statements and not 0 <= max(item.statements) < size:
                        raise ValueError("a finding names statements by numbers of evidence.chosen")
            except Exception as error:
                said = ()
                note_failure(problems, "checks", f"check {check.name!r}", error)
            found += said
            if said and Effect.NO_CLAIM in [item.effect for item in said]:
                break
        return found


def _of_answer(item: Finding, claim: Claim) -> Finding:
    """A finding on a proposition, as one on the bare answer to it."""
    swapped = {Effect.CARRIES: Effect.CONTRADICTS, Effect.CONTRADICTS: Effect.CARRIES}
    effect = swapped.get(item.effect, item.effect) if claim.denied else item.effect
    _, start, end = claim.place
    return item.model_copy(update={"effect": effect, "start": start, "end": end, "instead": None})


def _drafts(requests: Sequence[GroundingRequest], chars: int) -> list[_Draft]:
    """The sentences of n answers, each with the statements that it needs."""
    return [
        draft
        for number, request in enumerate(requests)
        for draft in _drafts_of(number, request, chars)
    ]


def _drafts_of(number: int, request: GroundingRequest, chars: int) -> list[_Draft]:
    evidence = request.evidence.spoken(plain(request.answer.clean))
    claims = claims_of(request._replace(evidence=evidence))
    spoken = subjects_of(claims, evidence, request.asked)
    drafts: list[_Draft] = []
    for claim, subjects in zip(claims, spoken, strict=True):
        if claim.place.end <= request.since:
            continue
        stop_if_given_up()
        selection = None
        notation: tuple[Notation, ...] = ()
        if request.most is None or len(drafts) < request.most:
            words = f"{claim.context} {' '.join(subjects)}"
            selection = evidence.select(plain(claim.text), words, chars=chars)
            fitting = relevant(claim, evidence, subjects, selection.places)
            selection = selection.only(fitting or selection.places)
            notation = notation_of(claim.values[:COMPARED], _held(selection, evidence.statements))
        context = Context(claim.context, content_stems(plain(claim.context)))
        drafts.append(_Draft(number, claim, evidence, selection, subjects, context, notation))
    return drafts


def _held(selection: Selection, statements: Sequence[Statement]) -> list[tuple[TypedValue, str]]:
    """The values of the chosen statements, most important first, with labels of properties."""
    chosen = [statements[selection.places[place]] for place in selection.priority]
    return [
        (value, item.fact.property if item.fact else "") for item in chosen for value in item.values
    ]


def _item(draft: _Draft, chars: int = 0) -> GroundingItem | None:
    """What the judge is asked of a sentence; None where it is not asked.

    It also gets all of the evidence if that takes at most ``chars`` characters.
    """
    selection = draft.selection
    if selection is None or not draft.claim.prose:
        return None
    statements = draft.indexed.statements
    return GroundingItem(
        statements=draft.indexed.texts(selection),
        sentence=with_notation(draft.claim.written, draft.notation),
        context=draft.claim.context,
        priority=selection.priority,
        structured=all(statements[place].triple is not None for place in selection.places),
        windows=selection.windows,
        evidence=draft.indexed.whole if draft.indexed.chars <= chars else (),
    )
