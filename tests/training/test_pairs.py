"""Constructed pairs: the label follows from how the pair was made."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.caqa.graph import FactGraph
from benchmarks.verbalise import surface
from guardrail.core.types import Triple
from training.forms import near_miss, same_value
from training.graph_pairs import GraphPairs
from training.relations import single_valued
from training.rows import Row, nli_row, without_overlap

NAMES = ["Ada Bryn", "Carl Bryn", "Dora Eck", "Emil Fahr", "Greta Holm", "Ida Holm"]
ENTAILMENT, NEUTRAL, CONTRADICTION = range(3)


def _graph() -> FactGraph:
    triples = []
    for i, name in enumerate(NAMES):
        facts = {
            "date of birth": f"{1600 + 37 * i}-0{i + 1}-1{i}",
            "date of death": f"{1660 + 37 * i}-0{i + 1}-2{i}",
            "place of birth": ["Rome", "Oslo", "Lyon", "Graz", "Cork", "Bern"][i],
            "father": NAMES[i - 1],
            "occupation": ["painter", "judge", "baker", "poet", "miner", "nurse"][i],
        }
        triples += [Triple(subject=name, property=p, value=v) for p, v in facts.items()]
    return FactGraph(triples)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    pairs = GraphPairs(_graph(), random.Random(3))
    return [pairs.row() for _ in range(600)]


def test_every_label_is_drawn(rows):
    assert {row.nli for row in rows} == {ENTAILMENT, NEUTRAL, CONTRADICTION}
    assert {row.attribution for row in rows} == {(0,), (1,), (2,), (3,)}


def test_facts_behind_an_entailed_sentence_are_in_the_premise(rows):
    graph = _graph()
    facts = [graph.triple(fact) for fact in graph.facts]
    for row in rows:
        if row.source == "graph" and row.nli == ENTAILMENT:
            stated = [f for f in facts if f.subject in row.hypothesis and f.value in row.hypothesis]
            assert all(f"{f.property}: {f.value}" in row.premise for f in stated)


def test_a_contradicted_triple_is_a_single_valued_relation_with_a_false_value(
    rows,
):
    graph = _graph()
    facts = {graph.triple(fact).text for fact in graph.facts}
    contradicted = [r for r in rows if r.source == "graph_fact" and r.nli == CONTRADICTION]
    assert contradicted
    for row in contradicted:
        assert row.hypothesis not in facts
        relation = row.hypothesis.rpartition(": ")[0].rpartition(", ")[2]
        assert single_valued(relation)


def test_roles_that_trade_places_are_contradicted_and_the_implied_relation_is_entailed(
    rows,
):
    graph = _graph()
    facts = [graph.triple(fact) for fact in graph.facts]
    fathers = {(fact.value, fact.subject) for fact in facts if fact.property == "father"}
    labels: dict[str, list[int]] = {"father": [], "child": []}
    for row in rows:
        match = re.fullmatch(r"(.+), (father|child): (.+)\.", row.hypothesis)
        both_named = match and match[1] in row.premise and match[3] in row.premise
        if match and both_named and (match[1], match[3]) in fathers:
            labels[match[2]].append(row.nli)
    assert min(map(len, labels.values())) > 3
    assert set(labels["father"]) == {CONTRADICTION}
    assert set(labels["child"]) == {ENTAILMENT}


@given(st.integers(1000, 2050), st.integers(1, 12), st.integers(1, 28), st.integers(0, 10_000))
def test_a_near_miss_of_a_date_is_another_date(year, month, day, seed):
    date = f"{year:04}-{month:02}-{day:02}"
    changed = near_miss(date, random.Random(seed))
    assert changed is not None
    assert changed != date
    assert len(changed) == len(date)
    assert not same_value(surface(changed), surface(date))


def test_training_rows_that_recur_in_validation_are_dropped():
    unseen = [nli_row("The sky is blue.", "It is blue.", "entailment", "x")]
    train = [
        nli_row("the sky is BLUE", "It is green.", "contradiction", "x"),
        nli_row("Grass grows.", "It grows.", "entailment", "x"),
        nli_row("Grass grows.", "It grows.", "entailment", "x"),
    ]
    assert without_overlap(train, unseen) == [train[1]]
