"""Plain letters for what a reader sees in circled, fullwidth or bold signs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.words import FLAG, is_writing


def plain_letters(text: str) -> str:
    """Write circled, fullwidth and bold letters and figures plainly; offsets stay.

    Flags and the number of an item, if it is a picture, become spaces.
    """
    text = FLAG.sub("  ", text)
    item = re.match(r"\s*(\d\ufe0f?\u20e3|[^\x00-\xff])\s", text)  # a key, a figure in a circle
    if item and not item[1][0].isalpha() and unicodedata.numeric(item[1][0], 0.5).is_integer():
        text = " " * item.end() + text[item.end() :]
    return re.sub(r"[^\x00-\xff]", lambda match: _plain(match.group()), text)


def readable(text: str) -> str:
    """Write what a reader sees as letters in plain ones; offsets stay.

    Lone surrogates, which no tokenizer can read, become U+FFFD.
    """
    if text.isascii():
        return text
    return plain_letters(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def without_unknown_symbols(text: str, knows: Callable[[str], bool]) -> str:
    """A readable text whose unknown symbols are spaces; offsets stay.

    A word that one touches would be unknown as well, and an unknown sign before a sentence changes
    what a model makes of it.

    Args:
        text: The text.
        knows: Whether the tokenizer knows a sign.
    """

    def sign(one: str) -> str:
        kind = unicodedata.category(one)
        if kind == "Me":
            # A circle round the letter before it; tokenizers skip the space of no width.
            return "\u200b"
        # What is not assigned is a new emoji, or cannot be read.
        symbol = kind in ("Cn", "Sc", "Sk", "Sm", "So")
        if one in lexicon_set("function_words", "no"):  # *❌ Pets allowed* does not allow them
            return one
        return " " if symbol and not is_writing(one) and not knows(one) else one

    read = re.sub(r"[^\x00-\xff\w\s]", lambda match: sign(match.group()), text)
    return text if read.isspace() else read


@lru_cache(maxsize=8_192)
def _plain(sign: str) -> str:
    if unicodedata.decomposition(sign).startswith(("<super>", "<sub>")):
        return sign  # another meaning than the plain sign: *m²*, *H₂O*
    plain = unicodedata.normalize("NFKC", sign)
    kind = unicodedata.category(sign)
    if plain == sign and kind == "No":
        plain = str(unicodedata.digit(sign, ""))
    elif plain == sign and kind == "So":
        # *NEGATIVE SQUARED LATIN CAPITAL LETTER A*
        letter = re.search(r"LETTER (\w)$", unicodedata.name(sign))
        plain = letter[1] if letter else sign
    return plain if len(plain) == 1 and plain.isalnum() else sign
