"""Rows of statements and of triple sets: label, citations and span follow from the construction."""

from __future__ import annotations

import pytest

from guardrail.core.types import Verdict
from training.grounding_rows import less_evidence, other_evidence_rows
from training.rows import Row
from training.statements import Statement, own_statements

ENTAILMENT, NEUTRAL, CONTRADICTION = range(3)


@pytest.fixture(scope="module")
def statements() -> list[Statement]:
    return [own_statement for own_statement, _ in zip(own_statements(), range(600), strict=False)]


@pytest.fixture(scope="module")
def others(statements: list[Statement]) -> list[Row]:
    return list(other_evidence_rows(statements, "other", seed=1))


def test_own_statements_cite_their_evidence_and_mark_their_problem(statements):
    for statement in statements:
        assert all(0 <= place < len(statement.statements) for place in statement.cited), statement
        if statement.verdict in (Verdict.UNSUPPORTED, Verdict.CONTRADICTED):
            assert statement.span is not None, statement
        else:
            assert statement.span is None, statement


def test_without_what_carries_it_a_sentence_is_unsupported(statements, others):
    by_sentence = {statement.sentence: statement for statement in statements}
    gone = [row for row in others if row.cited == frozenset() and row.nli == NEUTRAL]
    assert len(gone) > 50
    for row in gone:
        one = by_sentence[row.hypothesis]
        if one.verdict is not Verdict.UNSUPPORTED:
            assert not {one.statements[n] for n in one.cited} <= set(row.statements)
            assert row.span == (0, len(row.hypothesis))


def test_less_evidence_lacks_what_one_of_its_sentences_cites_and_nothing_else(statements):
    some = list(less_evidence(statements, seed=1))
    assert len(some) > 20
    for pairs in some:
        gone = {*pairs[0][0].statements} - {*pairs[0][1].statements}
        for before, after in pairs:
            assert (before.verdict, after.verdict) == (Verdict.SUPPORTED, Verdict.UNSUPPORTED)
            assert before.sentence == after.sentence
            assert gone & {before.statements[place] for place in before.cited}
            assert len(after.windows) in (0, len(after.statements))
        assert any(
            gone <= {before.statements[place] for place in before.cited} for before, _ in pairs
        )


def test_other_evidence_beside_it_changes_no_label(statements, others):
    labels = {Verdict.SUPPORTED: ENTAILMENT, Verdict.CONTRADICTED: CONTRADICTION}
    by_sentence = {statement.sentence: statement for statement in statements}
    more = fewer = 0
    for row in others:
        one = by_sentence[row.hypothesis]
        if row.nli == NEUTRAL or not row.cited:
            continue
        assert row.nli == labels[one.verdict]
        assert {row.statements[n] for n in row.cited} == {one.statements[n] for n in one.cited}
        more += len(row.statements) > len(one.statements)
        fewer += len(row.statements) < len(one.statements)
    assert more > 20
    assert fewer > 20
