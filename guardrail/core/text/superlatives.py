"""Superlatives: which end of which measure a word tells, such as *cheapest* and *most recent*."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.words import Token, content_stems

__all__ = ["Superlative", "measures", "superlative_at"]

OPPOSITES = {"greatest": "least", "least": "greatest"}


class Superlative(NamedTuple):
    """A superlative.

    Attributes:
        end: ``greatest`` or ``least``.
        stems: Stems of the words that name what it measures; empty where it does not say.
        measures: What the values of that measure, in its place.
    """

    end: str
    stems: frozenset[str] = frozenset()
    measures: tuple[str, ...] = ()

    @property
    def says_what(self) -> bool:
        """Whether the word itself says what is measured: *cheapest*, not *highest*."""
        return bool(self.stems or self.measures)


def superlative_at(tokens: Sequence[Token], place: int) -> Superlative | None:
    """The superlative at a word of a text, by its number.

    None of any other word, of *at least* and *most of*, and of a second place.
    """
    words = lexicon("aggregates")
    word = tokens[place].folded
    before = tokens[place - 1].folded if place else ""
    behind = tokens[place + 1].folded if place + 1 < len(tokens) else ""
    if before in lexicon("numbers")["ordinals"] or before in lexicon_set("aggregates", "scopes"):
        return None
    if (row := words["superlatives"].get(word)) is not None:
        return Superlative(row["end"], content_stems(row["of"]), tuple(row["measures"]))
    end = next((name for name in OPPOSITES if word in words[name]), None)
    if end is None or behind == "of":
        return None
    row = words["degrees"].get(behind)
    if row is None:
        return Superlative(end)
    end = OPPOSITES[end] if row.get("falls") else end
    return Superlative(end, content_stems(row["of"]), tuple(row["measures"]))


@cache
def measures() -> frozenset[frozenset[str]]:
    """Stems of words that name the same measure, a set each: *price* and *cost*."""
    words = lexicon("aggregates")
    rows = (*words["superlatives"].values(), *words["degrees"].values())
    return frozenset(content_stems(row["of"]) for row in rows)
