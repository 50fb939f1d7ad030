"""The size and the shape of the package, as the source tells it."""

from pathlib import Path

from benchmarks.shape import read

ROOT = Path(__file__).parents[2]
SHAPE = read(ROOT)
ENGINE = {"engine": 1_491, "core/text": 2_661, "evidence": 1_176, "verdict": 3_609}
"""Rooms of the engine, with their lines when the bound was last looked at."""
MOST_LINES = 9_363
DEEPEST = {"guardrail.guard": 10, "chains.gateway.app": 15}
"""Modules in the longest chain of imports, of those that run as a module is imported."""
MOST_ANY = 68
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
