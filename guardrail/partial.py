"""Passages read closely: which window entails a sentence, and what the others support of it.

Windows are parsed only where their words alone leave open whether they tell the sentence's words
of something else, and where no window entails the sentence for certain.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.drafting import Draft
from guardrail.holding import Reading, differs, holdings, knows, lacking, may_differ, tells_others
from guardrail.leftovers import Leftover
from guardrail.naming import SentenceTokens
from guardrail.opposites import may_oppose, opposes
from guardrail.passages import PassageSupport
from guardrail.phrases import parse
from guardrail.reduction import Reduction, reduced
from guardrail.strangers import may_tell_of_another, named_subject, tells_it_of_another
from guardrail.support import Thresholds, touches
from guardrail.types import NLIScores
from judges.base import NLIJudge, Pair

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as ParsedSpan

__all__ = ["PartialSupport", "PassageReader", "WholeSupport", "unaccounted"]

CLEARLY_AGAINST = 0.9
"""A window that contradicts a sentence more than this outweighs another that entails it less."""

PassageScores = Mapping[int, NLIScores]
"""The judge's word by window: whether it entails the whole sentence."""


class WholeSupport(NamedTuple):
    """A window that entails a sentence.

    Attributes:
        window: The window.
        certain: False where the sentence has a name, date or number that the window lacks and
            the judge is not sure: it may have missed that the window says nothing of it.
    """

    window: PassageSupport
    certain: bool


class PartialSupport(NamedTuple):
    """A window that entails a part of a sentence."""

    window: PassageSupport
    reduction: Reduction


class PassageReader:
    """Reads windows of passages against the sentences of one batch; each is parsed once.

    Args:
        limits: The thresholds.
    """

    def __init__(self, limits: Thresholds) -> None:
        self._limits = limits
        self._docs: dict[str, Doc] = {}

    def whole(
        self, drafts: Sequence[Draft], scores: Sequence[PassageScores]
    ) -> list[WholeSupport | None]:
        """The window that entails each of n sentences best, and tells its words of the same."""
        found = [
            (place, window)
            for place, draft in enumerate(drafts)
            for window in draft.passages
            if (score := scores[place].get(window.number)) is not None
            and score.entailment >= self._limits.entailment
            and not _outweighed(score, scores[place])
        ]
        read = [SentenceTokens.of(window.text, 0) for _, window in found]
        spans = {place: _span(drafts[place]) for place, _ in found}
        doubted = [
            may_differ(
                spans[place], drafts[place].phrases, drafts[place].tokens, tokens, window.known
            )
            for (place, window), tokens in zip(found, read, strict=True)
        ]
        subjects = {place: named_subject(spans[place], drafts[place].phrases) for place in spans}
        foreign = [
            (subject := subjects[place]) is not None
            and may_tell_of_another(subject, drafts[place].tokens, tokens)
            for (place, _), tokens in zip(found, read, strict=True)
        ]
        turned = [
            may_oppose(drafts[place].tokens, tokens)
            for (place, _), tokens in zip(found, read, strict=True)
        ]
        self._parse(
            window.text
            for (_, window), *doubts in zip(found, doubted, foreign, turned, strict=True)
            if any(doubts)
        )
        best: list[tuple[bool, float, WholeSupport] | None] = [None] * len(drafts)
        for (place, window), tokens, doubt, other, contrary in zip(
            found, read, doubted, foreign, turned, strict=True
        ):
            draft, entailment = drafts[place], scores[place][window.number].entailment
            if doubt and differs(spans[place], draft.phrases, draft.tokens, self._read(window)):
                continue
            subject = subjects[place]
            if other and subject and tells_it_of_another(subject, self._read(window).doc):
                continue
            if contrary and opposes(spans[place], self._read(window).doc):
                continue
            missing = lacking(spans[place], draft.phrases, draft.tokens, tokens, window.known)
            certain = not missing or entailment >= self._limits.entailment_alone
            told = window.known - window.titled
            if not certain and any(knows(told, phrase) for phrase in missing):
                continue  # the passage tells it, but not here
            known = best[place]
            if known is None or (certain, entailment) > known[:2]:
                best[place] = (certain, entailment, WholeSupport(window, certain))
        return [None if one is None else one[2] for one in best]

    def parts(
        self,
        drafts: Sequence[Draft],
        wanted: Iterable[int],
        scores: Sequence[PassageScores],
        nli: NLIJudge,
    ) -> list[list[PartialSupport]]:
        """Ask the judge what windows support of some of n sentences that none of them entails.

        Args:
            drafts: The sentences.
            wanted: Places of those to ask about; a window costs each at most one pair.
            scores: What the judge said of them whole.
            nli: The judge.

        Returns:
            n lists, the part that holds most first, each further one adding to those before.

        Raises:
            JudgeError: The judge failed.
        """
        asked = [
            (place, window)
            for place in wanted
            for window in drafts[place].passages
            if not self._contradicts(window, drafts[place], scores[place])
        ]
        self._parse(window.text for _, window in asked)
        found = [
            (place, PartialSupport(window, reduction))
            for place, window in asked
            if (reduction := self._reduced(drafts[place], window)) is not None
        ]
        pairs = [Pair(part.window.text, part.reduction.text) for _, part in found]
        held: list[list[PartialSupport]] = [[] for _ in drafts]
        results = nli.judge(pairs) if pairs else []
        for (place, part), result in zip(found, results, strict=True):
            if result.entailment >= self._least(part.reduction):
                held[place].append(part)
        return [_adding(parts) for parts in held]

    def _contradicts(self, window: PassageSupport, draft: Draft, scores: PassageScores) -> bool:
        """Whether a window contradicts a sentence.

        Small judges call much that a passage does not tell contradicted. Unless they are very
        sure, the window has to tell a name or figure that may stand against the sentence's.
        """
        contradiction = scores[window.number].contradiction
        if not self._limits.contradiction <= contradiction < self._limits.contradiction_alone:
            return contradiction >= self._limits.contradiction
        read = SentenceTokens.of(window.text, 0)
        missing = lacking(_span(draft), draft.phrases, draft.tokens, read, window.known)
        return tells_others(missing, draft.tokens, read, window.titled)

    def _least(self, reduction: Reduction) -> float:
        return self._limits.entailment_alone if reduction.loose else self._limits.entailment

    def _reduced(self, draft: Draft, window: PassageSupport) -> Reduction | None:
        reading, span = self._read(window), _span(draft)
        found = holdings(span, draft.phrases, draft.tokens, reading)
        resolved = draft.subject.resolved
        part = reduced(span, draft.stretch, draft.tokens, resolved, found, reading)
        return None if part is None or opposes(span, reading.doc, part.cuts) else part

    def _parse(self, texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._docs]
        if new:
            self._docs.update(zip(new, parse(new, names=False), strict=True))

    def _read(self, window: PassageSupport) -> Reading:
        return Reading(self._docs[window.text], window.known)


def _outweighed(score: NLIScores, scores: PassageScores) -> bool:
    """Whether another window contradicts a sentence more clearly than one entails it."""
    least = max(score.entailment, CLEARLY_AGAINST)
    return any(other.contradiction > least for other in scores.values())


def _span(draft: Draft) -> ParsedSpan:
    """The sentence in the parsed answer, found in a time that hardly grows with the answer."""
    doc, stretch = draft.doc, draft.stretch
    places = range(len(doc))
    first = bisect_right(places, stretch.start, key=lambda place: doc[place].idx) - 1
    last = bisect_left(places, stretch.end, key=lambda place: doc[place].idx)
    return doc[max(0, first) : last]


def _adding(parts: Sequence[PartialSupport]) -> list[PartialSupport]:
    """The parts that hold something which those before do not, the fullest first."""
    kept: list[PartialSupport] = []
    for part in sorted(parts, key=lambda one: -len(one.reduction.held)):
        known = {span for one in kept for span in one.reduction.held}
        if not known.issuperset(part.reduction.held):
            kept.append(part)
    return kept


def unaccounted(left: Sequence[Leftover], parts: Sequence[PartialSupport]) -> list[Leftover]:
    """The phrases that triples leave over and that every part lacks as well, now for certain."""
    return [
        phrase._replace(certain=True)
        for phrase in left
        if all(touches((phrase.start, phrase.end), part.reduction.cuts) for part in parts)
    ]
