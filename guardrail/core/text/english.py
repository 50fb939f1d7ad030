"""Whether a text reads like English, which is all that parser, linker and judges read."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from guardrail.core.text.lexicon import lexicon, lexicon_set

__all__ = ["in_english"]

ENGLISH_SHARE = 0.16
"""Of the words of running English that are written small, at least this share are common ones."""

LONG_WORDS = 40
"""Words written small from which on running English holds its common ones, whatever it is about;
a shorter text of plain English may hold hardly any: *yes, ships free within two working days*."""
OTHER_WORDS = 2
"""Minimum number of words of another language; one may be part of a name."""
MIN_LETTERS = 20
"""Fewer letters of another script are a name or a sign."""

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_LATIN_END = 0x24F
"""The last letter of the Latin script's blocks (Latin Extended-B)."""


@cache
def _other_languages() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(words) for words in lexicon("languages")["others"].values())


def in_english(text: str) -> bool:
    """True if nothing suggests that a text is in another language.

    Such signs are another script, common words of another language that outnumber the English ones,
    and, in a long text, missing common English words. Names and numbers belong to no language.
    """
    if not text.isascii():
        letters = [*filter(str.isalpha, text)]
        foreign = len([sign for sign in letters if ord(sign) > _LATIN_END])
        if foreign >= MIN_LETTERS and 2 * foreign > len(letters):
            return False
    found = _WORD.findall(text)
    words = [word for word in found if word[0].islower()]
    # A small word before a capital may be part of a name or a title: von Neumann, un Carnaval.
    alone = [word for word, after in pairwise([*found, ""]) if not after[:1].isupper()]
    common = lexicon_set("languages", "english")
    other = max([sum(map(language.__contains__, alone)) for language in _other_languages()])
    if other >= OTHER_WORDS and other > sum(map(common.__contains__, map(str.lower, found))):
        return False
    english = sum(map(common.__contains__, words))
    return len(words) < LONG_WORDS or english >= ENGLISH_SHARE * len(words)
