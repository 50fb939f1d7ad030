"""Grounding: an answer and its evidence to cited sentences, spans and verdicts, in one pass.

For each sentence the statements that it needs, its context, and itself go to the judge
once. Checks compare what a judge reads badly. What both say makes the verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from guardrail.core.errors import JudgeError
from guardrail.core.plugins import note_failure
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
)
from guardrail.core.types.judging import Weighing
from guardrail.core.workers import stop_if_given_up
from guardrail.correction.edits import Proposal, proposed
from guardrail.evidence.prepared import PreparedEvidence
from guardrail.markers.rendering import marked_text, shifted
from guardrail.verdict.checks import all_checks, guarantees
from guardrail.verdict.checks.base import Check, Context, Premises, applies, finding
from guardrail.verdict.checks.typed_values import COMPARED
from guardrail.verdict.citations import against_of, citation_errors, citations_of, note_of, spans_of
from guardrail.verdict.claims import Claim, GroundingRequest, claims_of, subjects_of
from guardrail.verdict.combination import Outcome, combine
from judges.base import EVIDENCE_CHARS, GroundingItem, GroundingJudge, NLITraits, traits_of
from judges.grounding import grounded_by
from judges.notation import Notation, notation_of, restored, with_notation
from judges.second_opinion import Doubt, SecondOpinions
from judges.settings import Account

SENTENCES_AT_ONCE = 64
"""Sentences that go to the judge together; between two lots abandoned work stops."""


class _Draft(NamedTuple):
    """A sentence before the judge has spoken; without evidence its verdict is ``found`` already."""

    request: int
    claim: Claim
    subjects: frozenset[str]
    evidence: Premises | None = None
    notation: tuple[Notation, ...] = ()
    found: Sentence | None = None
    account: Account | None = None

    def item(self, chars: int) -> GroundingItem | None:
        """What the judge is asked of the sentence; None where it is not asked.

        One that reads more than others also gets all of the evidence, up to ``chars`` characters.
        """
        if self.evidence is None or not self.claim.prose:
            return None
        selection, indexed = self.evidence.selection, self.evidence.indexed
        return GroundingItem(
            statements=indexed.texts(selection),
            sentence=with_notation(self.claim.text, self.notation),
            context=self.claim.context,
            priority=selection.priority,
            structured=None not in [item.triple for _, item in self.evidence.chosen],
            windows=selection.windows,
            evidence=indexed.whole if indexed.chars <= chars > EVIDENCE_CHARS else (),
        )


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
        switched = [check for check in all_checks() if check.name not in off]
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
        drafts = [*self._drafts(requests)]
        sentences: list[list[Sentence]] = [[] for _ in requests]
        proposals: list[list[Proposal]] = [[] for _ in requests]
        for draft, looked in zip(drafts, self._judged(drafts, problems), strict=True):
            claim, sentence = draft.claim, draft.found
            if looked is not None:
                sentence = self._sentence(claim, looked)
                if not problems:
                    key = draft.subjects, looked.evidence.thresholds
                    claim.judged[key] = sentence
                if requests[draft.request].correct and claim.answers is None:
                    proposals[draft.request] += proposed(claim, *looked[:3])
            assert sentence is not None
            sentences[draft.request].append(sentence)
        answers = [
            AttributedAnswer(
                text=request.answer.clean,
                marked=marked_text(request.answer.clean, found),
                sentences=tuple(found),
            )
            for request, found in zip(requests, sentences, strict=True)
        ]
        return answers, proposals, problems

    def look(
        self, requests: Sequence[GroundingRequest]
    ) -> list[list[tuple[Grounding | None, list[Finding]]]]:
        """What judge and checks say of each sentence of n answers, before it is weighed.

        Raises:
            JudgeError: The judge failed.
        """
        problems: list[Problem] = []
        drafts = [*self._drafts(requests)]
        found: list[list[tuple[Grounding | None, list[Finding]]]] = [[] for _ in requests]
        for draft, grounding in zip(drafts, self._ask(drafts, problems), strict=True):
            said = self._findings(draft.claim, _heard(draft, grounding), problems)
            found[draft.request].append((grounding, said))
        if problems:
            raise JudgeError(problems[0].message)
        return found

    def _drafts(self, requests: Sequence[GroundingRequest]) -> Iterator[_Draft]:
        """The sentences of n answers, each with the statements that it needs."""
        for number, request in enumerate(requests):
            indexed = request.evidence.spoken(plain(request.answer.clean))
            claims = claims_of(request._replace(evidence=indexed))
            about = subjects_of(claims, indexed, request.asked)
            both = zip(claims, about, strict=True)
            new = [pair for pair in both if pair[0].place.end > request.since]
            for count, (claim, subjects) in enumerate(new, start=1):
                stop_if_given_up()
                found = claim.judged.get((subjects, request.thresholds))
                if request.most is not None and count > request.most:
                    found = Sentence.not_judged(*claim.place)
                elif found and (not request.correct or found.verdict is Verdict.SUPPORTED):
                    found = shifted(found, found.start - claim.place.start)
                else:
                    yield self._read(_Draft(number, claim, subjects), request, indexed)
                    continue
                yield _Draft(number, claim, subjects, found=found)

    def _read(self, draft: _Draft, request: GroundingRequest, indexed: PreparedEvidence) -> _Draft:
        """A sentence with what the judge reads."""
        claim, subjects = draft.claim, draft.subjects
        words = claim.asked, " ".join([claim.before, *subjects])
        selection = indexed.select(claim.plain, *words, subjects, chars=self._chars)
        about, (titles, facts) = subjects, indexed.subjects_read(selection)
        if not about and len(titles) == 1 and not facts:
            about = titles - {""}
        elif titles - about - {""} and not _is_heard(claim, about):
            about = frozenset()  # a passage about another subject is read as well
        evidence = Premises(indexed, selection, about, None, request.thresholds)
        fitting = _fitting(claim, evidence)
        if 0 < len(fitting) < len(selection.places):
            evidence = replace(evidence, selection=selection.only(fitting))
        read = [evidence.chosen[number][1] for number in evidence.selection.priority]
        held = [
            (it, item.fact.property if item.fact else "") for item in read for it in item.values
        ]
        notation = notation_of(claim.values[:COMPARED], held)
        return draft._replace(evidence=evidence, notation=notation, account=request.account)

    def _ask(self, drafts: Sequence[_Draft], problems: list[Problem]) -> list[Grounding | None]:
        """The judge's word on every sentence; None without a judge, or where it fails."""
        if self._judge is None:
            return [None] * len(drafts)
        items = [draft.item(self._chars) for draft in drafts]
        asked = [item for item in items if item is not None]
        found: list[Grounding] = []
        try:
            for first in range(0, len(asked), SENTENCES_AT_ONCE):
                stop_if_given_up()
                found += grounded_by(self._judge, asked[first : first + SENTENCES_AT_ONCE])
        except JudgeError as error:
            problems.append(Problem(part="judge", message=str(error)))
            return [None] * len(drafts)
        groundings = iter(found)
        return [None if item is None else next(groundings) for item in items]

    def _judged(self, drafts: Sequence[_Draft], problems: list[Problem]) -> list[_Looked | None]:
        """What judge, checks and second judge make of each sentence; None behind the bound."""
        found: list[_Looked | None] = []
        doubts: dict[int, Doubt] = {}
        for draft, grounding in zip(drafts, self._ask(drafts, problems), strict=True):
            stop_if_given_up()
            looked = self._look(draft, grounding, problems, self._weighing)
            item = draft.item(self._second.judge.evidence_chars) if self._second else None
            if item and looked and grounding:
                weighed, thresholds = looked.outcome.weighed, looked.evidence.thresholds
                answer = draft.request, draft.account
                doubts[len(found)] = Doubt(*answer, item, grounding, weighed, thresholds)
            found.append(looked)
        if self._second is not None:
            opinions = self._second.on(list(doubts.values()))
            for place, opinion in zip(doubts, opinions, strict=True):
                looked = found[place]
                if opinion and opinion.grounding:
                    weighing = self._second.judge.weighing or self._weighing
                    looked = self._look(drafts[place], opinion.grounding, problems, weighing)
                found[place] = looked and looked._replace(second=opinion and opinion.record)
        return found

    def _look(
        self,
        draft: _Draft,
        grounding: Grounding | None,
        problems: list[Problem],
        weighing: Weighing,
    ) -> _Looked | None:
        """What a sentence is held against, what was found, and what comes of it."""
        claim = draft.claim
        if draft.evidence is None:
            return None
        evidence = _heard(draft, grounding)
        findings = self._findings(claim, evidence, problems)
        outcome = Outcome(Verdict.NO_CLAIM)
        if claim.prose:
            outcome = combine(claim, evidence, findings, weighing)
            if claim.head and outcome.verdict is Verdict.UNSUPPORTED:
                outcome = Outcome(Verdict.NO_CLAIM)
        if claim.answers is not None:
            outcome = outcome.denied() if claim.denied else outcome
            findings = [_of_answer(item, claim) for item in findings]
            unread = evidence.grounding and evidence.grounding.model_copy(update={"words": ()})
            evidence = replace(evidence, grounding=unread)
        return _Looked(evidence, findings, outcome)

    def _findings(self, claim: Claim, evidence: Premises, problems: list[Problem]) -> list[Finding]:
        """What the checks find, up to one that finds no claim."""
        unread = evidence.grounding.unread if evidence.grounding else ()
        because = "the judge cannot read this"
        size = len(evidence.indexed.statements)
        found = [finding("unread", Effect.MISSING, claim, span, because) for span in unread]
        context = Context(claim.context, content_stems(plain(claim.context)))
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

    def _sentence(self, claim: Claim, looked: _Looked) -> Sentence:
        evidence, findings, outcome, second = looked
        cited = carrying = citations_of(claim, evidence, outcome, verbatim=False)
        if self._verbatim:
            cited = citations_of(claim, evidence, outcome, verbatim=True)
        judged_by = None
        if self._second is not None and self._judge is not None and evidence.grounding is not None:
            judged_by = second.judge if second and second.missing is None else self._judge.name
        text, start, end = claim.place
        return Sentence(
            text=text,
            start=start,
            end=end,
            verdict=outcome.verdict,
            partial=outcome.verdict is Verdict.UNSUPPORTED and bool(outcome.carried),
            citations=cited,
            uncited=tuple([citation for citation in carrying if citation not in cited]),
            spans=spans_of(claim, evidence, outcome, findings),
            findings=tuple([item.model_copy(update={"statements": ()}) for item in findings]),
            against=against_of(evidence, outcome),
            citation_errors=citation_errors(claim, evidence, outcome),
            note=note_of(claim, evidence, outcome, cited, verbatim=self._verbatim),
            support=outcome.weighed and outcome.weighed.support,
            contradiction=outcome.weighed and outcome.weighed.contradiction,
            sure=outcome.sure,
            weights=outcome.weights,
            thresholds=evidence.thresholds if outcome.weighed else None,
            judged_by=judged_by,
            second_opinion=second,
            read=tuple(sorted({item.place + 1 for _, item in evidence.chosen if claim.prose})),
        )


def _is_heard(claim: Claim, subjects: Collection[str]) -> bool:
    """Whether the sentence, the question or a sentence before has a word of these subjects."""
    heard = content_stems(plain(f"{claim.question} {claim.before} {claim.text}"))
    return any(not heard.isdisjoint(content_stems(subject)) for subject in subjects)


def _heard(draft: _Draft, grounding: Grounding | None) -> Premises:
    """What a sentence is held against, with what the judge says of it as it is written."""
    assert draft.evidence is not None
    said = grounding and restored(grounding, draft.notation)
    return replace(draft.evidence, grounding=said)


def _fitting(claim: Claim, evidence: Premises) -> frozenset[int]:
    """Numbers of the statements that may support or contradict a sentence.

    What holds at another time does neither. If the sentence is about somebody whom the facts know
    only as a value, the facts that name them are left, and not those of their relatives.
    """
    others = evidence.subjects.difference(evidence.indexed.labels)
    foreign = bool(others) and evidence.subjects == others
    return frozenset([
        number
        for number, statement in evidence.chosen
        if applies(claim, statement) and not statement.is_missing
        if not foreign
        or statement.triple is None
        or any(name in statement.value_text for name in others)
    ])  # fmt: skip


def _of_answer(item: Finding, claim: Claim) -> Finding:
    """A finding on a proposition, as one on the bare answer to it."""
    swapped = {Effect.CARRIES: Effect.CONTRADICTS, Effect.CONTRADICTS: Effect.CARRIES}
    effect = swapped.get(item.effect, item.effect) if claim.denied else item.effect
    _, start, end = claim.place
    return item.model_copy(update={"effect": effect, "start": start, "end": end, "instead": None})
