"""Characters that queries and servers do not take as they are: controls, lone surrogates."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["CONTROLS", "SURROGATES", "holds_surrogates", "readable", "writable"]

CONTROLS: Final = r"\x00-\x1f\x7f"
"""Control characters of ASCII, as they stand in a character class of a regular expression."""

SURROGATES: Final = r"\ud800-\udfff"
"""Surrogates, as they stand in a character class; what stands alone is half a character."""

_SURROGATE: Final = re.compile(f"[{SURROGATES}]")
_UNWRITABLE: Final = re.compile(f"[{CONTROLS}{SURROGATES}]")


def readable(text: str) -> str:
    """Write U+FFFD for each lone surrogate, which no server can receive; lengths stay."""
    return _SURROGATE.sub("\ufffd", text)


def holds_surrogates(text: str) -> bool:
    """Whether a text has a lone surrogate in it, so that no graph can hold it."""
    return _SURROGATE.search(text) is not None


def writable(text: str) -> bool:
    """Whether a text has neither surrogates nor controls in it, as every name of a graph."""
    return _UNWRITABLE.search(text) is None
