"""SCK with KG-AttrScore by an NLI judge, for answers that no guardrail has judged."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Generic, TypeVar

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.types import Category, NLIScores, Passage, Sentence, Triple, linearise
from judges.base import NLIJudge, Pair
from judges.encoder import OnnxEncoder
from judges.sck import SCKInput, SCKReport, SCKScorer, SCKSettings

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = ["JudgedScorer"]

MAX_TRIPLES = 8
"""Triples in the premise of a sentence."""

MAX_PASSAGE_SENTENCES = 3
"""Sentences of passages in the premise of a sentence."""

CATEGORIES = {
    "entailment": Category.SUPPORTIVE,
    "neutral": Category.IRRELEVANT,
    "contradiction": Category.CONTRADICTORY,
}

_WORD = re.compile(r"\w+")
_BOUNDARY = re.compile(r"(?<=[.!?])[\"”’')]*\s+(?=\S)|\n+")
Item = TypeVar("Item")


class JudgedScorer(SCKScorer):
    """Judges each sentence first, against the evidence that shares most words with it.

    Args:
        encoder: See ``SCKScorer``.
        judge: Judges evidence (premise) against each sentence (hypothesis).
        settings: Weights.
    """

    def __init__(
        self, encoder: OnnxEncoder, judge: NLIJudge, settings: SCKSettings | None = None
    ) -> None:
        super().__init__(encoder, settings)
        self._judge = judge

    def score(
        self, batch: Sequence[SCKInput], docs: Mapping[str, Doc] | None = None
    ) -> list[SCKReport]:
        """Score n answers, in order; see ``SCKScorer``."""
        claims = [list(_claims(item)) if item.evidence else [] for item in batch]
        pairs = [pair for own in claims for pair in own if pair.premise]
        scores = iter(self._judge.judge(pairs) if pairs else ())
        return super().score(
            [
                item.model_copy(
                    update={
                        "sentences": tuple(
                            _sentence(pair.hypothesis, next(scores) if pair.premise else None)
                            for pair in own
                        )
                    }
                )
                for item, own in zip(batch, claims, strict=True)
            ],
            docs,
        )


def _sentence(text: str, scores: NLIScores | None) -> Sentence:
    """A sentence with its category; without a premise no evidence bears on it."""
    category = Category.IRRELEVANT if scores is None else CATEGORIES[scores.label]
    return Sentence.model_validate(
        {"text": text, "start": 0, "end": len(text), "category": category}
    )


def _claims(item: SCKInput) -> Iterator[Pair]:
    """The sentences of an answer, each with the evidence that shares most words with it."""
    triples = [entry for entry in item.evidence if isinstance(entry, Triple)]
    passages = [entry.text for entry in item.evidence if isinstance(entry, Passage)]
    pieces = list(dict.fromkeys(piece for text in passages for piece in _split(text)))
    near_triples = _Nearest(triples, [triple.text for triple in triples])
    near_pieces = _Nearest(pieces, pieces)
    for text in _split(item.answer):
        near = near_triples.best(text, MAX_TRIPLES)
        premise = [linearise(near)] if near else []
        premise += near_pieces.best(text, MAX_PASSAGE_SENTENCES)
        yield Pair(" ".join(premise), text)


def _split(text: str) -> list[str]:
    """Split a text at sentence ends and line ends."""
    return [piece.strip() for piece in _BOUNDARY.split(text) if piece.strip()]


class _Nearest(Generic[Item]):
    """An index of items by the words of their texts."""

    def __init__(self, items: Sequence[Item], texts: Sequence[str]) -> None:
        self._items = items
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for word in _content_words(text):
                self._places[word].append(place)

    def best(self, text: str, most: int) -> list[Item]:
        """The items that share most words with a text, in input order."""
        words = _content_words(text)
        shared = Counter(place for word in words for place in self._places.get(word, ()))
        top = nsmallest(most, shared, key=lambda place: (-shared[place], place))
        return [self._items[place] for place in sorted(top)]


def _content_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - lexicon_set("function_words", "stop_words")
