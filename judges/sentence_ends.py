"""Where sentences end, by punctuation alone; ``text.sentences`` does better with a parse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from guardrail.core.text.lexicon import lexicon

__all__ = ["sentence_ends"]

_AFTER_STOP = r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])"
_END = re.compile(_AFTER_STOP)
_END_OR_LINE = re.compile(_AFTER_STOP + r"|\n+")


def sentence_ends(text: str, *, lines: bool = False) -> Iterator[re.Match[str]]:
    """What stands between sentences: closing marks and spaces, but not after abbreviations.

    Args:
        text: The text.
        lines: Whether a line break ends a sentence, too.
    """
    for match in (_END_OR_LINE if lines else _END).finditer(text):
        if not _abbreviation().search(text[max(0, match.start() - 6) : match.start()]):
            yield match


@cache
def _abbreviation() -> re.Pattern[str]:
    words = "|".join(lexicon("abbreviations")["inner"])
    return re.compile(rf"\b(?:[A-Z]|{words})\.$")
