"""Plain letters for what a reader sees in circled, fullwidth or bold signs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

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
    """A readable text whose unknown symbols are spaces where they touch a word; offsets stay.

    Otherwise the word would be unknown as well.

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
        return " " if symbol and not is_writing(one) and not knows(one) else one

    def apart(found: re.Match[str]) -> str:
        start, end = found.span()
        touching = text[max(0, start - 1) : start].isalnum() or text[end : end + 1].isalnum()
        return "".join(map(sign, found.group())) if touching else found.group()

    return re.sub(r"[^\x00-\xff\w\s]+", apart, text)


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
