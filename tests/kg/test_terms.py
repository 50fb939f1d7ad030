"""Names and ids cannot break or change a query on a real server; literals as text."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, serialize

from guardrail.core.errors import InputError
from kg import SparqlGraph
from kg.endpoint import Endpoint
from kg.opening import EndpointSettings
from kg.terms import XSD, check_iri, quote_literal, readable, render_literal, writable

from .conftest import SparqlServer

NO_CACHE = EndpointSettings(cache=None)
LABEL = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")

# Text that leans towards what SPARQL gives a meaning to.
MARKS = (
    *('"', "'", '"""', "\\", "\\u0022", "\\U0000007D", "\\\\u", "\n", "\r", "\t", "}", "{", ">"),
    *("<", "#", ".", ";", "?e", "@en", "^^", "UNION", "DROP ALL", "\x00", "\x7f", "\u2028"),
    *("u", "U", "é", "𝒳", " "),
)
hostile = st.lists(st.sampled_from(MARKS) | st.text(max_size=5), max_size=12).map("".join)


@given(text=hostile)
@example(text="\\\x1f")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_literal_comes_back_as_it_went(sparql_server: SparqlServer, text: str) -> None:
    endpoint = Endpoint(sparql_server.query_url, NO_CACHE)
    pair = f"{quote_literal(text)} {quote_literal(text, 'en')}"
    query = f"SELECT ?x ?y WHERE {{ VALUES (?x ?y) {{ ({pair}) }} }}"
    [row] = endpoint.select(query)
    assert row["x"].value == row["y"].value == text
    assert (row["x"].language, row["y"].language) == (None, "en")


@given(names=st.lists(hostile.map(str.strip).filter(bool), min_size=1, max_size=4, unique=True))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_names_of_any_kind_are_found_and_nothing_else(
    sparql_server: SparqlServer, names: list[str]
) -> None:
    quads = [
        Quad(NamedNode(f"urn:n:{number}"), LABEL, Literal(name, language="en"))
        for number, name in enumerate([*names, "sentinel"])
    ]
    written = serialize(quads, format=RdfFormat.N_TRIPLES)
    assert written is not None
    sparql_server.put(written.decode(), "application/n-triples")
    graph = SparqlGraph(sparql_server.query_url, profile="rdfs", settings=NO_CACHE)
    found = graph.find([*names, "sentinel"])
    assert [entity.label for entity in found[-1]] == ["sentinel"]
    for name, entities in zip(names, found, strict=False):
        plain = name == " ".join(name.split()) and name.isprintable()
        assert not plain or name in [entity.label for entity in entities]
        assert all(e.label.casefold() == name.casefold() or not plain for e in entities)
    assert graph.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }").rows[0][0] is not None


@pytest.mark.parametrize(
    "iri", ["", "Q42", "http://a b", "http://x> } #", "urn:\ud800", "x:\x00", "x:\x7f"]
)
def test_malformed_iris_are_refused(iri: str) -> None:
    with pytest.raises(InputError):
        check_iri(iri)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("Ada\ud800", "Ada\ufffd"), ("Éamon de Valera", "Éamon de Valera"), ("𝔸da", "𝔸da")],
)
def test_lone_surrogates_are_replaced(text: str, shown: str) -> None:
    assert readable(text) == shown
    assert quote_literal(text) == f'"{shown}"'
    assert writable(text) is (text == shown)
    assert not writable("Ada\n")


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
