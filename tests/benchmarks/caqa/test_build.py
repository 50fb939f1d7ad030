import random
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from benchmarks.caqa.build import BuildLog, build_rows, held_out, part_of, split_graph
from benchmarks.caqa.controls import LIMIT, run_controls
from benchmarks.caqa.graph import FactGraph, node_of
from benchmarks.caqa.properties import is_sensitive
from benchmarks.caqa.rows import CAQARow, Split
from benchmarks.caqa.shapes import Edge, Node, Query, extend
from benchmarks.caqa.sources import open_source
from guardrail.core.errors import InputError
from guardrail.core.types import Category, Complexity, Triple


def stated(row: CAQARow) -> set[Triple]:
    return {*row.triples, *row.noise}


def test_the_same_seed_gives_the_same_rows(people: FactGraph) -> None:
    one, two = (list(build_rows(people, n=200, seed=3, split="train")) for _ in range(2))
    assert one == two
    assert one != list(build_rows(people, n=200, seed=4, split="train"))


def test_rows_survive_json(train: list[CAQARow]) -> None:
    for row in train[:50]:
        assert CAQARow.model_validate_json(row.model_dump_json()) == row


def test_every_category_and_complexity_occurs_and_single_facts_are_never_partial(
    train: list[CAQARow],
) -> None:
    cells = Counter((row.category, row.complexity) for row in train)
    assert set(cells) == {
        (category, complexity)
        for category in Category
        for complexity in Complexity
        if (category, complexity) != (Category.PARTIALLY_SUPPORTIVE, Complexity.SINGLE)
    }


def test_each_query_gives_each_category_once_so_the_answer_tells_nothing(
    train: list[CAQARow],
) -> None:
    groups: dict[tuple[Triple, ...], list[Category]] = defaultdict(list)
    for row in train:
        groups[tuple(fact.triple for fact in row.sub_facts)].append(row.category)
    whole = [categories for categories in groups.values() if len(categories) >= 3]
    assert len(whole) > 0.95 * len(groups)
    assert all(len(categories) == len(set(categories)) for categories in whole)


def test_supportive_evidence_holds_every_fact_of_the_answer(train: list[CAQARow]) -> None:
    for row in train:
        if row.category is Category.SUPPORTIVE:
            assert {fact.triple for fact in row.sub_facts} <= stated(row)
            assert row.supported == len(row.sub_facts)


def test_partial_evidence_holds_some_facts_and_contests_none(train: list[CAQARow]) -> None:
    for row in train:
        if row.category is Category.PARTIALLY_SUPPORTIVE:
            claimed = {fact.triple for fact in row.sub_facts}
            assert 0 < len(claimed & stated(row)) == row.supported < len(claimed)


def test_contradictory_evidence_states_another_answer(train: list[CAQARow]) -> None:
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


def test_irrelevant_evidence_shares_entities_but_no_asked_fact(train: list[CAQARow]) -> None:
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


def test_evidence_is_as_long_in_every_category(train: list[CAQARow]) -> None:
    words = defaultdict(list)
    for row in train:
        if row.complexity is not Complexity.SINGLE:
            words[row.category].append(len(" ".join(row.evidence).split()))
    means = [sum(lengths) / len(lengths) for lengths in words.values()]
    assert max(means) < 1.1 * min(means)


def test_splits_share_no_subject_and_training_never_meets_a_held_out_property(
    people: FactGraph,
) -> None:
    parts = {name: split_graph(people, name) for name in ("train", "valid", "test")}
    for name, part in parts.items():
        assert {part_of(key) for key in part.out} == {name}
        assert not any(held_out(label) for label in part.by_property)
    relations = split_graph(people, "test_relations")
    assert any(held_out(label) for label in relations.by_property)


def test_test_entities_with_facts_of_their_own_are_unseen_in_training(
    people: FactGraph,
) -> None:
    seen = set(split_graph(people, "train").labels)
    unseen = set(split_graph(people, "test").out)
    shared = seen & unseen
    assert all(len(people.into[key]) >= 20 for key in shared)


def test_every_row_of_unseen_relations_asks_about_one(people: FactGraph) -> None:
    rows = list(build_rows(people, n=300, seed=1, split="test_relations"))
    assert rows
    assert all(any(held_out(label) for label in row.properties) for row in rows)


def test_the_controls_fail(train: list[CAQARow], unseen: list[CAQARow]) -> None:
    controls = run_controls(train, unseen)
    assert controls.passed
    assert max(controls.evidence_only, controls.answer_only, controls.lexical_overlap) < LIMIT


def test_a_construction_without_decoys_is_caught_by_the_overlap_control(
    people: FactGraph,
) -> None:
    plain = [
        list(build_rows(people, n=n, seed=2, split=split, decoys=0.0))
        for n, split in ((1500, "train"), (500, "test"))
    ]
    assert run_controls(*plain).lexical_overlap > LIMIT


def test_a_union_joins_the_answers_for_entities_of_one_name() -> None:
    def capital(known: str, value: str) -> Triple:
        return Triple(subject="Georgia", property="capital", value=value, subject_id=known)

    graph = FactGraph([capital("Q230", "Tbilisi"), capital("Q1428", "Atlanta")])
    edge = Edge("capital", True, Node("Q230", named=True))
    query = Query((Node(node_of("Tbilisi", None), False, (edge,)),), "single")
    extended = [extend(graph, query, random.Random(seed)) for seed in range(20)]
    unions = [q for q in extended if q is not None and q.extension == "union"]
    assert unions
    for union in unions:
        assert union.complexity is Complexity.UNION
        assert {graph.labels[root.key] for root in union.roots} == {"Tbilisi", "Atlanta"}


def test_extensions_at_subject_and_answer_make_a_path_and_a_tree() -> None:
    graph = FactGraph(
        [
            Triple(subject="Ada", property="father", value="Byron"),
            Triple(subject="Byron", property="place of birth", value="London"),
            Triple(subject="Ada", property="field of work", value="mathematics"),
            Triple(subject="Medora", property="ancestor", value="Byron"),
        ]
    )
    edge = Edge("father", True, Node(node_of("Ada", None), named=True))
    query = Query((Node(node_of("Byron", None), False, (edge,)),), "single")
    extended = [extend(graph, query, random.Random(seed)) for seed in range(60)]
    shapes = {(q.extension, q.complexity) for q in extended if q is not None}
    assert ("subject", Complexity.CONCATENATION) in shapes
    assert ("answer", Complexity.INTERSECTION) in shapes
    assert (None, Complexity.SINGLE) in shapes


def test_triples_of_any_kind_will_do() -> None:
    towns = [f"Town {letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"] * 8
    triples = [
        triple
        for place, town in enumerate(towns)
        for triple in (
            Triple(subject=f"Person {place}", property="place of birth", value=town),
            Triple(subject=f"Person {place}", property="employer", value=f"Firm {place % 31}"),
            Triple(
                subject=f"Person {place}", property="favourite dish", value=f"Soup {place % 17}"
            ),
        )
    ]
    log = BuildLog()
    rows = list(build_rows(triples, n=60, split="train", log=log))
    assert len(rows) == 60 == sum(log.rows.values())
    assert {row.category for row in rows} == set(Category)


def test_an_empty_split_says_what_to_do() -> None:
    with pytest.raises(InputError, match="larger graph"):
        next(build_rows([], n=1, split="test"))


def test_a_file_of_triples_is_a_graph(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    triple = Triple(subject="Rome", property="country", value="Italy", subject_id="Q220")
    file.write_text(triple.model_dump_json() + "\n")
    graph = open_source(str(file))
    assert [graph.triple(fact) for fact in graph.facts] == [triple]
    assert node_of("Italy", None) in graph.labels


def test_facts_are_borrowed_and_exchanged_among_things_of_one_kind() -> None:
    facts = [
        ("Ada", "place of birth", "Rome"),
        ("Ben", "father", "Ada"),
        ("Rome", "country", "Italy"),
        ("Eternity and a Day", "award received", "Palme d'Or"),
        ("Ada", "award received", "Palme d'Or"),
    ]
    graph = FactGraph(Triple(subject=s, property=p, value=v) for s, p, v in facts)
    ada, rome, film = (node_of(name, None) for name in ("Ada", "Rome", "Eternity and a Day"))
    assert graph.kinds(ada) == {"person"}
    assert graph.kinds(rome) == {"place"}
    assert graph.kinds(film) == frozenset()  # films and persons alike receive awards
    assert graph.suits(ada, "mother", forward=False)
    assert not graph.suits(rome, "mother", forward=False)
    assert not graph.suits(film, "doctoral student", forward=False)
    assert graph.suits(rome, "place of death", forward=True)
    assert graph.same_kind(ada, film)
    assert not graph.same_kind(ada, rome)


def test_what_a_thing_is_and_what_it_is_part_of_is_not_asked(train: list[CAQARow]) -> None:
    asked = {fact.triple.property for row in train for fact in row.sub_facts}
    assert asked.isdisjoint({"instance of", "subclass of", "part of", "has part"})


@pytest.mark.parametrize("split", ["test", "test_relations"])
def test_nothing_intimate_or_defamatory_is_said_falsely_of_anybody(
    people: FactGraph, split: Split
) -> None:
    log = BuildLog()
    rows = list(build_rows(people, n=600, seed=1, split=split, log=log))
    true = {people.triple(fact) for fact in people.facts}
    told = {t for row in rows for t in (*stated(row), *(fact.triple for fact in row.sub_facts))}
    assert {t.property for t in told - true if is_sensitive(t)} == set()
    assert any(is_sensitive(t) for t in told & true)
    assert log.rejected["false of a sensitive property"] > 0
    assert len(rows) == 600


def test_two_names_take_a_verb_in_the_plural(train: list[CAQARow]) -> None:
    both = [row.question for row in train if row.extension == "union" and " and " in row.question]
    assert any(
        " are " in question or " were " in question or " do " in question for question in both
    )
    for row in train:
        names = " and ".join(row.seeds)
        if len(row.seeds) == 2 and names in row.question:
            assert not re.search(rf"\b(is|was|does|has) {re.escape(names)}", row.question)
