"""The size and the shape of the package, as the source tells it."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINE = ("engine", "core/text", "evidence", "verdict")
MOST_LINES = 8_010
DEEPEST = 10


def test_the_engine_is_small() -> None:
    files = [file for room in ENGINE for file in (ROOT / "guardrail" / room).rglob("*.py")]
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in files)
    assert lines <= MOST_LINES


def test_no_chain_of_imports_is_deep() -> None:
    """Imports at the top of modules; benchmarks are no part of what runs."""
    modules = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in (ROOT / "guardrail").rglob("*.py")
        if "benchmarks" not in file.parts
    }

    @cache
    def chain(name: str) -> tuple[str, ...]:
        chains = [chain(other) for other in imported(modules[name]) if other in modules]
        return (name, *max(chains, key=len, default=()))

    def imported(file: Path) -> list[str]:
        found: list[str] = []
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.Import):
                found += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                parts = [f"{node.module}.{alias.name}" for alias in node.names]
                found += [part if part in modules else node.module for part in parts]
        return found

    deepest = max((chain(name) for name in modules), key=len)
    assert len(deepest) <= DEEPEST, " <- ".join(deepest)
