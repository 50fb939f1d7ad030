"""Factuality of a text against evidence, and the choice of evidence (CONNER eq. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from guardrail.core.types import NLIScores
from judges.base import NLIJudge, Pair, SentenceEncoder
from judges.conner.report import Aggregation, SentenceFactuality

__all__ = ["aggregate", "choose_evidence", "sentence_factuality"]

CERTAIN = NLIScores(entailment=1.0, neutral=0.0, contradiction=0.0)


def sentence_factuality(
    judge: NLIJudge,
    rows: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]],
    stated: Sequence[Sequence[str | None]],
) -> list[tuple[SentenceFactuality, ...]]:
    """Score every sentence of n texts against its own evidence: f(s, E) of eq. 1.

    The maximum over evidence is along entailment; the whole vector of that piece is kept, so that
    its three components sum to one. A stated sentence is entailed with certainty: an NLI model
    sees few such pairs in training and may deny that a sentence follows from itself.

    Args:
        judge: Called once, with all pairs of all rows.
        rows: For each text its m sentences and, for each sentence, the evidence to read.
        stated: For each sentence the piece that states it word for word, or None.

    Returns:
        For each text its sentences that had evidence.
    """
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
                candidates = [(next(scores), item) for item in pieces]
            if candidates:
                best, chosen = max(candidates, key=lambda pair: pair[0].entailment)
                judged.append(SentenceFactuality(sentence=sentence, evidence=chosen, scores=best))
        result.append(tuple(judged))
    return result


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
    stated: Sequence[Sequence[str | None]],
    limit: int,
) -> list[list[tuple[str, ...]]]:
    """For each sentence of n texts the ``limit`` most similar pieces of the text's evidence.

    For a stated sentence this is the piece that states it. Evidence within the limit is taken
    whole.

    Args:
        encoder: Called once, with all texts.
        rows: For each text its sentences and its evidence.
        stated: For each sentence the piece that states it word for word, or None.
        limit: Pieces to take, at least one.
    """
    left = [
        [item for item, piece in zip(own, found, strict=True) if piece is None]
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
