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

STATED = 2.0
"""Added to the similarity of a piece that states the sentence; cosines differ by at most 2."""
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
        [next((p for p in pieces if word_for_word and states(p, one)), None) for one, pieces in own]
        for own in ([*zip(*row, strict=True)] for row in rows)
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
    wanted = " ".join(sentence.split())
    whole = " ".join(evidence.split())
    if not wanted or wanted not in whole:
        return False
    return wanted == whole or wanted in _sentences(evidence)


@lru_cache(maxsize=1024)
def _sentences(text: str) -> frozenset[str]:
    return frozenset(" ".join(stretch.text.split()) for stretch in split_sentences(text))


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

    A piece that states the sentence word for word comes first. Where there are no more pieces
    than that, all are taken and nothing is embedded.
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
        for i, sentence in enumerate(sentences):
            similarity[i] += [STATED * states(piece, sentence) for piece in evidence]
        order = (-similarity).argsort(axis=1, kind="stable")[:, :limit]
        chosen.append([tuple(evidence[column] for column in row) for row in order])
    return chosen
