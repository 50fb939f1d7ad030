import json
from pathlib import Path

import pytest

from benchmarks.caqa.build import build_rows
from benchmarks.caqa.graph import FactGraph
from benchmarks.caqa.kgqa import KGQALog, kgqa_entities, kgqa_queries
from benchmarks.caqa.sparql_shapes import Pattern, UnfitQueryError, read_shape
from guardrail.core.types import Triple

WD = (
    "PREFIX wd: <http://www.wikidata.org/entity/> "
    "PREFIX wdt: <http://www.wikidata.org/prop/direct/> "
)


def test_one_pattern_is_a_single_query() -> None:
    shape = read_shape(WD + "SELECT DISTINCT ?who WHERE { wd:Q7259 wdt:P22 ?who . }")
    assert (shape.base, shape.answer) == ("single", "?who")
    assert shape.patterns == (Pattern("Q7259", "P22", "?who"),)


def test_a_sequence_of_properties_is_a_path() -> None:
    shape = read_shape(WD + "SELECT ?x WHERE { wd:Q7259 wdt:P22/wdt:P19 ?x }")
    assert shape.base == "path"
    assert [p.property for p in shape.patterns] == ["P22", "P19"]


def test_two_named_entities_that_meet_in_the_answer_are_a_tree() -> None:
    shape = read_shape(WD + "SELECT ?x { ?x wdt:P57 wd:Q1 ; wdt:P161 wd:Q2 ; wdt:P31 wd:Q11424 . }")
    assert shape.base == "tree"
    assert len(shape.patterns) == 2  # the class constraint is left out


def test_a_statement_node_is_one_hop() -> None:
    shape = read_shape(
        WD + "PREFIX p: <http://www.wikidata.org/prop/> "
        "PREFIX ps: <http://www.wikidata.org/prop/statement/> "
        "SELECT ?x WHERE { ?x p:P39 ?s . ?s ps:P39 wd:Q11696 . }"
    )
    assert shape.base == "single"
    assert shape.patterns == (Pattern("?x", "P39", "Q11696"),)


def test_names_of_dbpedia_become_labels() -> None:
    shape = read_shape(
        "SELECT DISTINCT ?uri WHERE { <http://dbpedia.org/resource/Ada_Lovelace> "
        "<http://dbpedia.org/ontology/birthPlace> ?uri }"
    )
    assert shape.patterns == (Pattern("=Ada Lovelace", "=birth place", "?uri"),)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("ASK { wd:Q1 wdt:P1 wd:Q2 }", "yes or no"),
        ("SELECT (COUNT(?x) AS ?n) { ?x wdt:P1 wd:Q2 }", "aggregate"),
        ("SELECT ?x { ?x wdt:P1 wd:Q2 . FILTER(?x != wd:Q3) }", "filter"),
        ("SELECT ?x { ?x wdt:P1 wd:Q2 } ORDER BY ?x LIMIT 1", "order"),
        ("SELECT ?x { { ?x wdt:P1 wd:Q2 } UNION { ?x wdt:P2 wd:Q2 } }", "alternative"),
        ("SELECT ?x { ?x wdt:P1* wd:Q2 }", "property path"),
        ("SELECT ?x { wd:Q1 wdt:P1 ?a . ?a wdt:P2 ?b . ?b wdt:P3 ?x }", "other shape"),
    ],
)
def test_other_queries_are_named_not_guessed(query: str, reason: str) -> None:
    with pytest.raises(UnfitQueryError, match=reason):
        read_shape(WD + query)


def family() -> FactGraph:
    def fact(subject: str, label: str, pid: str, value: str) -> Triple:
        return Triple(
            subject=f"name {subject}",
            property=label,
            value=f"name {value}",
            subject_id=subject,
            property_id=pid,
            value_id=value,
        )

    return FactGraph(
        [
            fact("Q1", "father", "P22", "Q2"),
            fact("Q2", "place of birth", "P19", "Q3"),
            fact("Q1", "place of birth", "P19", "Q4"),
        ]
    )


def written(tmp_path: Path, *rows: dict[str, object]) -> Path:
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_queries_are_found_in_the_graph_and_the_rest_is_counted(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {"question": "whose child is it?", "query": WD + "SELECT ?x { wd:Q1 wdt:P22 ?x }"},
        {"utterance": "where?", "sparql": WD + "SELECT ?x { wd:Q1 wdt:P22/wdt:P19 ?x }"},
        {"question": "gone?", "query": {"sparql": WD + "SELECT ?x { wd:Q9 wdt:P22 ?x }"}},
        {"question": "how many?", "query": WD + "SELECT (COUNT(?x) AS ?n) { ?x wdt:P22 wd:Q2 }"},
    )
    log = KGQALog()
    queries = list(kgqa_queries(file, family(), log=log))
    assert log.read == 4
    assert dict(log.shapes) == {"single": 2, "path": 1}
    assert dict(log.grounded) == {"single": 1, "path": 1}
    assert dict(log.skipped) == {"aggregate": 1}
    assert queries[1].roots[0].key in ("Q3",)
    assert {"Q1", "Q9"} <= set(kgqa_entities(file))


def test_a_question_with_entities_and_answer_is_linked_over_the_graph(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {
            "question": "Where was the father of one born?",
            "questionEntity": [{"name": "Q1", "entityType": "entity"}],
            "answer": {"answer": [{"name": "Q3"}]},
            "complexityType": "multihop",
        },
    )
    (query,) = kgqa_queries(file, family())
    assert query.base == "path"
    assert query.question == "Where was the father of one born?"


def test_rows_keep_the_question_of_a_query_that_was_not_extended(
    people: FactGraph, tmp_path: Path
) -> None:
    part = next(iter(people.by_property["place of birth"]))
    asked = "Where did this person come into the world?"
    sparql = f"{WD}SELECT ?x {{ wd:{part.subject} wdt:P19 ?x }}"
    file = written(tmp_path, *({"question": asked, "query": sparql} for _ in range(8)))
    queries = [q for q in kgqa_queries(file, people) if q.extension is None][:1]
    for split in ("train", "valid", "test"):
        for row in build_rows(people, n=4, split=split, queries=queries):
            assert row.question == asked
