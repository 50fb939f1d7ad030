"""Factuality of a text against evidence (CONNER eq. 1), and the choice of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from guardrail.types import NLIScores
from judges.base import NLIJudge, Pair, SentenceEncoder
from judges.conner.report import Aggregation, SentenceFactuality

__all__ = ["aggregate", "choose_evidence", "sentence_factuality"]


def sentence_factuality(
    judge: NLIJudge, rows: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]]
) -> list[tuple[SentenceFactuality, ...]]:
    """Score every sentence of n texts against its own evidence: f(s, E) of eq. 1.

    The maximum over evidence runs along entailment; the whole vector of the winning piece is
    kept, so that its three components still sum to one.

    Args:
        judge: Asked once, for all pairs of all rows.
        rows: For each text its m sentences and, for each sentence, the evidence to read.

    Returns:
        For each text its sentences that had evidence.
    """
    pairs = [
        Pair(premise=evidence, hypothesis=sentence)
        for sentences, evidences in rows
        for sentence, pieces in zip(sentences, evidences, strict=True)
        for evidence in pieces
    ]
    scores = iter(judge.judge(pairs) if pairs else [])
    result = []
    for sentences, evidences in rows:
        judged = []
        for sentence, pieces in zip(sentences, evidences, strict=True):
            candidates = [(next(scores), piece) for piece in pieces]
            if candidates:
                best, piece = max(candidates, key=lambda pair: pair[0].entailment)
                judged.append(SentenceFactuality(sentence=sentence, evidence=piece, scores=best))
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
    encoder: SentenceEncoder, rows: Sequence[tuple[Sequence[str], Sequence[str]]], limit: int
) -> list[list[tuple[str, ...]]]:
    """For each sentence of n texts the ``limit`` most similar pieces of the text's evidence.

    Where there are no more pieces than that, all are taken and nothing is embedded.
    """
    wanted = [
        text
        for sentences, evidence in rows
        if len(evidence) > limit
        for text in (*sentences, *evidence)
    ]
    unique = list(dict.fromkeys(wanted))
    vectors = encoder.embed(unique) if unique else None
    place = {text: index for index, text in enumerate(unique)}
    chosen: list[list[tuple[str, ...]]] = []
    for sentences, evidence in rows:
        if vectors is None or len(evidence) <= limit:
            chosen.append([tuple(evidence)] * len(sentences))
            continue
        similarity = (
            vectors[[place[sentence] for sentence in sentences]]
            @ vectors[[place[piece] for piece in evidence]].T
        )
        order = (-similarity).argsort(axis=1, kind="stable")[:, :limit]
        chosen.append([tuple(evidence[column] for column in row) for row in order])
    return chosen
