"""Sentences of long evidence that are about a claim, so that a judge reads them together.

A judge with a short window sees long evidence piece by piece; if a claim's parts are stated far
from each other, no piece holds them all. Here sentences are chosen until a window is full: each
time the one that has most of the claim's words that the chosen ones lack, rare words first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from guardrail.core.text.lexicon import lexicon

__all__ = ["choose", "sentence_ends", "split_sentences"]

SHARE_LEFT = 0.4
"""What a word of the claim still counts for, each time a chosen sentence has it."""

_WORD = re.compile(r"\w+")
_AFTER_STOP = r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])"
_END = re.compile(_AFTER_STOP)
_END_OR_LINE = re.compile(_AFTER_STOP + r"|\n+")


def choose(
    sentences: Sequence[str], claim: str, lengths: Sequence[int], room: int
) -> tuple[int, ...]:
    """Choose the sentences that are about a claim.

    Args:
        sentences: All sentences of the evidence.
        claim: The sentence to judge.
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


def sentence_ends(text: str, *, lines: bool = False) -> Iterator[re.Match[str]]:
    """The gaps between sentences, by punctuation alone; with a parse see ``core.text.sentences``.

    A gap is closing marks and spaces; after an abbreviation there is none.

    Args:
        text: The text.
        lines: Whether a line break ends a sentence as well.
    """
    for match in (_END_OR_LINE if lines else _END).finditer(text):
        if not _abbreviation().search(text[max(0, match.start() - 6) : match.start()]):
            yield match


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


@cache
def _abbreviation() -> re.Pattern[str]:
    words = "|".join(lexicon("abbreviations")["inner"])
    return re.compile(rf"\b(?:[A-Z]|{words})\.$")
