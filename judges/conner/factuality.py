"""Factuality of a text against evidence, and the choice of evidence (CONNER eq. 1)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean
from typing import TYPE_CHECKING

from guardrail.core.text.dates import calendar_words
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.sentences import split_sentences
from guardrail.core.types import NLIScores
from judges.base import NLIJudge, Pair
from judges.conner.report import Aggregation, SentenceFactuality

if TYPE_CHECKING:
    from judges.encoder import OnnxEncoder

Texts = Sequence[tuple[Sequence[str], Sequence[str]]]
"""For each text its sentences and its evidence."""
Stated = Sequence[Sequence[str | None]]
"""For each sentence of each text the piece of evidence that states it word for word, or None."""


def sentence_factuality(
    judge: NLIJudge,
    rows: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]],
    stated: Stated,
) -> list[tuple[SentenceFactuality, ...]]:
    """Score every sentence of n texts against its own evidence: f(s, E) of eq. 1.

    The maximum over evidence is along entailment; the whole vector of that piece is kept, so that
    its three components sum to one. A stated sentence is entailed with certainty: an NLI model
    sees few such pairs in training and may deny that a sentence follows from itself.

    Args:
        judge: Called once, with all pairs of all rows.
        rows: For each text its m sentences and, for each sentence, the evidence to read.
        stated: What is stated word for word.

    Returns:
        For each text its sentences that had evidence.
    """
    found = [
        list(zip(sentences, evidences, own, strict=True))
        for (sentences, evidences), own in zip(rows, stated, strict=True)
    ]
    pairs = [
        Pair(premise=evidence, hypothesis=sentence)
        for text in found
        for sentence, pieces, piece in text
        if piece is None
        for evidence in pieces
    ]
    scores = iter(judge.judge(pairs) if pairs else [])
    result = []
    for text in found:
        judged = []
        for sentence, pieces, piece in text:
            certain = NLIScores(entailment=1.0, neutral=0.0, contradiction=0.0)
            read = (
                [(next(scores), item) for item in pieces] if piece is None else [(certain, piece)]
            )
            if read:
                best, chosen = max(read, key=lambda pair: pair[0].entailment)
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
    encoder: OnnxEncoder | None, rows: Texts, stated: Stated, limit: int
) -> list[list[tuple[str, ...]]]:
    """For each sentence of n texts the ``limit`` most similar pieces of the text's evidence.

    For a stated sentence this is the piece that states it. Evidence within the limit is taken
    whole.

    Args:
        encoder: Called once, with all texts; without one all evidence is taken.
        rows: The texts.
        stated: What is stated word for word.
        limit: Pieces to take, at least one.
    """
    if encoder is None:
        return [[tuple(pieces)] * len(sentences) for sentences, pieces in rows]
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


# --- Word for word ------------------------------------------------------------------------------


def stated(sentences: Sequence[str], evidence: Sequence[str]) -> list[str | None]:
    """For each of m sentences the first piece of evidence that states it, or None.

    A piece states its own sentences, whatever the spacing, but not a part of one, which "it is
    false that …" may precede. A sentence that refers back is stated only if the evidence also
    states the sentence before it, directly before it: *He was born in 1950* may be about someone
    else. A passage may be cut into consecutive pieces.
    """
    pieces = [_parts(piece) for piece in evidence]
    found: list[str | None] = []
    text, places = "", frozenset[int]()
    for sentence in map(_spaced, sentences):
        where = frozenset(
            place
            for place, parts in enumerate(pieces)
            if sentence and (sentence in parts or sentence == _spaced(evidence[place]))
        )
        if refers_back(sentence):
            where &= {
                place for place in places if (text, sentence) in itertools.pairwise(pieces[place])
            } | {
                place + 1
                for place in places
                if pieces[place][-1:] == (text,)
                and pieces[place + 1 : place + 2]
                and pieces[place + 1][:1] == (sentence,)
            }
        found.append(evidence[min(where)] if where else None)
        text, places = sentence, where
    return found


def refers_back(sentence: str) -> bool:
    """True if a sentence seems to be about something that only the text before it names.

    It opens with a demonstrative, has a personal pronoun before any name, or has no name and
    opens with "the" and a common noun. A name is a capitalised word that is not the first.
    """
    pointers = lexicon_set("function_words", "pointers")
    pronouns = lexicon_set("function_words", "third_persons") - pointers
    nameless = calendar_words() | lexicon_set("function_words", "speakers")
    connectives = lexicon_set("function_words", "connectives")
    words = re.findall(r"[^\W_]+", sentence)
    folded = [word.casefold() for word in words]
    names = [
        place
        for place, word in enumerate(words)
        if place and word[0].isupper() and folded[place] not in nameless
    ]
    if not pronouns.isdisjoint(folded[: names[0]] if names else folded):
        return True
    opening = next((place for place, item in enumerate(folded) if item not in connectives), None)
    if opening is None:
        return False
    article = folded[opening] == "the"
    if article and not names:
        return True
    return any(item in pointers for item in folded[opening : opening + 1 + article])


def _spaced(text: str) -> str:
    return " ".join(text.split())


@lru_cache(maxsize=256)
def _parts(text: str) -> tuple[str, ...]:
    """The sentences of a text in order."""
    return tuple(_spaced(part.text) for part in split_sentences(text))
