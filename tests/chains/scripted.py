"""A deterministic judge: it compares words, and takes other numbers for contradictions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guardrail.core.types import Grounding, StatementScore, WordScore
from judges.base import GroundingItem
from tests.guardrail.scripted import Ready

EMPTY = frozenset({
    "about", "also", "does", "from", "have", "here", "that", "their", "there", "they", "this",
    "were", "what", "when", "which", "with", "your", "the", "her", "his", "she", "its", "it",
    "he", "how", "who", "you", "in", "a", "an", "on", "at",
})  # fmt: skip
WORD = re.compile(r"\w+")


class ScriptedJudge(Ready):
    """Supports a sentence if the statements contain its content words.

    A missing word with a digit contradicts it; a sentence without content words has no claim.
    """

    name = "scripted"

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        return [self._one(item) for item in items]

    def _one(self, item: GroundingItem) -> Grounding:
        words = [
            word
            for word in WORD.finditer(item.sentence)
            if (len(word[0]) > 3 or any(map(str.isdigit, word[0])) or word[0][0].isupper())
            and word[0].casefold() not in EMPTY
        ]
        held = [set(map(str.casefold, WORD.findall(statement))) for statement in item.statements]
        telling = [
            word for word in words if not held or not all(_in(word[0], entry) for entry in held)
        ]
        missing = [word for word in words if not any(_in(word[0], entry) for entry in held)]
        against = any(any(map(str.isdigit, word[0])) for word in missing)
        chosen = "no_claim" if not words else "supported"
        if missing:
            chosen = "contradicted" if against else "unsupported"
        probabilities = {
            name: 0.97 if name == chosen else 0.01
            for name in ("supported", "unsupported", "contradicted", "no_claim")
        }
        return Grounding(
            **probabilities,
            words=tuple(
                WordScore(
                    start=word.start(),
                    end=word.end(),
                    missing=0.9 if word in missing else 0.1,
                    contradicted=0.9 if against and word in missing else 0.1,
                )
                for word in words
            ),
            statements=tuple(
                StatementScore(carries=_share(telling, entry), conflicts=0.6 if against else 0.0)
                for entry in held
            ),
        )


def _share(words: Sequence[re.Match[str]], held: set[str]) -> float:
    if not words:
        return 0.9
    return 0.98 * sum(_in(word[0], held) for word in words) / len(words)


def _in(word: str, held: set[str]) -> bool:
    """True if the words contain this one with any ending; numbers must be equal."""
    word = word.casefold()
    if word in held or any(map(str.isdigit, word)):
        return word in held
    return len(word) > 3 and any(len(item) > 3 and item[:4] == word[:4] for item in held)
