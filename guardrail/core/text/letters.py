"""What is writing in a text, also in symbols that show letters and in signs that nobody reads."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

__all__ = ["FLAG", "hides_letters", "is_writing"]

FLAG = re.compile("(?<![🇦-🇿])[🇦-🇿]{2}(?![🇦-🇿])")
"""Two letters that are shown as a flag; other runs of such letters spell words."""


@lru_cache(maxsize=8_192)
def is_writing(sign: str) -> bool:
    """Whether a sign may tell something, as a letter or a figure does; emoji do not.

    Letters in circles and squares may, Braille, private and unassigned signs.
    """
    kind = unicodedata.category(sign)
    if kind == "So":
        return re.search("LETTER |PATTERN DOTS", unicodedata.name(sign)) is not None
    if kind == "Cn":  # where pictographs are, it is a new one
        return ord(sign) >> 12 != 0x1F
    return sign.isalnum() or kind == "Co"


def hides_letters(text: str) -> bool:
    """Whether a text has writing in signs that are neither letters nor figures."""
    odd = "" if text.isascii() else FLAG.sub("", text)
    return any(is_writing(sign) and not sign.isalnum() for sign in odd)
