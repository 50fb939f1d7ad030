"""Statements in nearly the words of their evidence, and their twins."""

import pytest

from guardrail.core.types import Verdict
from tests.training.test_table_statements import evidence
from training.close_wording import close_wording

PRICES = (
    "Fjell 3, price: €2,490.",
    "Fjell 3, weight: 19 kg.",
    "Dal 2, price: €1,190.",
    "Dal 2, weight: 17 kg.",
)
HANDBOOK = (
    "Bikes can be sent back within 30 days.",
    "The workshop is open from 9 am to 6 pm.",
    "Batteries are covered for two years.",
)


@pytest.fixture(scope="module")
def triples():
    sets = [evidence(*PRICES, triples=True, group=f"shop {n}") for n in range(20)]
    return list(close_wording(sets, seed=1))


@pytest.fixture(scope="module")
def passages():
    sets = [evidence(*HANDBOOK, triples=False, group=f"shop {n}") for n in range(20)]
    return list(close_wording(sets, seed=1))


def test_a_true_sentence_has_the_value_of_what_it_cites(triples):
    digits = str.maketrans("", "", "€, ")
    for row in triples:
        if row.verdict is Verdict.SUPPORTED:
            for place in row.cited:
                value = row.statements[place].partition(": ")[2].removesuffix(".")
                number = value.translate(digits).removesuffix("kg")
                assert number in row.sentence.translate(digits), row


def test_a_contradicted_sentence_marks_a_value_that_its_statement_lacks(triples, passages):
    marked = [row for row in [*triples, *passages] if row.span is not None]
    assert marked
    for row in marked:
        assert row.verdict is Verdict.CONTRADICTED
        wrong = row.sentence[slice(*row.span)]
        values = {row.statements[place].rpartition(": ")[2].rstrip(".") for place in row.cited}
        assert wrong not in values, row


def test_without_its_evidence_a_sentence_is_unsupported(triples, passages):
    for row in (*triples, *passages):
        if row.verdict is Verdict.UNSUPPORTED:
            assert not row.cited
            assert len(row.statements) < max(len(PRICES), len(HANDBOOK) + 1)
