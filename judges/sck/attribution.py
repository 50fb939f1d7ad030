"""KG-AttrScore: every sentence attributable, extrapolatory or contradictory (SCK 2.1.3).

Verdicts of the caller are used where there are any. Otherwise an NLI judge reads the evidence
that shares most words with the sentence as premise and the sentence as hypothesis.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import Generic, NamedTuple, TypeVar

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.types import (
    Category,
    Evidence,
    NLIScores,
    Passage,
    Sentence,
    SpanKind,
    Triple,
    linearise,
)
from judges.base import NLIJudge, Pair
from judges.sck.report import SCKInput, SentenceVerdict

__all__ = ["attribute", "split"]

MAX_TRIPLES = 8
"""Triples in the premise of a sentence."""

MAX_PASSAGE_SENTENCES = 3
"""Sentences of passages in the premise of a sentence."""

VALUES = {
    Category.SUPPORTIVE: 1,
    Category.PARTIALLY_SUPPORTIVE: 0,
    Category.IRRELEVANT: 0,
    Category.CONTRADICTORY: -1,
}
SUPPORT = {Category.SUPPORTIVE: 1.0, Category.PARTIALLY_SUPPORTIVE: 0.5}
LABELS = {"entailment": 1, "neutral": 0, "contradiction": -1}
NAMES = {1: "attributable", 0: "extrapolatory", -1: "contradictory"}

_WORD = re.compile(r"\w+")
_BOUNDARY = re.compile(r"(?<=[.!?])[\"”’')]*\s+(?=\S)|\n+")
Item = TypeVar("Item")


class _Claim(NamedTuple):
    """A sentence for the judge, with its premise."""

    row: int
    place: int
    sentence: str
    triples: tuple[Triple, ...]
    premise: str


def split(answer: str) -> tuple[str, ...]:
    """Split an answer at sentence ends and line ends."""
    return tuple(piece.strip() for piece in _BOUNDARY.split(answer) if piece.strip())


def attribute(
    batch: Sequence[SCKInput], judge: NLIJudge | None
) -> list[tuple[SentenceVerdict, ...] | None]:
    """Judge the sentences of n answers in one batch.

    Returns:
        The verdicts of each answer; None for an answer that would need a judge and lacks judge or
        evidence.
    """
    results: list[list[SentenceVerdict | None]] = []
    claims: list[_Claim] = []
    for row, item in enumerate(batch):
        texts = [sentence.text for sentence in item.sentences] or list(split(item.answer))
        if any(sentence.category is not None for sentence in item.sentences):
            results.append([_of_caller(entry, item.evidence) for entry in item.sentences])
            continue
        results.append([None] * len(texts))
        if item.evidence and judge is not None:
            claims += _claims(row, item, texts)
    for entry, verdict in zip(claims, _judged(judge, claims), strict=True):
        results[entry.row][entry.place] = verdict
    return [None if None in verdicts else tuple(filter(None, verdicts)) for verdicts in results]


def _judged(judge: NLIJudge | None, claims: Sequence[_Claim]) -> list[SentenceVerdict]:
    read = [claim for claim in claims if claim.premise]
    pairs = [Pair(claim.premise, claim.sentence) for claim in read]
    verdicts = map(_from_nli, read, judge.judge(pairs) if judge is not None and pairs else ())
    silent = "extrapolatory: no evidence shares a word with it"
    return [
        next(verdicts)
        if claim.premise
        else SentenceVerdict(text=claim.sentence, value=0, rationale=silent)
        for claim in claims
    ]


def _from_nli(claim: _Claim, scores: NLIScores) -> SentenceVerdict:
    value = LABELS[scores.label]
    certainty = getattr(scores, scores.label)
    says = {1: "entails it", 0: "leaves it open", -1: "contradicts it"}[value]
    return SentenceVerdict(
        text=claim.sentence,
        value=value,
        support=float(value == 1),
        rationale=f"{NAMES[value]}: the evidence {says} ({certainty:.2f}): {claim.premise}",
        triples=claim.triples,
        scores=scores,
    )


def _of_caller(sentence: Sentence, evidence: Sequence[Evidence]) -> SentenceVerdict:
    """A verdict of the caller with the triples that its citations and spans name."""
    if sentence.category is None:
        none = "extrapolatory: it makes no claim to check"
        return SentenceVerdict(text=sentence.text, value=0, support=None, rationale=none)
    value = VALUES[sentence.category]
    cited = set(sentence.citations)
    triples = [item for item in evidence if isinstance(item, Triple) and item.citation in cited]
    against = [
        span.triple
        for span in sentence.spans
        if span.kind is SpanKind.CONTRADICTED and span.triple is not None
    ]
    named = tuple(dict.fromkeys(against if value < 0 and against else triples))
    if named:
        verb = {1: "supported by", 0: "supported in part by", -1: "contradicted by"}[value]
        why = f"{verb} {linearise(named)}"
    elif sentence.judgement is not None and sentence.judgement.rationale:
        why = sentence.judgement.rationale
    else:
        why = sentence.note or f"judged {sentence.category.value.replace('_', ' ')}"
    return SentenceVerdict(
        text=sentence.text,
        value=value,
        support=SUPPORT.get(sentence.category, 0.0),
        rationale=f"{NAMES[value]}: {why}",
        triples=named,
    )


def _claims(row: int, item: SCKInput, texts: Sequence[str]) -> Iterator[_Claim]:
    """The sentences of an answer, each with the evidence that shares most words with it."""
    triples = [entry for entry in item.evidence if isinstance(entry, Triple)]
    passages = [entry.text for entry in item.evidence if isinstance(entry, Passage)]
    pieces = list(dict.fromkeys(piece for text in passages for piece in split(text)))
    near_triples = _Nearest(triples, [triple.text for triple in triples])
    near_pieces = _Nearest(pieces, pieces)
    for place, text in enumerate(texts):
        words = _words(text)
        near = tuple(near_triples.best(words, MAX_TRIPLES))
        premise = [linearise(near)] if near else []
        premise += near_pieces.best(words, MAX_PASSAGE_SENTENCES)
        yield _Claim(row, place, text, near, " ".join(premise))


class _Nearest(Generic[Item]):
    """An index of items by the words of their texts."""

    def __init__(self, items: Sequence[Item], texts: Sequence[str]) -> None:
        self._items = items
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for word in _words(text):
                self._places[word].append(place)

    def best(self, words: frozenset[str], most: int) -> list[Item]:
        """The items that share most of these words, in input order."""
        shared = Counter(place for word in words for place in self._places.get(word, ()))
        top = nsmallest(most, shared, key=lambda place: (-shared[place], place))
        return [self._items[place] for place in sorted(top)]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - lexicon_set("function_words", "stop_words")
