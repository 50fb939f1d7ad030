"""Vocabulary profiles: shipped ones, a user's own, and what is wrong with bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Store

from guardrail.core.errors import ConfigError, InputError
from kg import OxigraphGraph, load_profile
from kg.terms import check_iri
from tests.growth import is_linear


@pytest.mark.parametrize("name", ["wikidata", "wikidata-mirror", "dbpedia", "rdfs"])
def test_shipped_profiles_load(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.ner["PERSON"]
    assert not profile.is_fact(profile.label[0])


def test_a_users_own_profile(tmp_path: Path) -> None:
    file = tmp_path / "museum.toml"
    file.write_text(
        'extends = "rdfs"\nname = "museum"\n'
        'label = ["m:title"]\nentity_prefix = "https://museum.example/"\n'
        'within = ["m:inside"]\nlanguages = ["de"]\n'
        '[prefixes]\nm = "https://museum.example/terms/"\n'
    )
    graph = OxigraphGraph.from_text(
        """
        @prefix o: <https://museum.example/> .
        @prefix m: <https://museum.example/terms/> .
        o:17 m:title "Judith"@de, "Judith (en)"@en ; m:paintedBy o:4 .
        o:4 m:title "Gentileschi"@de .
        o:room m:title "Saal 4"@de ; m:inside o:wing . o:wing m:title "Westen"@de .
        """,
        profile=file,
    )
    [[judith]] = graph.find(["Judith"])
    assert judith.id == "17"
    [subgraph] = graph.subgraphs(["17"])
    assert [triple.text for triple in subgraph.triples] == ["Judith, painted by: Gentileschi."]
    assert [place.label for place in graph.wider(["room"])[0]] == ["Westen"]


def test_the_vocabulary_is_detected() -> None:
    def detected(turtle: str) -> str:
        return OxigraphGraph.from_text(turtle).profile.name

    assert detected("<urn:a> <http://www.wikidata.org/prop/direct/P31> <urn:b> .") == "wikidata"
    assert detected("<urn:a> <http://dbpedia.org/ontology/author> <urn:b> .") == "dbpedia"
    assert detected("<urn:a> <urn:b> <urn:c> .") == "rdfs"
    assert OxigraphGraph(Store()).profile.name == "rdfs"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label = ", "not TOML"),
        pytest.param("x = " + "[" * 100_000, "not TOML", id="nested without end"),
        ("label = nan", "label: Input should be a list"),
        ("[ner]\nPERSON = 5", r"ner\.PERSON: Input should be a list"),
        ("ner = 5", "ner: Input should be a valid dictionary"),
        ("prefixes = []", "prefixes: Input should be a valid dictionary"),
        ('name = "x"\n', "label"),
        ('name = "x"\nlabel = ["ex:label"]', "prefixes"),
        ('extends = "nothing"\n', "does not exist"),
        ('extends = "rdfs"\nlables = ["urn:x"]', "lables.*did you mean 'label'"),
    ],
)
def test_bad_profiles_say_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_profile(file)
    with pytest.raises(ConfigError, match="dbpedia"):
        load_profile("dbpeda")


@given(st.text())
def test_an_accepted_iri_is_one_term(text: str) -> None:
    """Whatever passes the check stands between < and > without ending there."""
    try:
        iri = check_iri(text)
    except InputError:
        return
    assert OxigraphGraph(Store()).query(f"ASK {{ VALUES ?x {{ <{iri}> }} }}").boolean is True


def test_queries_need_not_declare_the_prefixes_of_the_profile(tmp_path: Path) -> None:
    file = tmp_path / "museum.toml"
    file.write_text('extends = "rdfs"\nname = "museum"\n[prefixes]\nm = "http://museum.example/"\n')
    turtle = "<http://museum.example/1> <http://www.w3.org/2000/01/rdf-schema#label> 'Vase' ."
    graph = OxigraphGraph.from_text(turtle, profile=file)
    [row] = graph.query("SELECT ?name WHERE { m:1 rdfs:label ?name }").rows
    assert row[0] is not None
    assert row[0].value == "Vase"
    with pytest.raises(InputError, match=r"x is declared nowhere as a prefix; .* m"):
        graph.query("PREFIX y: <urn:z:> SELECT ?name WHERE { x:1 rdfs:label ?name, y:1 }")
    with pytest.raises(InputError, match="not a SPARQL query: error at 2:"):
        graph.query("SELECT ?name { m:1 rdfs:label <urn:x:y> ; rdfs:label 'x:y' } # x:y\nWHEN")


@pytest.mark.parametrize("unit", ["-A", "A", "PREFIX ", "a:"])
def test_a_query_that_is_none(unit: str) -> None:
    graph = OxigraphGraph.from_text("<urn:a> <urn:b> <urn:c> .")

    def query(text: str) -> None:
        with pytest.raises(InputError):
            graph.query(text)

    assert is_linear(query, lambda n: unit * n, 5_000)
