"""Factuality of a text against evidence (CONNER eq. 1), and the choice of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean

from guardrail.sentences import split_sentences
from guardrail.types import NLIScores
from judges.base import NLIJudge, Pair, SentenceEncoder
from judges.conner.report import Aggregation, SentenceFactuality

__all__ = ["aggregate", "choose_evidence", "sentence_factuality", "states"]

CERTAIN = NLIScores(entailment=1.0, neutral=0.0, contradiction=0.0)


def sentence_factuality(
    judge: NLIJudge,
    rows: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]],
    *,
    word_for_word: bool = True,
) -> list[tuple[SentenceFactuality, ...]]:
    """Score every sentence of n texts against its own evidence: f(s, E) of eq. 1.

    The maximum over evidence runs along entailment; the whole vector of the winning piece is
    kept, so that its three components still sum to one. A sentence that stands in its evidence
    word for word is entailed with certainty, unread: an NLI model sees few such pairs in training
    and may deny that a sentence follows from itself.

    Args:
        judge: Asked once, for all pairs of all rows.
        rows: For each text its m sentences and, for each sentence, the evidence to read.
        word_for_word: Take a sentence that stands in its evidence as entailed, unread.

    Returns:
        For each text its sentences that had evidence.
    """
    stated = [
        [
            _stating(pieces, one) if word_for_word else None
            for one, pieces in zip(sentences, evidences, strict=True)
        ]
        for sentences, evidences in rows
    ]
    pairs = [
        Pair(premise=evidence, hypothesis=sentence)
        for (sentences, evidences), found in zip(rows, stated, strict=True)
        for sentence, pieces, piece in zip(sentences, evidences, found, strict=True)
        if piece is None
        for evidence in pieces
    ]
    scores = iter(judge.judge(pairs) if pairs else [])
    result = []
    for (sentences, evidences), found in zip(rows, stated, strict=True):
        judged = []
        for sentence, pieces, piece in zip(sentences, evidences, found, strict=True):
            if piece is not None:
                candidates = [(CERTAIN, piece)]
            else:
                candidates = [(next(scores), one) for one in pieces]
            if candidates:
                best, chosen = max(candidates, key=lambda pair: pair[0].entailment)
                judged.append(SentenceFactuality(sentence=sentence, evidence=chosen, scores=best))
        result.append(tuple(judged))
    return result


def states(evidence: str, sentence: str) -> bool:
    """Whether a sentence of the evidence, or all of it, is this sentence; spacing does not count.

    A part of a longer sentence is not stated: "it is false that …" may stand before it.
    """
    return " ".join(sentence.split()) in _statements(evidence)


@lru_cache(maxsize=256)
def _statements(text: str) -> frozenset[str]:
    """The sentences of a text, and the text itself."""
    parts = [text, *(stretch.text for stretch in split_sentences(text))]
    return frozenset(" ".join(part.split()) for part in parts) - {""}


def aggregate(sentences: Sequence[SentenceFactuality], how: Aggregation) -> NLIScores:
    """Join m >= 1 sentence vectors along entailment by minimum, mean or maximum (eq. 1)."""
    vectors = [sentence.scores for sentence in sentences]
    if how is Aggregation.MEAN:
        return NLIScores(
            entailment=fmean(v.entailment for v in vectors),
            neutral=fmean(v.neutral for v in vectors),
            contradiction=fmean(v.contradiction for v in vectors),
        )
    pick = min if how is Aggregation.MIN else max
    return pick(vectors, key=lambda vector: vector.entailment)


def choose_evidence(
    encoder: SentenceEncoder,
    rows: Sequence[tuple[Sequence[str], Sequence[str]]],
    limit: int,
    *,
    word_for_word: bool = True,
) -> list[list[tuple[str, ...]]]:
    """For each sentence of n texts the ``limit`` most similar pieces of the text's evidence.

    Where there are no more pieces than that, all are taken and nothing is embedded.

    Args:
        encoder: Asked once, for all texts.
        rows: For each text its sentences and its evidence.
        limit: Pieces to take, at least one.
        word_for_word: Of a sentence that stands in a piece word for word, take that piece alone.
    """
    stated = [
        [_stating(pieces, one) if word_for_word and len(pieces) > limit else None for one in own]
        for own, pieces in rows
    ]
    left = [
        [one for one, piece in zip(own, found, strict=True) if piece is None]
        for (own, _), found in zip(rows, stated, strict=True)
    ]
    unique = list(
        dict.fromkeys(
            text
            for sentences, (_, pieces) in zip(left, rows, strict=True)
            if sentences and len(pieces) > limit
            for text in (*sentences, *pieces)
        )
    )
    vectors = encoder.embed(unique) if unique else None
    place = {text: index for index, text in enumerate(unique)}
    chosen: list[list[tuple[str, ...]]] = []
    for (_, evidence), own, found in zip(rows, left, stated, strict=True):
        if vectors is None or len(evidence) <= limit or not own:
            nearest = iter([tuple(evidence)] * len(own))
        else:
            similarity = (
                vectors[[place[sentence] for sentence in own]]
                @ vectors[[place[piece] for piece in evidence]].T
            )
            order = (-similarity).argsort(axis=1, kind="stable")[:, :limit]
            nearest = iter([tuple(evidence[column] for column in row) for row in order])
        chosen.append([next(nearest) if piece is None else (piece,) for piece in found])
    return chosen


def _stating(pieces: Sequence[str], sentence: str) -> str | None:
    """The first piece that states a sentence."""
    return next((piece for piece in pieces if states(piece, sentence)), None)
