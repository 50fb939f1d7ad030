"""The benchmark of corrections: what counts as right is read from the whole text that left."""

from benchmarks.correction.errors import domain_cases
from benchmarks.correction.measure import came_of, table
from guardrail import Guardrail, GuardrailConfig


def test_the_projects_own_cases_are_corrected():
    cases = [case for case in domain_cases() if case.set == "hotel"]
    with Guardrail(GuardrailConfig()) as guard:
        errors = came_of(guard, [case for case in cases if case.kind])
        kept = came_of(guard, [case for case in cases if not case.kind])
    assert sum(bool(item.corrected) for item in errors) >= 8
    assert all(item.right for item in errors if item.corrected)
    assert not any(item.changed for item in kept)
    assert table(errors, kept).splitlines()[-1].startswith("True sentences changed: 0 of ")
