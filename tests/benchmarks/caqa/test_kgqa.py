import json
from pathlib import Path

import pytest

from benchmarks.caqa.build import build_rows
from benchmarks.caqa.graph import FactGraph
from benchmarks.caqa.kgqa import KGQALog, kgqa_entities, kgqa_queries
from benchmarks.caqa.sparql_shapes import Pattern, UnfitQueryError, read_shape
from guardrail.core.types import Triple

WIKIDATA = {"wd": "entity/", "wdt": "prop/direct/", "p": "prop/", "ps": "prop/statement/"}
WD = "".join(f"PREFIX {n}: <http://www.wikidata.org/{place}> " for n, place in WIKIDATA.items())
DBPEDIA = "<http://dbpedia.org/resource/Ada_Lovelace> <http://dbpedia.org/ontology/birthPlace>"


@pytest.mark.parametrize(
    ("query", "base", "patterns"),
    [
        ("SELECT DISTINCT ?x WHERE { wd:Q7259 wdt:P22 ?x . }", "single", [("Q7259", "P22", "?x")]),
        # The class constraint is left out.
        ("SELECT ?x { ?x wdt:P57 wd:Q1 ; wdt:P161 wd:Q2 ; wdt:P31 wd:Q11424 . }", "tree",
         [("?x", "P57", "Q1"), ("?x", "P161", "Q2")]),
        # A statement node is one hop.
        ("SELECT ?x WHERE { ?x p:P39 ?s . ?s ps:P39 wd:Q11696 . }", "single",
         [("?x", "P39", "Q11696")]),
        (f"SELECT ?x WHERE {{ {DBPEDIA} ?x }}", "single",
         [("=Ada Lovelace", "=birth place", "?x")]),
    ],
)  # fmt: skip
def test_the_shape_of_a_query(query: str, base: str, patterns: list[tuple[str, str, str]]) -> None:
    shape = read_shape(WD + query)
    assert shape.base == base
    assert shape.patterns == tuple(Pattern(*pattern) for pattern in patterns)


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
        ids = {"subject_id": subject, "property_id": pid, "value_id": value}
        return Triple(f"name {subject}", label, f"name {value}", **ids)

    born = [fact("Q2", "place of birth", "P19", "Q3"), fact("Q1", "place of birth", "P19", "Q4")]
    return FactGraph([fact("Q1", "father", "P22", "Q2"), *born])


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
    asked = "Where was the father of one born?"
    row = {"question": asked, "questionEntity": [{"name": "Q1", "entityType": "entity"}]}
    answer = {"answer": {"answer": [{"name": "Q3"}]}, "complexityType": "multihop"}
    (query,) = kgqa_queries(written(tmp_path, row | answer), family())
    assert (query.base, query.question) == ("path", asked)


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
