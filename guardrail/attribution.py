"""Attribution: an answer and its evidence to cited sentences, ``[NA]`` spans and verdicts.

Sentence by sentence and phrase by phrase (KaLMA 3.3 and 4.4 turned round: the markers are set
by evidence instead of being asked of the model): which triples does the sentence entail, do
those triples entail the sentence, what is left over, what is contradicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.citations import ParsedText
from guardrail.coreference import Subject, genders, subjects_of
from guardrail.errors import JudgeError
from guardrail.matching import EvidenceIndex, Match, SentenceTokens
from guardrail.passages import PassageIndex, PassageSupport
from guardrail.phrases import Phrase, factual_phrases, is_claim, parse
from guardrail.rendering import marked_text
from guardrail.sentences import Stretch, split_sentences
from guardrail.support import (
    Conflict,
    Leftover,
    Thresholds,
    accepted,
    conflicts,
    leftovers,
    needs_nli,
    unsupported,
)
from guardrail.types import (
    AttributedAnswer,
    Category,
    Citation,
    Evidence,
    Judgement,
    NLIScores,
    Passage,
    Problem,
    Sentence,
    Span,
    SpanKind,
    Triple,
    linearise,
)
from guardrail.values import fold, tokenise
from judges.base import AttributionItem, AttributionJudge, NLIJudge, Pair

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = ["AttributionRequest", "Attributor"]

FEW_TRIPLES = 12
"""Evidence of at most this many triples is put to the judge whole, sentence by sentence."""

MAX_PAIRS = 12
"""At most this many triples are put to the judge for one sentence, those found best first."""


class AttributionRequest(NamedTuple):
    """One answer to attribute.

    Attributes:
        question: The question it answers.
        answer: The answer with the markers that stood in it, parsed.
        evidence: Triples and passages.
        asked: Label of the entity that the question is about, where it is known.
        doc: The clean answer parsed already; None to parse it here.
    """

    question: str
    answer: ParsedText
    evidence: tuple[Evidence, ...]
    asked: str | None = None
    doc: Doc | None = None


class _Draft(NamedTuple):
    """A sentence on its way."""

    request: int
    stretch: Stretch
    tokens: SentenceTokens
    phrases: tuple[Phrase, ...]
    subject: Subject
    claim: bool
    matches: tuple[Match, ...]
    passages: tuple[PassageSupport, ...]


class _Verdict(NamedTuple):
    """What the evidence says of a draft."""

    kept: tuple[Match, ...]
    passage: PassageSupport | None
    conflicts: tuple[Conflict, ...]
    leftovers: tuple[Leftover, ...]


class Attributor:
    """Grounds answers in evidence.

    Args:
        nli: Judges whether a sentence entails a triple; None for exact evidence alone.
        attribution: Judges how the cited triples bear on a sentence; None to do without.
        thresholds: Probabilities at which the judges' word counts.
    """

    def __init__(
        self,
        nli: NLIJudge | None,
        attribution: AttributionJudge | None,
        thresholds: Thresholds | None = None,
    ) -> None:
        self._nli = nli
        self._attribution = attribution
        self._limits = thresholds or Thresholds()

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
            for draft in _drafts(number, request, doc)
        ]
        scores, judged = self._entailment(drafts, problems)
        verdicts = [
            self._decide(draft, scores[place], judged) for place, draft in enumerate(drafts)
        ]
        judgements = self._judgements(requests, drafts, verdicts, problems)
        sentences: list[list[Sentence]] = [[] for _ in requests]
        for draft, verdict, judgement in zip(drafts, verdicts, judgements, strict=True):
            answer = requests[draft.request].answer
            sentence = _sentence(draft, verdict, judgement, answer, self._limits)
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
        self, drafts: Sequence[_Draft], problems: list[Problem]
    ) -> tuple[list[dict[int, NLIScores]], bool]:
        """Ask the NLI judge about all drafts at once: scores by triple, negative for passages."""
        places: list[tuple[int, int]] = []
        pairs: list[Pair] = []
        for place, draft in enumerate(drafts):
            if not draft.claim:
                continue
            few = len(draft.matches) <= FEW_TRIPLES
            asked = [match for match in draft.matches if needs_nli(match, few=few)]
            asked.sort(key=lambda match: (-match.value_share, -len(match.cue_spans), match.number))
            for match in asked[:MAX_PAIRS]:
                places.append((place, match.number))
                pairs.append(Pair(draft.subject.resolved, match.triple.text))
            for support in draft.passages:
                places.append((place, -1 - support.number))
                pairs.append(Pair(support.text, draft.subject.resolved))
        scores: list[dict[int, NLIScores]] = [{} for _ in drafts]
        if self._nli is None:
            return scores, False
        try:
            results = self._nli.judge(pairs) if pairs else []
        except JudgeError as error:
            problems.append(Problem(part="judge", message=str(error)))
            return scores, False
        for (place, number), result in zip(places, results, strict=True):
            scores[place][number] = result
        return scores, True

    def _decide(self, draft: _Draft, scores: dict[int, NLIScores], judged: bool) -> _Verdict:
        if not draft.claim:
            return _Verdict((), None, (), ())
        kept = accepted(draft.matches, scores if judged else None, self._limits)
        passage = max(
            (
                support
                for support in draft.passages
                if (score := scores.get(-1 - support.number)) is not None
                and score.entailment >= self._limits.entailment
            ),
            key=lambda support: scores[-1 - support.number].entailment,
            default=None,
        )
        clashes = conflicts(
            draft.tokens,
            draft.phrases,
            draft.matches,
            kept,
            scores,
            self._limits,
        )
        left = [] if passage else leftovers(draft.phrases, kept, draft.tokens, draft.subject.topic)
        left = [
            phrase
            for phrase in left
            if not any(phrase.start < clash.end and clash.start < phrase.end for clash in clashes)
        ]
        return _Verdict(tuple(kept), passage, tuple(clashes), tuple(left))

    def _judgements(
        self,
        requests: Sequence[AttributionRequest],
        drafts: Sequence[_Draft],
        verdicts: Sequence[_Verdict],
        problems: list[Problem],
    ) -> list[Judgement | None]:
        """Ask the attribution judge how the cited triples bear on each sentence."""
        places, items = [], []
        for place, (draft, verdict) in enumerate(zip(drafts, verdicts, strict=True)):
            evidence = _cited_text(verdict)
            if draft.claim and evidence:
                question = requests[draft.request].question
                places.append(place)
                items.append(AttributionItem(question, draft.subject.resolved, evidence))
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


def _drafts(number: int, request: AttributionRequest, doc: Doc) -> list[_Draft]:
    triples = [one for one in request.evidence if isinstance(one, Triple)]
    passages = [one for one in request.evidence if isinstance(one, Passage)]
    index = EvidenceIndex(triples)
    reader = PassageIndex(passages)
    subjects = list(index.subjects)
    known = {
        token.folded for triple in triples for token in tokenise(f"{triple.subject} {triple.value}")
    } | {token.folded for token in tokenise(request.question)}
    asked = request.asked
    if asked is None:
        question = fold(request.question)
        asked = next((label for label in subjects if fold(label) in question), None)
    stretches = split_sentences(request.answer.clean)
    tokens = [SentenceTokens.of(stretch.text, stretch.start) for stretch in stretches]
    traced = subjects_of(
        doc,
        stretches,
        tokens,
        subjects=subjects,
        known_words=frozenset(known),
        sexes=genders(triples),
        asked=asked,
    )
    return [
        _Draft(
            request=number,
            stretch=stretch,
            tokens=sentence,
            phrases=tuple(factual_phrases(doc, stretch.start, stretch.end)),
            subject=subject,
            claim=is_claim(stretch.text),
            matches=tuple(index.matches(sentence, topic=subject.topic, foreign=subject.foreign)),
            passages=tuple(reader.nearest(sentence)),
        )
        for stretch, sentence, subject in zip(stretches, tokens, traced, strict=True)
    ]


def _cited_text(verdict: _Verdict) -> tuple[str, ...]:
    triples = sorted(
        [match.triple for match in verdict.kept] + [clash.triple for clash in verdict.conflicts],
        key=lambda triple: triple.subject,
    )
    texts = (linearise(triples),) if triples else ()
    return texts + ((verdict.passage.text,) if verdict.passage else ())


def _sentence(
    draft: _Draft,
    verdict: _Verdict,
    judgement: Judgement | None,
    answer: ParsedText,
    limits: Thresholds,
) -> Sentence:
    stretch = draft.stretch
    supported = bool(verdict.kept or verdict.passage)
    lacking = draft.claim and unsupported(verdict.leftovers, judgement, supported, limits)
    shown = list(verdict.leftovers) if lacking else []
    if lacking and not any(phrase.kind.hard for phrase in shown):
        shown = shown or [_whole(draft)]
    elif lacking:
        shown = [phrase for phrase in shown if phrase.kind.hard]
    spans = _spans(draft, verdict, shown)
    category: Category | None = None
    if draft.claim:
        if verdict.conflicts:
            category = Category.CONTRADICTORY
        elif not supported:
            category = Category.IRRELEVANT
        else:
            category = Category.PARTIALLY_SUPPORTIVE if lacking else Category.SUPPORTIVE
    cited = _citations(verdict)
    return Sentence(
        text=stretch.text,
        start=stretch.start,
        end=stretch.end,
        category=category,
        na=lacking,
        citations=cited,
        spans=spans,
        judgement=judgement,
        note=_dropped(answer, stretch, cited),
    )


def _citations(verdict: _Verdict) -> tuple[Citation, ...]:
    ordered = sorted(
        verdict.kept, key=lambda match: (match.value_spans or match.cue_spans or ((0, 0),))[0]
    )
    cited = [match.triple.citation for match in ordered]
    if verdict.passage is not None:
        cited.append(verdict.passage.citation)
    return tuple(dict.fromkeys(cited))


def _whole(draft: _Draft) -> Leftover:
    from guardrail.phrases import PhraseKind

    stretch = draft.stretch
    return Leftover(stretch.text, stretch.start, stretch.end, PhraseKind.RELATION)


def _spans(draft: _Draft, verdict: _Verdict, shown: Sequence[Leftover]) -> tuple[Span, ...]:
    """Phrases by support; contradictions first, then support, then what is left over."""
    text, offset = draft.stretch.text, draft.stretch.start
    wanted: list[tuple[int, int, SpanKind, Triple | None]] = [
        (clash.start, clash.end, SpanKind.CONTRADICTED, clash.triple) for clash in verdict.conflicts
    ]
    finer = {(match.finer.start, match.finer.end) for match in verdict.kept if match.finer}
    for match in verdict.kept:
        for start, end in (match.value_spans or match.cue_spans)[:1]:
            if (start, end) not in finer:
                wanted.append((start, end, SpanKind.SUPPORTED, match.triple))
    wanted += [(one.start, one.end, SpanKind.NA, None) for one in shown]
    chosen: list[tuple[int, int, SpanKind, Triple | None]] = []
    for span in wanted:
        if not any(span[0] < end and start < span[1] for start, end, _, _ in chosen):
            chosen.append(span)
    return tuple(
        Span(text=text[start - offset : end - offset], start=start, end=end, kind=kind, triple=fact)
        for start, end, kind, fact in sorted(chosen, key=lambda one: one[0])
    )


def _dropped(answer: ParsedText, stretch: Stretch, cited: Sequence[Citation]) -> str | None:
    """Say which citations of the text were not kept, and why."""
    held = {(fold(one.property), fold(one.value)) for one in cited}
    gone = []
    for marker in answer.within(stretch.start, stretch.end):
        for citation in marker.citations:
            if (fold(citation.property), fold(citation.value)) not in held:
                gone.append(
                    ", ".join(filter(None, (citation.entity, citation.property)))
                    + f": {citation.value}"
                )
    if not gone:
        return None
    return "citation dropped, the sentence does not state it or no evidence holds it: " + "; ".join(
        dict.fromkeys(gone)
    )
