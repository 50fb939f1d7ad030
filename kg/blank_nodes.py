"""Blank nodes as IRIs, so that segments of a file share them.

RDF 1.1 Concepts, section 3.5, calls this skolemization. Readers of a store treat such an IRI as a
blank node.
"""

from __future__ import annotations

import re
from typing import Final, TypeGuard

from pyoxigraph import NamedNode

__all__ = ["BLANK", "is_blank", "is_named", "with_iris"]

BLANK: Final = "urn:blank:"
"""Prefix of the IRIs, before the file's identity and the blank node's label."""
_WELL_KNOWN: Final = "/.well-known/genid/"
"""Part of the IRIs of blank nodes in the standard; Wikidata uses them for unknown values."""

_SIGNS: Final = rb"[\w:\-\x80-\xff]"
# Each sign is read once: of labels that follow each other in a literal the first alone is tried.
_LABEL: Final = rb"_:(?<![\w:.\-\x80-\xff]_:)((?!-)%b++(?:\.++%b++)*+)" % (_SIGNS, _SIGNS)
_SUBJECT: Final = re.compile(rb"\n[ \t]*" + _LABEL)
# To the end of its line no quote and no ">" follows that would close a literal or an IRI round it.
_LAST: Final = re.compile(
    _LABEL + rb'(?=[ \t]*(?:(?:<[^<>"\n]*>|' + _LABEL + rb')[ \t]*)?\.[ \t]*(?:#[^">\n]*)?\r?$)',
    re.MULTILINE,
)
"""The value of a triple, or the name of its graph."""


def is_blank(iri: str) -> bool:
    """True if an IRI represents a blank node."""
    return iri.startswith(BLANK) or _WELL_KNOWN in iri


def is_named(term: object) -> TypeGuard[NamedNode]:
    """True if a term of a store is an IRI that does not represent a blank node."""
    return isinstance(term, NamedNode) and not is_blank(term.value)


def with_iris(lines: bytes, origin: str) -> bytes:
    """Replace the blank nodes in whole lines of N-Triples or N-Quads by IRIs.

    Args:
        lines: The lines.
        origin: Identifies the file, in characters of an IRI.
    """
    if b"_:" not in lines:
        return lines
    start = f"<{BLANK}{origin}:".encode()
    # The line end before each subject is much faster found than the beginning of a line.
    found = _SUBJECT.sub(rb"\n" + start + rb"\1>", b"\n" + lines)
    return _LAST.sub(start + rb"\1>", found)[1:]
