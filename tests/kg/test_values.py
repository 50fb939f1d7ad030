"""Literals as text for people and judges."""

from __future__ import annotations

import pytest

from kg.terms import render_literal

XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize(
    ("value", "datatype", "text"),
    [
        ("1593-07-08", XSD + "date", "1593-07-08"),
        ("1593-07-08Z", XSD + "date", "1593-07-08"),
        ("1593-07-08T00:00:00Z", XSD + "dateTime", "1593-07-08"),
        ("+1593-07-08T00:00:00Z", XSD + "dateTime", "1593-07-08"),
        ("-0099-07-12T00:00:00Z", XSD + "dateTime", "-0099-07-12"),
        ("2001-02-03T04:05:06Z", XSD + "dateTime", "2001-02-03T04:05:06Z"),
        ("+42", XSD + "decimal", "42"),
        ("Point(12.5 41.9)", "http://www.opengis.net/ont/geosparql#wktLiteral", "41.9, 12.5"),
        ("  two\n lines ", None, "two lines"),
        ("+42", XSD + "string", "+42"),
        ("not a date", XSD + "date", "not a date"),
    ],
)
def test_render_literal(value: str, datatype: str | None, text: str) -> None:
    assert render_literal(value, datatype) == text
