"""The sentences of long evidence that bear on a claim, so that a judge reads them together.

A judge with a short window sees long evidence piece by piece; if a claim's parts are stated far
from each other, no piece holds them all. Here sentences are chosen until a window is full: each
time the one that has most of the claim's words that the chosen ones lack, rare words first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from judges.sentence_ends import sentence_ends

__all__ = ["choose", "split_sentences"]

SHARE_LEFT = 0.4
"""What a word of the claim still counts for, each time a chosen sentence has it."""

_WORD = re.compile(r"\w+")


def choose(
    sentences: Sequence[str], claim: str, lengths: Sequence[int], room: int
) -> tuple[int, ...]:
    """Choose sentences that bear on a claim.

    Args:
        sentences: All sentences of the evidence.
        claim: What the evidence is to be judged by.
        lengths: Tokens of each sentence.
        room: Tokens that may be chosen.

    Returns:
        Places of the chosen sentences, in the order of the text; at least one, which may be
        longer than the room.
    """
    words = [_words(sentence) for sentence in sentences]
    counts = Counter(word for found in words for word in found)
    weights = {
        word: math.log(1 + len(sentences) / counts[word]) for word in _words(claim) & counts.keys()
    }
    chosen: list[int] = []
    left = set(range(len(sentences)))
    while left:
        best = max(left, key=lambda i: (math.fsum(weights.get(w, 0.0) for w in words[i]), -i))
        chosen.append(best)
        room -= lengths[best]
        left = {i for i in left if i != best and lengths[i] <= room}
        for word in words[best] & weights.keys():
            weights[word] *= SHARE_LEFT
    return tuple(sorted(chosen))


def split_sentences(text: str) -> list[str]:
    """Split a text at line breaks and after full stops, abbreviations excepted."""
    found = []
    start = 0
    for match in sentence_ends(text, lines=True):
        found.append(text[start : match.start()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
