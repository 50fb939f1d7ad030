"""How the values of facts are written for people and judges."""

from __future__ import annotations

import re

__all__ = ["render_literal"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBERS = frozenset(
    _XSD + name
    for name in (
        *("integer", "decimal", "double", "float", "int", "long", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"),
    )
)
_POINT = "http://www.opengis.net/ont/geosparql#wktLiteral"
_MIDNIGHT = re.compile(r"([+-]?\d{4,}-\d\d-\d\d)T00:00:00(?:\.0+)?(?:Z|[+-]00:00)?")
_DATE_ZONE = re.compile(r"([+-]?\d{4,}-\d\d-\d\d)(?:Z|[+-]\d\d:\d\d)?")
_WKT_POINT = re.compile(r"(?:<[^>]*>\s*)?Point\(\s*(\S+)\s+(\S+?)\s*\)", re.IGNORECASE)
_SPACE = re.compile(r"\s+")


def render_literal(value: str, datatype: str | None = None) -> str:
    """Write a literal as text.

    Dates stay in ISO form (``1593-07-08``), without the midnight and the time zone that
    Wikidata adds; numbers lose a leading plus; points become "latitude, longitude".

    Args:
        value: The literal's lexical form.
        datatype: IRI of its datatype; None for a plain string.
    """
    text = _SPACE.sub(" ", value).strip()
    if datatype is None:
        return text
    if datatype == _XSD + "dateTime":
        midnight = _MIDNIGHT.fullmatch(text)
        return midnight.group(1).removeprefix("+") if midnight else text
    if datatype == _XSD + "date":
        date = _DATE_ZONE.fullmatch(text)
        return date.group(1).removeprefix("+") if date else text
    if datatype in _NUMBERS:
        return text.removeprefix("+")
    if datatype == _POINT:
        point = _WKT_POINT.fullmatch(text)
        return f"{point.group(2)}, {point.group(1)}" if point else text
    return text
