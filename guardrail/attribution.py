"""Attribution: an answer and its evidence to cited sentences, ``[NA]`` spans and verdicts.

Sentence by sentence and phrase by phrase (KaLMA 3.3 and 4.4 turned round: the markers are set
by evidence instead of being asked of the model): which triples does the sentence entail, do
those triples entail the sentence, what is left over, what is contradicted.
"""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.absences import with_absences
from guardrail.conflicts import conflicts
from guardrail.drafting import AttributionRequest, Draft, drafts_of
from guardrail.errors import JudgeError
from guardrail.frames import called_otherwise
from guardrail.leftovers import leftovers, with_refused
from guardrail.markers.rendering import marked_text
from guardrail.matching import Match
from guardrail.partial import PartialSupport, PassageReader, WholeSupport
from guardrail.phrases import parse
from guardrail.predicates import with_bare
from guardrail.rivals import told_as_another
from guardrail.senses import told_in_another_sense
from guardrail.support import (
    Thresholds,
    accepted,
    is_name,
    needs_nli,
    settled,
)
from guardrail.types import (
    AttributedAnswer,
    Judgement,
    NLIScores,
    Problem,
    Sentence,
    linearise,
)
from guardrail.verdicts import Verdict, sentence_of, wants_parts
from guardrail.wording import as_evidence, as_pair
from judges.base import AttributionItem, AttributionJudge, NLIJudge, Pair

__all__ = ["AttributionRequest", "Attributor"]

FEW_TRIPLES = 12
"""Evidence of at most this many triples is put to the judge whole, sentence by sentence."""

MAX_PAIRS = 12
"""At most this many triples are put to the judge for one sentence, those found best first."""


CERTAIN = NLIScores(entailment=1.0, neutral=0.0, contradiction=0.0)
"""Stands for the judge's word where exact evidence settles the matter."""

MAX_READ = 15
"""At most this many triples are read by the attribution judge for one sentence, as in training."""


class Attributor:
    """Grounds answers in evidence.

    Args:
        nli: Judges whether a sentence entails a triple; None for exact evidence alone.
        attribution: Judges how the cited triples bear on a sentence; None to do without.
        thresholds: Probabilities at which the judges' word counts.
        verbatim: Cite only triples whose value stands in its sentence as the graph writes it.
    """

    def __init__(
        self,
        nli: NLIJudge | None,
        attribution: AttributionJudge | None,
        thresholds: Thresholds | None = None,
        *,
        verbatim: bool = False,
    ) -> None:
        self._nli = nli
        self._attribution = attribution
        self._limits = thresholds or Thresholds()
        self._verbatim = verbatim

    def attribute(
        self, requests: Sequence[AttributionRequest]
    ) -> tuple[list[AttributedAnswer], list[Problem]]:
        """Attribute n answers in one pass: one parse, one NLI call, one attribution call.

        Returns:
            n attributed answers in order, and what went wrong; a judge that fails leaves exact
            evidence to decide.
        """
        problems: list[Problem] = []
        unread = iter(parse([one.answer.clean for one in requests if one.doc is None]))
        docs = [one.doc if one.doc is not None else next(unread) for one in requests]
        drafts = [
            draft
            for number, (request, doc) in enumerate(zip(requests, docs, strict=True))
            for draft in drafts_of(number, request, doc)
        ]
        scores, by_window, judged = self._entailment(drafts, problems)
        reader = PassageReader(self._limits)
        whole = reader.whole(drafts, by_window)
        verdicts = [
            self._decide(draft, scores[place], judged, whole[place])
            for place, draft in enumerate(drafts)
        ]
        verdicts = self._with_parts(drafts, verdicts, by_window, reader, problems)
        judgements = self._judgements(drafts, verdicts, problems)
        sentences: list[list[Sentence]] = [[] for _ in requests]
        for draft, verdict, judgement in zip(drafts, verdicts, judgements, strict=True):
            answer = requests[draft.request].answer
            sentence = sentence_of(
                draft, verdict, judgement, answer, self._limits, verbatim=self._verbatim
            )
            sentences[draft.request].append(sentence)
        return [
            AttributedAnswer(
                text=request.answer.clean,
                marked=marked_text(request.answer.clean, sentences[number]),
                sentences=tuple(sentences[number]),
            )
            for number, request in enumerate(requests)
        ], problems

    def _entailment(
        self, drafts: Sequence[Draft], problems: list[Problem]
    ) -> tuple[list[dict[int, NLIScores]], list[dict[int, NLIScores]], bool]:
        """Ask the NLI judge about all drafts at once: scores by triple, and by window."""
        scores: list[dict[int, NLIScores]] = [{} for _ in drafts]
        by_window: list[dict[int, NLIScores]] = [{} for _ in drafts]
        places: list[tuple[dict[int, NLIScores], int]] = []
        pairs: list[Pair] = []
        for place, draft in enumerate(drafts):
            if not draft.claim:
                continue
            few = len(draft.matches) <= FEW_TRIPLES
            asked = []
            for match in draft.matches:
                if settled(match, draft.tokens, draft.matches):
                    scores[place][match.number] = CERTAIN
                elif needs_nli(match, few=few):
                    asked.append(match)
            asked.sort(key=lambda match: (-match.value_share, -len(match.cue_spans), match.number))
            for match in asked[:MAX_PAIRS]:
                places.append((scores[place], match.number))
                pairs.append(as_pair(draft, match))
            for window in draft.passages:
                places.append((by_window[place], window.number))
                pairs.append(Pair(window.text, draft.subject.resolved))
        results = self._ask(pairs, problems)
        if results is None:
            return scores, by_window, False
        for (known, number), result in zip(places, results, strict=True):
            known[number] = result
        return scores, by_window, True

    def _ask(self, pairs: Sequence[Pair], problems: list[Problem]) -> list[NLIScores] | None:
        """The NLI judge's word on pairs; None without a judge, or where it fails."""
        if self._nli is None:
            return None
        try:
            return self._nli.judge(pairs) if pairs else []
        except JudgeError as error:
            problems.append(Problem(part="judge", message=str(error)))
            return None

    def _decide(
        self,
        draft: Draft,
        scores: dict[int, NLIScores],
        judged: bool,
        whole: WholeSupport | None,
    ) -> Verdict:
        if not draft.claim:
            return Verdict((), None, (), ())
        found = accepted(draft.matches, scores if judged else None, self._limits)
        refused = [match for match in found if _is_told_otherwise(draft, match)]
        kept = [
            match
            for match in found
            if match not in refused and not told_as_another(match, draft.tokens, draft.matches)
        ]
        clashes = conflicts(
            draft.tokens,
            draft.phrases,
            draft.matches,
            kept,
            scores,
            self._limits,
            draft.subject.doubtful,
        )
        left = leftovers(draft.phrases, kept, draft.tokens, draft.subject.topic)
        left = with_refused(left, refused, kept)
        left = with_bare(left, draft.doc, draft.stretch, draft.phrases, kept)
        left = with_absences(left, draft.doc, draft.matches)
        left = [
            phrase
            for phrase in left
            if not any(phrase.start < clash.end and clash.start < phrase.end for clash in clashes)
        ]
        return Verdict(tuple(kept), whole, tuple(clashes), tuple(left))

    def _with_parts(
        self,
        drafts: Sequence[Draft],
        verdicts: Sequence[Verdict],
        scores: Sequence[dict[int, NLIScores]],
        reader: PassageReader,
        problems: list[Problem],
    ) -> list[Verdict]:
        """Ask what passages support of the sentences that none of them entails for certain."""
        wanted = [
            place
            for place, (draft, verdict) in enumerate(zip(drafts, verdicts, strict=True))
            if scores[place] and wants_parts(draft, verdict)
        ]
        parts: list[list[PartialSupport]] = [[] for _ in drafts]
        if self._nli is not None and wanted:
            try:
                parts = reader.parts(drafts, wanted, scores, self._nli)
            except JudgeError as error:
                problems.append(Problem(part="judge", message=str(error)))
        return [
            verdict.with_parts(held) if held else verdict
            for verdict, held in zip(verdicts, parts, strict=True)
        ]

    def _judgements(
        self,
        drafts: Sequence[Draft],
        verdicts: Sequence[Verdict],
        problems: list[Problem],
    ) -> list[Judgement | None]:
        """Ask the attribution judge how the cited triples bear on each sentence."""
        places, items = [], []
        for place, (draft, verdict) in enumerate(zip(drafts, verdicts, strict=True)):
            evidence = _near_text(draft, verdict)
            if draft.claim and evidence:
                # One sentence of an answer need not answer the whole question: beside it, the
                # judge would call every such sentence partly supported.
                places.append(place)
                items.append(AttributionItem("", draft.subject.resolved, evidence))
        judgements: list[Judgement | None] = [None] * len(drafts)
        if self._attribution is None or not items:
            return judgements
        try:
            results = self._attribution.attribute(items)
        except JudgeError as error:
            problems.append(Problem(part="judge", message=str(error)))
            return judgements
        for place, result in zip(places, results, strict=True):
            judgements[place] = result
        return judgements


def _is_told_otherwise(draft: Draft, match: Match) -> bool:
    return called_otherwise(draft.doc, match) or told_in_another_sense(draft.doc, match)


def _near_text(draft: Draft, verdict: Verdict) -> tuple[str, ...]:
    """What the attribution judge reads: the accepted triples and those that came near."""
    kept = [match.number for match in verdict.kept]
    near = [
        match.number
        for match in sorted(draft.matches, key=lambda match: -match.value_share)
        if match.number not in kept
        and match.subject not in ("foreign", "other")
        and (match.value_share > 0.0 or not is_name(match.triple.value))
    ]
    against = [clash.triple for clash in verdict.conflicts]
    near += [match.number for match in draft.matches if match.triple in against]
    chosen = sorted(dict.fromkeys([*kept, *near][:MAX_READ]))
    by_number = {match.number: match for match in draft.matches}
    triples = [as_evidence(draft, by_number[number], told=number in kept) for number in chosen]
    texts = (linearise(sorted(triples, key=lambda one: one.subject)),) if triples else ()
    windows = [verdict.whole.window] if verdict.whole else [one.window for one in verdict.parts]
    return texts + tuple(window.text for window in windows)
