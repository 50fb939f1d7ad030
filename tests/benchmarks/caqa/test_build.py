from collections import Counter, defaultdict
from itertools import product

import pytest

from benchmarks.caqa.build import BuildLog, build_rows, held_out, part_of, split_graph
from benchmarks.caqa.controls import LIMIT, run_controls
from benchmarks.caqa.properties import is_sensitive
from benchmarks.caqa.rows import CAQARow
from guardrail.core.types import Category, Complexity, Triple


def stated(row: CAQARow) -> set[Triple]:
    return {*row.triples, *row.noise}


def test_every_category_and_complexity_occurs_and_single_facts_are_never_partial(train):
    cells = Counter((row.category, row.complexity) for row in train)
    never = (Category.PARTIALLY_SUPPORTIVE, Complexity.SINGLE)
    assert set(cells) == set(product(Category, Complexity)) - {never}


def test_each_query_yields_each_category_once_so_answers_carry_no_signal(train):
    groups: dict[tuple[Triple, ...], list[Category]] = defaultdict(list)
    for row in train:
        groups[tuple(fact.triple for fact in row.sub_facts)].append(row.category)
    whole = [categories for categories in groups.values() if len(categories) >= 3]
    assert len(whole) > 0.95 * len(groups)
    assert all(len(categories) == len(set(categories)) for categories in whole)


def test_supportive_evidence_holds_every_fact_of_the_answer(train):
    for row in train:
        if row.category is Category.SUPPORTIVE:
            assert {fact.triple for fact in row.sub_facts} <= stated(row)
            assert row.supported == len(row.sub_facts)


def test_partial_evidence_holds_some_facts_and_contests_none(train):
    for row in train:
        if row.category is Category.PARTIALLY_SUPPORTIVE:
            claimed = {fact.triple for fact in row.sub_facts}
            assert 0 < len(claimed & stated(row)) == row.supported < len(claimed)


def test_contradictory_evidence_states_another_answer(train):
    for row in train:
        if row.category is Category.CONTRADICTORY:
            lost = [fact.triple for fact in row.sub_facts if not fact.supported]
            assert lost
            assert any(
                (rival.property, anchor) == (fact.property, anchor) and rival != fact
                for fact in lost
                for rival in row.triples
                for anchor in (fact.subject, fact.value)
                if anchor in (rival.subject, rival.value)
            )


def test_irrelevant_evidence_shares_entities_but_no_asked_fact(train):
    for row in train:
        if row.category is Category.IRRELEVANT:
            claimed = {fact.triple for fact in row.sub_facts}
            heads = {(t.subject, t.property) for t in claimed}
            assert row.supported == 0
            assert not claimed & stated(row)
            assert not {(t.subject, t.property) for t in stated(row)} & heads
            named = {name for t in row.triples for name in (t.subject, t.value)}
            assert named & set(row.seeds)
            assert not {t.property for t in row.triples} & set(row.properties)


def test_splits_share_no_subject_and_training_never_meets_a_held_out_property(people):
    parts = {name: split_graph(people, name) for name in ("train", "valid", "test")}
    for name, part in parts.items():
        assert {part_of(key) for key in part.out} == {name}
        assert not any(held_out(label) for label in part.by_property)
    relations = split_graph(people, "test_relations")
    assert any(held_out(label) for label in relations.by_property)


def test_the_controls_fail(train, unseen):
    controls = run_controls(train, unseen)
    assert controls.passed
    assert max(controls.evidence_only, controls.answer_only, controls.lexical_overlap) < LIMIT


def test_a_construction_without_decoys_is_caught_by_the_overlap_control(people):
    plain = [
        list(build_rows(people, n=n, seed=2, split=split, decoys=0.0))
        for n, split in ((1500, "train"), (500, "test"))
    ]
    assert run_controls(*plain).lexical_overlap > LIMIT


@pytest.mark.parametrize("split", ["test", "test_relations"])
def test_nothing_intimate_or_defamatory_is_said_falsely_of_anybody(people, split):
    log = BuildLog()
    rows = list(build_rows(people, n=600, seed=1, split=split, log=log))
    true = {people.triple(fact) for fact in people.facts}
    triples = {t for row in rows for t in (*stated(row), *(fact.triple for fact in row.sub_facts))}
    assert {t.property for t in triples - true if is_sensitive(t)} == set()
    assert any(is_sensitive(t) for t in triples & true)
    assert log.rejected["false of a sensitive property"] > 0
    assert len(rows) == 600
