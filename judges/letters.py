"""A text in the letters that a reader sees in it, for judges that know plain ones alone."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from guardrail.core.text.words import FLAG

__all__ = ["plain_letters"]

FOREIGN = re.compile(r"[^\x00-\xff]")
NUMBERED = re.compile(r"\s*(\d\ufe0f?\u20e3|[^\x00-\xff])\s")
"""What opens a text as the number of an item may: a key, a figure in a circle."""

SHOWN = re.compile(r"LETTER (\w)$")
"""How the names of symbols end that show a letter: *NEGATIVE SQUARED LATIN CAPITAL LETTER A*."""

RAISED = ("<super>", "<sub>")
"""Forms that tell something else than the plain sign: *m²*, *H₂O*."""


def plain_letters(text: str) -> str:
    """Write circled, fullwidth and bold letters and figures plainly; offsets stay.

    Flags and the number of an item, as pictures show them, become spaces.
    """
    text = FLAG.sub("  ", text)
    item = NUMBERED.match(text)
    if item is not None and _is_whole_number(item[1][0]):
        text = " " * item.end() + text[item.end() :]
    return FOREIGN.sub(lambda match: _plain(match.group()), text)


def _is_whole_number(sign: str) -> bool:
    return not sign.isalpha() and unicodedata.numeric(sign, 0.5).is_integer()


@lru_cache(maxsize=8_192)
def _plain(sign: str) -> str:
    if unicodedata.decomposition(sign).startswith(RAISED):
        return sign
    plain = unicodedata.normalize("NFKC", sign)
    kind = unicodedata.category(sign)
    if plain == sign and kind == "No":
        plain = str(unicodedata.digit(sign, ""))
    elif plain == sign and kind == "So" and (letter := SHOWN.search(unicodedata.name(sign))):
        plain = letter[1]
    return plain if len(plain) == 1 and plain.isalnum() else sign
