"""RDF terms: names and ids written into SPARQL, blank nodes, and literals as text for readers.

What is quoted here can neither break a query nor change it. Control characters and lone
surrogates are handled too, because queries and servers reject them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from guardrail.core.errors import InputError

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
WIKIBASE: Final = "http://wikiba.se/ontology#"
_CONTROLS: Final = r"\x00-\x1f\x7f"
_SURROGATES: Final = r"\ud800-\udfff"


def quote_literal(text: str, language: str = "") -> str:
    """Write a string literal, e.g. ``"Ada Lovelace"@en``; lone surrogates become U+FFFD."""
    escapes = dict(zip('\\"\n\r\t\b\f', '\\"nrtbf', strict=True))
    # A server may resolve \uXXXX before it reads the string, without counting the backslashes in
    # front; so no u may follow an escaped backslash unescaped.
    escaped = re.sub(
        rf'[\\"{_CONTROLS}]|(?<=\\)[uU]',
        lambda found: f"\\{escapes.get(found[0]) or f'u{ord(found[0]):04X}'}",
        readable(text),
    )
    if language and not re.fullmatch(r"[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*", language):
        raise ValueError(f"{language!r} is not a language tag")
    return f'"{escaped}"' + (f"@{language}" if language else "")


def quote_iri(iri: str) -> str:
    """Write an IRI, e.g. ``<http://www.wikidata.org/entity/Q7259>``; raises InputError."""
    return f"<{check_iri(iri)}>"


def values(variable: str, iris: Iterable[str]) -> str:
    """Write ``VALUES ?variable { <…> <…> }``."""
    return f"VALUES ?{variable} {{ {' '.join(map(quote_iri, iris))} }}"


def check_iri(iri: str) -> str:
    """Return the IRI if it can stand between ``<`` and ``>`` in SPARQL; else InputError."""
    # RFC 3987 as SPARQL's IRIREF grammar states it: none of these characters, no white space.
    forbidden = rf"{_CONTROLS}{_SURROGATES}\x80-\x9f <>\"{{}}|^`\\"
    if not re.fullmatch(rf"[A-Za-z][A-Za-z0-9+.\-]*:[^{forbidden}]*", iri):
        raise InputError(
            f"{iri[:80]!r} is not the id of an entity: "
            "give a short id (Q7259) or a full IRI (http://…)"
        )
    return iri


def readable(text: str) -> str:
    """Replace lone surrogates by U+FFFD, because no server can receive them; lengths stay."""
    return re.sub(f"[{_SURROGATES}]", "\ufffd", text)


def writable(text: str) -> bool:
    """True if a text has neither surrogates nor control characters, like every name in a graph."""
    return re.search(f"[{_CONTROLS}{_SURROGATES}]", text) is None


def is_blank(iri: str) -> bool:
    """True if an IRI represents a blank node: one of an earlier load, or of an unknown value.

    The second form, used by Wikidata, is that of RDF 1.1 Concepts, section 3.5.
    """
    return iri.startswith("urn:blank:") or "/.well-known/genid/" in iri


def render_literal(value: str, datatype: str | None = None) -> str:
    """Write a literal as text for people and judges.

    Dates stay in ISO form (``1593-07-08``), without the midnight and the time zone that
    Wikidata adds; numbers lose a leading plus; points become "latitude, longitude".
    """
    text = " ".join(value.split())
    if datatype in (XSD + "dateTime", XSD + "date"):
        midnight = "" if datatype == XSD + "date" else r"T00:00:00(?:\.0+)?"
        day = rf"([+-]?\d{{4,}}-\d\d-\d\d){midnight}(?:Z|[+-]\d\d:\d\d)?"
        date = re.fullmatch(day, text)
        return date[1].removeprefix("+") if date else text
    numbers = rf"{XSD}\w*(?i:int|integer|long|short|byte|decimal|double|float)"
    if text.startswith("+") and re.fullmatch(numbers, datatype or ""):
        return text[1:]
    if datatype == "http://www.opengis.net/ont/geosparql#wktLiteral" and (
        point := re.fullmatch(r"(?:<[^>]*>\s*)?Point\(\s*(\S+)\s+(\S+?)\s*\)", text, re.I)
    ):
        return f"{point[2]}, {point[1]}"
    return text
