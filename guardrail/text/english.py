"""Whether a text reads like English, which is all that parser, linker and judges read."""

from __future__ import annotations

import re

__all__ = ["in_english"]

ENGLISH_SHARE = 0.16
"""Of the words of running English that are written small, at least this share are common ones."""

# Without those that other languages write as well: in, no, do.
ENGLISH_WORDS = frozenset(
    (
        "the", "of", "and", "to", "a", "is", "that", "for", "it", "was", "as", "with", "be",
        "by", "on", "not", "he", "his", "but", "at", "are", "this", "have", "from", "had",
        "an", "they", "which", "you", "your", "i", "we", "she", "her", "its", "has", "were",
        "my", "us", "our", "their", "him", "them", "if", "who", "what", "when", "where",
        "how", "can", "will", "would", "does", "did", "been", "there", "these", "those",
        "more", "about", "than", "into", "after", "before", "also", "know", "let", "need", "you're",
    )
)  # fmt: skip
MIN_WORDS = 8
"""A shorter text may well hold none of them."""

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


def in_english(text: str) -> bool:
    """Tell running English by its commonest words; a text of a few words passes for English.

    Names and numbers are of no language, and so is a list of them.
    """
    words = [word for word in _WORD.findall(text) if word[0].islower()]
    if len(words) < MIN_WORDS:
        return True
    return sum(word in ENGLISH_WORDS for word in words) >= ENGLISH_SHARE * len(words)
