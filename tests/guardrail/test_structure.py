"""The size and the shape of the package, as the source tells it."""

from pathlib import Path

from benchmarks.shape import read

ROOT = Path(__file__).parents[2]
SHAPE = read(ROOT)
ENGINE = {"engine": 2_195, "core/text": 2_591, "evidence": 1_512, "verdict": 3_485}
"""Rooms of the engine, with their lines when the bound was last looked at."""
MOST_LINES = 8_600
DEEPEST = {"guardrail.guard": 9, "chains.gateway.app": 13}
"""Modules in the longest chain of imports, of those that run as a module is imported."""
CORE = ("core", "engine", "markers", "policy.py", "verdict")
ELSEWHERE = {
    "core/documents/reading.py": "core/documents/test_documents.py",
    "core/documents/sections.py": "core/documents/test_documents.py",
    "core/text/dates.py": "core/text/test_values.py",
    "core/text/names.py": "core/text/test_values.py",
    "core/text/quantities.py": "core/text/test_values.py",
    "core/types/explanation.py": "test_explanation.py",
    "core/types/judging.py": "core/types/test_answers.py",
    "core/types/knowledge.py": "core/test_incoming.py",
    "core/types/usage.py": "test_usage.py",
    "core/types/value.py": "core/test_fields.py",
    "engine/flow.py": "test_guard.py",
    "engine/parts.py": "test_guard.py",
    "engine/pipeline.py": "test_guard.py",
    "engine/problems.py": "test_guard.py",
    "engine/recording.py": "log/test_records.py",
    "engine/scoring.py": "test_scorers.py",
    "verdict/checks/base.py": "verdict/test_findings.py",
    "verdict/checks/copied.py": "verdict/test_guarantees.py",
    "verdict/checks/stated.py": "verdict/test_guarantees.py",
    "verdict/checks/validity.py": "verdict/test_guarantees.py",
    "verdict/checks/exact.py": "verdict/test_verdicts.py",
    "verdict/checks/names.py": "verdict/test_verdicts.py",
    "verdict/checks/typed_values.py": "verdict/test_verdicts.py",
    "verdict/checks/yes_no.py": "verdict/test_verdicts.py",
    "verdict/combination.py": "verdict/test_verdicts.py",
    "verdict/grounder.py": "verdict/test_verdicts.py",
    "verdict/premises.py": "verdict/test_verdicts.py",
    "verdict/spans.py": "verdict/test_verdicts.py",
    "verdict/subjects.py": "verdict/test_verdicts.py",
}
"""Modules of the core whose tests stand in another file than that of their name."""
MOST_ANY = 66
"""Places that take or give what a foreign base class, or a library without types, leaves open."""


def test_the_engine_is_small() -> None:
    """Of all rooms together, so that code may move from one to another."""
    lines = {room: SHAPE.lines(f"guardrail.{room.replace('/', '.')}") for room in ENGINE}
    grown = [
        f"guardrail/{room} has {count} lines, {count - ENGINE[room]:+}"
        for room, count in lines.items()
        if count != ENGINE[room]
    ]
    assert sum(lines.values()) <= MOST_LINES, (
        f"the engine has {sum(lines.values())} lines, {MOST_LINES} at most: {'; '.join(grown)}. "
        "Delete as much as you add (git diff --stat main -- guardrail), or raise MOST_LINES and "
        "say why in the commit: see 'The size of the engine' in CONTRIBUTING.md"
    )


def test_few_types_are_left_open() -> None:
    found = SHAPE.open_types()
    assert len(found) <= MOST_ANY, found


def test_no_chain_of_imports_is_deep() -> None:
    for start, most in DEEPEST.items():
        chain = SHAPE.chain(start)
        assert len(chain) <= most, " -> ".join(chain)


def test_no_import_goes_round_or_up() -> None:
    """The floors are those of the page on design: ``benchmarks.shape`` names them."""
    assert not SHAPE.circles
    assert not SHAPE.arrows_up()


def test_each_module_of_the_core_has_a_file_of_tests() -> None:
    """By its name in the same place under tests, or where ``ELSEWHERE`` says."""
    tests = ROOT / "tests" / "guardrail"
    lacking = []
    for room in CORE:
        place = ROOT / "guardrail" / room
        for file in [place] if place.is_file() else place.rglob("*.py"):
            module = file.relative_to(ROOT / "guardrail")
            usual = module.with_name(f"test_{file.name}")
            named = ELSEWHERE.get(module.as_posix())
            if file.name == "__init__.py":
                continue
            assert not (named and (tests / usual).exists()), f"{module} is no longer elsewhere"
            if not (tests / (named or usual)).exists():
                lacking.append(f"{module}: write tests/guardrail/{usual}")
    assert not lacking, "\n".join(sorted(lacking))
