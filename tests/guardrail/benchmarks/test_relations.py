"""The statements that come with the package, and how they are counted."""

import pytest

from guardrail import Guardrail
from guardrail.benchmarks.relations import main, read_statements, supported


def test_every_statement_names_the_subject_of_its_facts() -> None:
    told = read_statements()
    assert len(told) == 192
    assert sum(one.true for one in told) == 96
    for one in told:
        (subject,) = {fact.subject for fact in one.facts}
        assert subject in one.text


def test_statements_are_checked_against_their_own_facts(guard: Guardrail) -> None:
    told = read_statements()
    true = [one for one in told if one.true][:10]
    strangers = [one.model_copy(update={"facts": told[-1].facts}) for one in true]
    passed = supported(guard, [*true, *strangers])
    assert sum(passed[:10]) > 6
    assert not any(passed[10:])


def test_the_command_prints_a_share_for_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    table = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in table[2:]] == ["true", "false"]
    true, false = (float(line.split("|")[4]) for line in table[2:])
    assert true > 2 * false
