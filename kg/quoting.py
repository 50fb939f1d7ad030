"""Writes names and ids into SPARQL so that they can neither break a query nor change it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kg.characters import CONTROLS, readable
from kg.profiles import check_iri

__all__ = ["quote_iri", "quote_literal", "values"]

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
