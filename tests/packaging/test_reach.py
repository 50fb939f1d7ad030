"""Each module of the wheel is reached from a way in: the package, a command, or what pages name."""

import ast
import re
from pathlib import Path

from guardrail.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PACKAGES = ("guardrail", "chains", "judges", "kg")
WAYS_IN = (*PACKAGES, "guardrail.__main__", "guardrail.evaluation.pytest_plugin")
MODULE = re.compile(r"\b(?:guardrail|chains|judges|kg)(?:\.\w+)+")


def modules() -> dict[str, Path]:
    return {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for room in PACKAGES
        for file in (ROOT / room).rglob("*.py")
    }


def names_in(name: str, file: Path) -> set[str]:
    """Modules that a module imports anywhere, or names as ``module`` or ``module:name``."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found = {name.rpartition(".")[0]}
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.partition(":")[0]
            found |= {text, f"{package}.{text.removeprefix('.')}"}
    return found


def test_everything_in_the_wheel_is_reached() -> None:
    files = modules()
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.py")]
    documented = {name for page in pages for name in MODULE.findall(page.read_text("utf-8"))}
    commands = {f"guardrail.commands.{place.partition(':')[0]}" for place, _ in COMMANDS.values()}
    left = ({*WAYS_IN} | commands | documented) & set(files)
    reached: set[str] = set()
    while left:
        reached |= left
        left = {other for name in left for other in names_in(name, files[name])} & set(files)
        left -= reached
    assert not set(files) - reached
