"""What is there for threads is there for coroutines, with the same parameters."""

import inspect

import pytest

from guardrail import CheckSession, Guardrail, GuardrailConfig
from guardrail.log.records import open_log

SYNC = [
    (kind, name)
    for kind in (Guardrail, CheckSession)
    for name in dir(kind)
    if f"a{name}" in dir(kind)
]


def parameters(function):
    return list(inspect.signature(function).parameters.values())


@pytest.mark.parametrize(("kind", "name"), SYNC)
def test_both_take_the_same(kind, name):
    assert parameters(getattr(kind, name)) == parameters(getattr(kind, f"a{name}"))


def test_every_coroutine_has_a_twin():
    for kind in (Guardrail, CheckSession):
        coroutines = {
            name
            for name, item in inspect.getmembers(kind)
            if (inspect.iscoroutinefunction(item) or inspect.isasyncgenfunction(item))
            and not name.startswith("_")
        }
        assert {name for name in coroutines if name[1:] not in dir(kind)} == set()
        assert coroutines


def test_a_look_at_a_growing_answer_leaves_no_record(tmp_path):
    file = tmp_path / "log.sqlite"
    config = GuardrailConfig(judge="none", graph={"location": "none"})
    with open_log(file) as log, Guardrail(config, log=log) as guard:
        guard.check("When?", "In 1932.", evidence=[], id="looked at", record=False)
        guard.check("When?", "In 1932.", evidence=[], id="shown")
    with open_log(file) as log:
        assert [record.answer.id for record in log.records()] == ["shown"]
