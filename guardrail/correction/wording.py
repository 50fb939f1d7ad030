"""What an exchange asks of the words round it: *a* or *an*, one or several, capitals."""

from __future__ import annotations

import re
from functools import cache

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.words import fold

__all__ = ["PART_OF_NOUN", "counted_as", "with_article"]

ARTICLE = re.compile(r"\b(?P<article>an?)\s$", re.IGNORECASE)
"""An indefinite article right before a place."""

PART_OF_NOUN = frozenset({"amod", "compound", "nmod"})
"""How a word hangs on a noun behind it of which it is a part: *brown sauce*, *heated seats*."""

ONE_OF_EIGHT = re.compile(r"8|1[18](?!\d)(?!,\d{3},)")
"""Figures that are spoken with a vowel at their beginning: eight…, eleven, eighteen."""


def with_article(text: str, start: int, new: str) -> tuple[int, str]:
    """Where an exchange begins and what it writes, with the article before it made to fit.

    Args:
        text: The sentence.
        start: Offset of the words that are exchanged.
        new: What is written in their place.
    """
    before = ARTICLE.search(text[:start])
    if before is None:
        return start, new
    article = before["article"]
    fitting = ("An" if article[0].isupper() else "an") if _opens_with_vowel(new) else article[0]
    if fitting == article:
        return start, new
    return before.start("article"), f"{fitting}{text[before.end('article') : start]}{new}"


def _opens_with_vowel(words: str) -> bool:
    """Whether words are spoken with a vowel at their beginning."""
    first = words.lstrip("\"'(*_")
    if first[:1].isdigit():
        return ONE_OF_EIGHT.match(first) is not None
    word = fold(re.split(r"[\s-]", first)[0])
    sounds = lexicon("grammar")
    if word.startswith(tuple(sounds["silent"])):
        return True
    return word[:1] in "aeiou" and not word.startswith(tuple(sounds["consonant"]))


def counted_as(behind: str, *, before: bool, after: bool) -> str | None:
    """What stands behind a number, for one of it or for several.

    Args:
        behind: The unit as it is written behind the number, with the gap before it.
        before: Whether there was one.
        after: Whether there is one now.

    Returns:
        The same where the number of it does not change, or where it does not show: signs, units
        joined by a hyphen. None for a word whose other form is not known.
    """
    word = behind.strip(" (")
    if before == after or not word.isalpha() or behind.startswith("-"):
        return behind
    other = _other_number().get(word.lower())
    if other is None:
        return behind if word.lower() in _invariable() else None
    return behind.replace(word, other)


@cache
def _pairs() -> tuple[tuple[str, str], ...]:
    """The names of units and currencies, of one and of several."""
    lists = [item["words"] for units in lexicon("units")["measures"].values() for item in units]
    lists += [item["words"] for item in lexicon("currencies")["currencies"]]
    lists += [names for item in lexicon("currencies")["currencies"] for names in item["hundredths"]]
    return tuple(
        (one, several)
        for names in lists
        for one, several in zip(names[::2], names[1::2], strict=False)
        if one != several and one[:1] == several[:1]
    )


@cache
def _other_number() -> dict[str, str]:
    return dict(_pairs()) | {several: one for one, several in _pairs()}


@cache
def _invariable() -> frozenset[str]:
    """Symbols of units: *km*, *kg*, *Wh* are the same of one and of several."""
    units = [item for measure in lexicon("units")["measures"].values() for item in measure]
    symbols = {symbol.lower() for item in units for symbol in item["symbols"]}
    return frozenset(symbols) | lexicon_set("grammar", "invariable")
