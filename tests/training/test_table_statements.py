"""Statements on tables: what is right of them is recomputed from the evidence."""

import re

import pytest

from guardrail.core.types import Verdict
from training.close_wording import triple_facts
from training.statements import Statement
from training.table_statements import table_statements

LARGER = "more expensive than|costs more than|dearer than|heavier than|weighs more than|faster than"
SMALLER = "cheaper than|costs less than|lighter than|weighs less than|slower than"
_COMPARED = re.compile(rf"(\w+ \d+) (?:is )?(?:({LARGER})|({SMALLER})) (\w+ \d+)\.")


def evidence(*statements: str, triples: bool, group: str) -> Statement:
    return Statement(
        group=group, kind="", triples=triples, statements=statements, question="", context="",
        sentence="", verdict=Verdict.SUPPORTED, span=None, cited=frozenset(),
    )  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    sets = [
        evidence(f"Model {n}, colour: colour {n}.", triples=True, group=f"{n}") for n in range(30)
    ]
    prose = [
        evidence(f"Nothing is sold on day {n} of the month.", triples=False, group=f"p{n}")
        for n in range(10)
    ]
    return list(table_statements([*sets, *prose], count=1_500, seed=3))


def number(text: str) -> float:
    return float(re.sub(r"[^\d.]", "", text) or "nan")


def test_comparisons_hold_as_their_numbers_do(rows):
    seen = set()
    for row in rows:
        found = _COMPARED.fullmatch(row.sentence)
        if not (row.triples and found and row.cited):
            continue
        values = {
            fact.subject: number(fact.value)
            for fact in triple_facts(row.statements[place] for place in row.cited)
        }
        first, second = values[found[1]], values[found[4]]
        holds = first > second if found[2] else first < second
        assert (row.verdict is Verdict.SUPPORTED) is holds, row
        seen.add((bool(found[2]), holds))
    assert len(seen) == 4


def test_a_wrong_value_is_another_row_s(rows):
    marked = [row for row in rows if row.span and re.search(r"\d", row.sentence[slice(*row.span)])]
    assert {row.triples for row in marked} == {True, False}
    for row in marked:
        words = row.sentence[slice(*row.span)]
        if row.verdict is Verdict.CONTRADICTED and row.triples and not words.startswith("Model"):
            cited = {fact.value for fact in triple_facts(row.statements[p] for p in row.cited)}
            others = {fact.value for fact in triple_facts(row.statements)} - cited
            assert words in others, row
