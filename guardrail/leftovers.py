"""What no accepted triple accounts for in a sentence, and when that marks it ``[NA]``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from guardrail.matching import Match
from guardrail.naming import SentenceTokens, names_in
from guardrail.phrases import Phrase, PhraseKind
from guardrail.support import Thresholds, touches
from guardrail.text.values import tokenise
from guardrail.types import Category, Judgement
from guardrail.vocabulary import STOP_WORDS, cues, inverse_cues

__all__ = ["Leftover", "leftovers", "unsupported", "with_refused"]

LONG_WORD = 6
"""Letters a word must have for a slip of the pen to be told from another word."""


class Leftover(NamedTuple):
    """A factual phrase, or the part of it, that no accepted triple accounts for.

    Attributes:
        text: The phrase.
        start: Offset in the answer.
        end: Offset past its end.
        kind: What it tells.
        certain: True for a number that no evidence has, and for a date of which an accepted triple
            holds less, say the year alone: what is lacking is known then, and no judge needs to
            doubt it.
        bare: True where no accepted triple speaks of anything in its predicate.
        kind_noun: True for a noun that tells what kind of thing is spoken of, and that no evidence
            has.
        graded: True where it tells the degree of something of which no evidence speaks.
    """

    text: str
    start: int
    end: int
    kind: PhraseKind
    certain: bool = False
    bare: bool = False
    kind_noun: bool = False
    graded: bool = False


def leftovers(
    phrases: Sequence[Phrase],
    kept: Sequence[Match],
    sentence: SentenceTokens,
    topic: str | None,
) -> list[Leftover]:
    """The factual phrases that the accepted triples do not account for, in order.

    Args:
        phrases: The sentence's factual phrases.
        kept: The accepted triples.
        sentence: The prepared sentence.
        topic: Label of the entity that the sentence is about.
    """
    covered = [span for match in kept for span in match.spans]
    if topic is not None:
        covered += names_in(sentence, topic)
    finer = {(match.finer.start, match.finer.end) for match in kept if match.finer}
    finer -= {span for match in kept if not match.finer for span in match.value_spans}
    covered = [span for span in covered if span not in finer]
    words = {token.stem for token in tokenise(topic or "")}
    for match in kept:
        words |= cues(match.triple.property) | inverse_cues(match.triple.property)
        held = tokenise(f"{match.triple.subject} {match.triple.value}")
        words |= {token.stem for token in held} | {token.folded for token in held}
    found = []
    for phrase in phrases:
        parts = [
            token
            for token in tokenise(phrase.text, phrase.start)
            if token.folded not in STOP_WORDS
            and token.stem not in words
            and not touches((token.start, token.end), covered)
            and not _misspelt(token.folded, words)
        ]
        if not parts or (phrase.kind is PhraseKind.NAME and all(len(p.text) < 2 for p in parts)):
            continue
        if phrase.kind is PhraseKind.DATE and touches((phrase.start, phrase.end), covered):
            continue
        start, end = parts[0].start, parts[-1].end
        if phrase.kind in (PhraseKind.DATE, PhraseKind.NUMBER):
            start, end = phrase.start, phrase.end
        text = phrase.text[start - phrase.start : end - phrase.start]
        found.append(Leftover(text, start, end, phrase.kind, (start, end) in finer))
    return found


def with_refused(
    left: Sequence[Leftover], refused: Sequence[Match], kept: Sequence[Match]
) -> list[Leftover]:
    """Tell which left-over phrases are values that the sentence tells as another property's.

    Args:
        left: The phrases that no accepted triple accounts for.
        refused: The triples whose values are told so.
        kept: The accepted triples.
    """
    taken = [span for match in kept for span in match.value_spans]
    wrong = [span for match in refused for span in match.value_spans if not touches(span, taken)]
    return [
        one._replace(certain=one.certain or touches((one.start, one.end), wrong)) for one in left
    ]


def _misspelt(word: str, known: Iterable[str]) -> bool:
    """Whether a long word is one slip of the pen away from a known one: ``Insitute``."""
    if len(word) < LONG_WORD or word[0].isdigit():
        return False
    return any(
        abs(len(word) - len(other)) <= 1 and word[0] == other[0] and _one_slip(word, other)
        for other in known
        if len(other) >= LONG_WORD
    )


def _one_slip(one: str, two: str) -> bool:
    """Whether two different words differ by one letter more, less, changed or swapped."""
    short, long = sorted((one, two), key=len)
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), -1)
    if start < 0:
        return True
    if len(short) != len(long):
        return short[start:] == long[start + 1 :]
    if short[start + 1 :] == long[start + 1 :]:
        return True
    return (
        short[start : start + 2] == long[start : start + 2][::-1]
        and short[start + 2 :] == long[start + 2 :]
    )


def unsupported(
    left: Sequence[Leftover],
    judgement: Judgement | None,
    supported: bool,
    limits: Thresholds,
) -> bool:
    """Whether a claim of the sentence lacks support, so that it is marked ``[NA]``.

    Args:
        left: The phrases that no accepted triple accounts for.
        judgement: The attribution judge's verdict on the accepted triples.
        supported: Some evidence was accepted.
        limits: The thresholds.
    """
    if not supported or any(phrase.certain for phrase in left):
        return True
    if judgement is None:
        return any(phrase.kind is not PhraseKind.RELATION for phrase in left)
    least = min((_least_doubt(phrase, limits) for phrase in left), default=limits.lack_alone)
    return 1.0 - judgement.scores.get(Category.SUPPORTIVE, 0.0) >= least


def _least_doubt(phrase: Leftover, limits: Thresholds) -> float:
    if phrase.kind in (PhraseKind.DATE, PhraseKind.NUMBER):
        least = limits.lack_number
    elif phrase.kind is PhraseKind.NAME:
        least = limits.lack_hard
    else:
        least = limits.lack_relation if phrase.kind is PhraseKind.RELATION else limits.lack_soft
    if phrase.bare:
        least = min(least, limits.lack_bare)
    if phrase.kind_noun:
        least = min(least, limits.lack_kind)
    return min(least, limits.lack_degree) if phrase.graded else least
