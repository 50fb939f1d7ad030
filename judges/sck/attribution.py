"""KG-AttrScore: every sentence attributable, extrapolatory or contradictory (SCK 2.1.3).

Verdicts that the caller has already are taken over. Else an NLI judge reads the evidence nearest
to the sentence as premise and the sentence as hypothesis.
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
"""Triples nearest to a sentence that are put to the judge."""

MAX_PASSAGE_SENTENCES = 3
"""Sentences of passages nearest to a sentence that are put to the judge."""

VALUES = {
    Category.SUPPORTIVE: 1,
    Category.PARTIALLY_SUPPORTIVE: 0,
    Category.IRRELEVANT: 0,
    Category.CONTRADICTORY: -1,
}
LABELS = {"entailment": 1, "neutral": 0, "contradiction": -1}
NAMES = {1: "attributable", 0: "extrapolatory", -1: "contradictory"}

_WORD = re.compile(r"\w+")
_BOUNDARY = re.compile(r"(?<=[.!?])[\"”’')]*\s+(?=\S)|\n+")
Item = TypeVar("Item")


class _Asked(NamedTuple):
    """A sentence on its way to the judge, with the evidence nearest to it as one text."""

    row: int
    place: int
    sentence: str
    triples: tuple[Triple, ...]
    premise: str


def split(answer: str) -> tuple[str, ...]:
    """Split an answer at sentence ends and line ends; for callers without sentences."""
    return tuple(piece.strip() for piece in _BOUNDARY.split(answer) if piece.strip())


def attribute(
    batch: Sequence[SCKInput], judge: NLIJudge | None
) -> list[tuple[SentenceVerdict, ...] | None]:
    """Give the sentences of n answers their verdicts; all that need a judge go in one batch.

    Returns:
        For each answer its verdicts; None where it has sentences to judge but no evidence or no
        judge to do it.
    """
    results: list[list[SentenceVerdict | None]] = []
    asked: list[_Asked] = []
    for row, item in enumerate(batch):
        handed = any(sentence.category is not None for sentence in item.sentences)
        texts = [sentence.text for sentence in item.sentences] or list(split(item.answer))
        if handed:
            results.append([_taken_over(entry, item.evidence) for entry in item.sentences])
            continue
        results.append([None] * len(texts))
        if item.evidence and judge is not None:
            asked += _asked(row, item, texts)
    for entry, verdict in zip(asked, _ask(judge, asked), strict=True):
        results[entry.row][entry.place] = verdict
    return [None if None in verdicts else tuple(filter(None, verdicts)) for verdicts in results]


def _ask(judge: NLIJudge | None, asked: Sequence[_Asked]) -> list[SentenceVerdict]:
    read = [item for item in asked if item.premise]
    pairs = [Pair(item.premise, item.sentence) for item in read]
    verdicts = map(_from_nli, read, judge.judge(pairs) if judge is not None and pairs else ())
    return [next(verdicts) if item.premise else _silent(item) for item in asked]


def _silent(asked: _Asked) -> SentenceVerdict:
    return SentenceVerdict(
        text=asked.sentence, value=0, rationale="extrapolatory: no evidence shares a word with it"
    )


def _from_nli(asked: _Asked, scores: NLIScores) -> SentenceVerdict:
    value = LABELS[scores.label]
    certainty = getattr(scores, scores.label)
    says = {1: "entails it", 0: "leaves it open", -1: "contradicts it"}[value]
    return SentenceVerdict(
        text=asked.sentence,
        value=value,
        rationale=f"{NAMES[value]}: the evidence {says} ({certainty:.2f}): {asked.premise}",
        triples=asked.triples,
        scores=scores,
    )


def _taken_over(sentence: Sentence, evidence: Sequence[Evidence]) -> SentenceVerdict:
    """A verdict of the caller, with the triples that its citations and spans name."""
    if sentence.category is None:
        return SentenceVerdict(
            text=sentence.text, value=0, rationale="extrapolatory: it makes no claim to check"
        )
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
        text=sentence.text, value=value, rationale=f"{NAMES[value]}: {why}", triples=named
    )


def _asked(row: int, item: SCKInput, texts: Sequence[str]) -> Iterator[_Asked]:
    """The sentences of an answer, each with the evidence that shares most words with it."""
    triples = [entry for entry in item.evidence if isinstance(entry, Triple)]
    passages = [entry.text for entry in item.evidence if isinstance(entry, Passage)]
    pieces = list(dict.fromkeys(piece for text in passages for piece in split(text)))
    near_triples = _Nearest(triples, [triple.text for triple in triples])
    near_pieces = _Nearest(pieces, pieces)
    for place, text in enumerate(texts):
        words = _words(text)
        near = tuple(near_triples.best(words, MAX_TRIPLES))
        told = [linearise(near)] if near else []
        told += near_pieces.best(words, MAX_PASSAGE_SENTENCES)
        yield _Asked(row, place, text, near, " ".join(told))


class _Nearest(Generic[Item]):
    """Items by the words of their texts; only those that share a word are looked at."""

    def __init__(self, items: Sequence[Item], texts: Sequence[str]) -> None:
        self._items = items
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for word in _words(text):
                self._places[word].append(place)

    def best(self, words: frozenset[str], most: int) -> list[Item]:
        """The items that share most of these words, in the order they came."""
        shared = Counter(place for word in words for place in self._places.get(word, ()))
        top = nsmallest(most, shared, key=lambda place: (-shared[place], place))
        return [self._items[place] for place in sorted(top)]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - lexicon_set("function_words", "stop_words")
