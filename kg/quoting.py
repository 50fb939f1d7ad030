"""Writes names and ids into SPARQL so that they can neither break a query nor change it.

Control characters and lone surrogates are handled here too: queries and servers reject them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from guardrail.core.errors import InputError

__all__ = [
    "check_iri", "holds_surrogates", "quote_iri", "quote_literal", "readable", "values", "writable",
]  # fmt: skip

CONTROLS: Final = r"\x00-\x1f\x7f"
"""ASCII control characters, for a character class of a regular expression."""
SURROGATES: Final = r"\ud800-\udfff"
"""Surrogates, for a character class."""
_SURROGATE: Final = re.compile(f"[{SURROGATES}]")
_UNWRITABLE: Final = re.compile(f"[{CONTROLS}{SURROGATES}]")
# RFC 3987 as SPARQL's IRIREF grammar states it: none of these characters, no white space.
_IRI = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*:[^{CONTROLS}{SURROGATES}\x80-\x9f <>\"{{}}|^`\\]*")

_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\b": "\\b",
    "\f": "\\f",
}
# A server may resolve \uXXXX before it reads the string, without counting the backslashes in
# front; so no u may follow an escaped backslash as it is.
_ESCAPED = re.compile(rf'[\\"{CONTROLS}]|(?<=\\)[uU]')
_LANGUAGE = re.compile(r"[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*")


def quote_literal(text: str, language: str = "") -> str:
    """Write a string literal, e.g. ``"Ada Lovelace"@en``.

    Args:
        text: Any text; lone surrogates, which no server can receive, become U+FFFD.
        language: Language tag; empty for none.
    """
    escaped = _ESCAPED.sub(
        lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}",
        readable(text),
    )
    if language and not _LANGUAGE.fullmatch(language):
        raise ValueError(f"{language!r} is not a language tag")
    return f'"{escaped}"' + (f"@{language}" if language else "")


def quote_iri(iri: str) -> str:
    """Write an IRI, e.g. ``<http://www.wikidata.org/entity/Q7259>``.

    Raises:
        InputError: If it is not a valid IRI.
    """
    return f"<{check_iri(iri)}>"


def values(variable: str, iris: Iterable[str]) -> str:
    """Write ``VALUES ?variable { <…> <…> }``."""
    return f"VALUES ?{variable} {{ {' '.join(map(quote_iri, iris))} }}"


def check_iri(iri: str) -> str:
    """Return the IRI unchanged if it can stand between ``<`` and ``>`` in SPARQL.

    Raises:
        InputError: If it has no scheme or holds a character that IRIs forbid.
    """
    if not _IRI.fullmatch(iri):
        raise InputError(
            f"{iri[:80]!r} is not the id of an entity: "
            "give a short id (Q7259) or a full IRI (http://…)"
        )
    return iri


def readable(text: str) -> str:
    """Replace lone surrogates by U+FFFD, because no server can receive them; lengths stay."""
    return _SURROGATE.sub("\ufffd", text)


def holds_surrogates(text: str) -> bool:
    """True if a text has a lone surrogate, so that no graph can contain it."""
    return _SURROGATE.search(text) is not None


def writable(text: str) -> bool:
    """True if a text has neither surrogates nor control characters, like every name in a graph."""
    return _UNWRITABLE.search(text) is None
