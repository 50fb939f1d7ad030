"""Whom a sentence names: labels, names without their middle, aliases, and nobody by half a name."""

import pytest

from guardrail import Category, Guardrail, GuardrailConfig, Triple
from guardrail.naming import SentenceTokens, named_in
from kg.store import OxigraphGraph

LABELS = ["Percy Bysshe Shelley", "Mary Shelley", "Alan Shepard", "Alan Bean", "Samuel Clemens"]
OTHERS = {"Samuel Clemens": ("Mark Twain", "Quintus Curtius Snodgrass", "it")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Percy Shelley was born in London.", {"Percy Bysshe Shelley": ["Percy Shelley"]}),
        ("Percy Bysshe Shelley drowned.", {"Percy Bysshe Shelley": ["Percy Bysshe Shelley"]}),
        ("Alan Bean walked on the moon.", {"Alan Bean": ["Alan Bean"]}),
        (
            "Mary Shelley and Percy Shelley met.",
            {"Mary Shelley": ["Mary Shelley"], "Percy Bysshe Shelley": ["Percy Shelley"]},
        ),
        ("Shelley wrote it.", {"Percy Bysshe Shelley": ["Shelley"], "Mary Shelley": ["Shelley"]}),
        ("Mark Twain was a pilot.", {"Samuel Clemens": ["Mark Twain"]}),
        ("Quintus Snodgrass was a pilot.", {"Samuel Clemens": ["Quintus Snodgrass"]}),
        ("It rained, and mark twain is a depth.", {}),
    ],
)
def test_a_sentence_names_entities(text: str, expected: dict[str, list[str]]) -> None:
    named = named_in(SentenceTokens.of(text, 0), LABELS, OTHERS)
    assert {one: [text[a:b] for a, b in spans] for one, spans in named.items()} == expected


def test_a_fact_of_a_namesake_supports_nothing() -> None:
    evidence = [
        Triple(subject="Percy Bysshe Shelley", property="place of birth", value="Horsham"),
        Triple(subject="Mary Shelley", property="place of birth", value="London"),
        Triple(subject="Mary Shelley", property="spouse", value="Percy Bysshe Shelley"),
    ]
    with Guardrail(GuardrailConfig(judge="none")) as guard:
        answer = guard.check(
            question="Who was Percy Shelley?",
            answer="Percy Shelley was born in Horsham. Percy Shelley was born in London.",
            evidence=evidence,
        )
    right, wrong = answer.sentences
    assert right.category is Category.SUPPORTIVE
    assert wrong.citations == ()


def test_an_alias_of_a_linked_entity_names_it() -> None:
    graph = OxigraphGraph.from_text(
        """
        @prefix wd: <http://www.wikidata.org/entity/> .
        @prefix wdt: <http://www.wikidata.org/prop/direct/> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
        wd:P19 rdfs:label "place of birth"@en .
        wd:Q1 rdfs:label "Samuel Langhorne Clemens"@en ; skos:altLabel "Mark Twain"@en ;
            wdt:P31 wd:Q5 ; wdt:P19 "Florida" .
        """,
        profile="wikidata",
    )
    with Guardrail(GuardrailConfig(judge="none"), graph=graph) as guard:
        for name in ("Mark Twain", "Samuel Clemens", "Samuel Langhorne Clemens"):
            answer = guard.check(question="", answer=f"{name} was born in Florida.")
            assert [one.value for one in answer.sentences[0].citations] == ["Florida"], name
