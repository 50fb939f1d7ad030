"""Citations that the model itself wrote: right ones help, wrong ones are reported."""

import gzip
import json
import random
from collections import defaultdict

import pytest

from benchmarks.own_citations import cited, main
from benchmarks.verbalise import sentence
from guardrail import CheckRequest, Guardrail, GuardrailConfig, Triple
from guardrail.core.types import Category

PEOPLE = 60
PER_PROPERTY = 2
NEW = [
    Triple("Tarn City", name, value, subject_id="bike:tarn")
    for name, value in (
        ("price", "1,790 €"),
        ("colour", "green"),
        ("range", "85 km"),
        ("weight", "19.5 kg"),
        ("designer", "Ines Falk"),
        ("frame material", "steel"),
        ("launch date", "2023-04-02"),
        ("religion", "Buddhism"),
    )
]
"""A graph whose properties the judge has not been fitted on together."""


@pytest.fixture(scope="module")
def guard():
    with Guardrail(GuardrailConfig(policy="annotate")) as guard:
        yield guard


@pytest.fixture(scope="module")
def facts(guard):
    """Some facts of every property of the people graph, each with all facts of its person."""
    graph = guard._engine.parts.graph
    found = graph.query(
        "SELECT DISTINCT ?s WHERE { ?s <http://www.wikidata.org/prop/direct/P106> ?o } LIMIT 400"
    )
    ids = [row[0].value.rpartition("/")[2] for row in found.rows]
    chosen = random.Random(5)
    chosen.shuffle(ids)
    by_property = defaultdict(list)
    for person in graph.subgraphs(ids[:PEOPLE]):
        for fact in person.triples:
            by_property[fact.property].append((fact, person.triples))
    people = [
        row
        for rows in by_property.values()
        for row in chosen.sample(rows, min(PER_PROPERTY, len(rows)))
    ]
    return [*people, *((fact, NEW) for fact in NEW)]


def judged(guard, rows):
    """The first sentence's verdict for texts with their evidence."""
    requests = [CheckRequest(question="", answer=text, evidence=facts) for text, facts in rows]
    return [answer.sentences[0] for answer in guard.check_batch(requests)]


def supported(found):
    return sum(sentence.category is Category.SUPPORTIVE for sentence in found)


def test_right_citations_never_cost_support(guard, facts):
    bare = judged(guard, [(sentence(fact), known) for fact, known in facts])
    own = judged(guard, [(cited(sentence(fact), fact.citation), known) for fact, known in facts])
    assert supported(own) >= supported(bare) >= 0.9 * len(facts)
    assert [item.citation_errors for item in own] == [()] * len(facts)


def test_wrong_citations_gain_nothing_and_are_reported(guard, facts):
    """The value of another property of the same person, cited in three wrong ways."""
    wrong = []
    for fact, known in facts:
        other = next((item.value for item in known if item.property != fact.property), None)
        if other and all(other != item.value for item in known if item.property == fact.property):
            wrong.append((fact, fact.model_copy(update={"value": f"{other} II"}), known))
    bare = judged(guard, [(sentence(false), known) for _, false, known in wrong])
    for citation in (
        lambda fact, false: fact.citation,  # a fact that the sentence does not state
        lambda fact, false: false.citation,  # a fact that was never given
        lambda fact, false: false.model_copy(update={"subject_id": "Q0"}).citation,
    ):
        rows = [
            (cited(sentence(false), citation(fact, false)), known) for fact, false, known in wrong
        ]
        found = judged(guard, rows)
        assert supported(found) <= supported(bare)
        assert sum(bool(item.citation_errors) for item in found) >= 0.9 * len(wrong)


def test_a_citation_names_the_property_that_the_sentence_leaves_out(guard):
    """*professed* is not the graph's word for a religion."""
    facts = [
        Triple("Quanah Parker", "religion", "Native American Church", subject_id="Q1"),
        Triple("Quanah Parker", "occupation", "tribal chief", subject_id="Q1"),
    ]
    text = "Quanah Parker professed Native American Church."
    bare, own = judged(guard, [(text, facts), (cited(text, facts[0].citation), facts)])
    assert own.support > bare.support
    denied = "Quanah Parker did not profess Native American Church."
    bare, own = judged(guard, [(denied, facts), (cited(denied, facts[0].citation), facts)])
    assert own.support == bare.support


@pytest.mark.parametrize(("name", "graph"), [("anthem", "people graph"), ("shade", "other graph")])
def test_one_property_is_measured_on_the_graph_that_has_it(name, graph, tmp_path, capsys):
    (tmp_path / "triples").mkdir()
    row = {"sub": "Q1", "sub_label": "Mill", "rel_label": "shade", "obj_label": "red"}
    with gzip.open(tmp_path / "triples" / "tekgen_validation.jsonl.gz", "wt") as file:
        file.write(json.dumps(row))
    assert main(["--data", str(tmp_path), "--property", name, "--most", "1"]) == 0
    printed = capsys.readouterr().out
    assert f"Own citations, {graph}" in printed
    assert printed.count("| all 1 properties |") == printed.count("Own citations") == 1
