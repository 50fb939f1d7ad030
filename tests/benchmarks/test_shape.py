"""The shape of a small invented tree, before and after a commit."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.shape import main, read

PROJECT = """
[tool.setuptools.packages.find]
include = ["guardrail*", "kg*", "judges*", "chains*"]
exclude = ["judges.training*"]
"""
FILES = {
    "pyproject.toml": PROJECT,
    "guardrail/__init__.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from guardrail.guard import Guardrail
        """,
    "guardrail/core/__init__.py": "",
    "guardrail/core/types.py": "import json\n",
    "guardrail/guard.py": """
        from typing import TYPE_CHECKING, Any
        if TYPE_CHECKING:
            from chains.gateway import app
        else:
            import kg.base
        def later() -> Any:
            import guardrail.core.types
        """,
    "kg/__init__.py": "",
    "kg/base.py": "try:\n    from guardrail.core import types\nexcept ImportError:\n    pass\n",
    "judges/__init__.py": "",
    "judges/training/__init__.py": "import chains\nFOUR = 4\n",
    "chains/__init__.py": "",
    "chains/gateway/__init__.py": "",
    "chains/gateway/app.py": "from guardrail import Guardrail\n",
}


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        lines = text.removeprefix("\n").splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("".join(f"{line[indent:]}\n" for line in lines), "utf-8")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out(tmp_path, FILES)


def test_a_chain_holds_what_runs_with_the_import(root):
    shape = read(root)
    assert shape.chain("kg.base") == ("kg.base", "guardrail.core.types")
    assert shape.chain("guardrail.guard") == ("guardrail.guard", *shape.chain("kg.base"))
    loaded_on_use = ("chains.gateway.app", *shape.chain("guardrail.guard"))
    assert shape.chain("chains.gateway.app") == shape.deepest == loaded_on_use
    assert "judges.training" not in shape.modules


def test_an_import_cycle_is_reported_once_and_ends_a_chain(root):
    assert not read(root).circles
    lay_out(root, {"guardrail/core/types.py": "import guardrail.guard\n"})
    (circle,) = (shape := read(root)).circles
    assert set(circle) == {"guardrail.guard", "kg.base", "guardrail.core.types"}
    assert len(shape.chain("chains.gateway.app")) == 4


@pytest.mark.parametrize(
    ("file", "arrow"),
    [
        ("guardrail/core/types.py", "guardrail.policy"),
        ("kg/base.py", "judges"),
        ("judges/__init__.py", "guardrail.guard"),
        ("guardrail/guard.py", "chains.gateway"),
    ],
)
def test_an_import_of_a_floor_above_is_found_in_a_function_too(root, file, arrow):
    lay_out(root, {"guardrail/policy.py": "", "guardrail/guard.py": "import kg.base\n"})
    assert not read(root).arrows_up()
    lay_out(root, {file: f"def later():\n    import {arrow}\n"})
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert read(root).arrows_up() == [f"{name} -> {arrow}"]


def test_the_table_has_a_column_for_each_commit(root, capsys):
    git = ["git", "-C", str(root), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    guard = "import chains\n" + "a = 1\n" * 12
    lay_out(root, {"guardrail/guard.py": guard, "kg/more.py": "# one\n"})
    assert main(["--root", str(root), "--ref", "HEAD", "--where"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("| | `HEAD` | now |\n|---|--:|--:|\n")
    for row in (
        "| lines of `guardrail` | 13 | 18 |",
        "| lines of `kg` | 4 | 5 |",
        "| lines in the wheel | 18 | 24 |",
        "| depth of imports, `guardrail.guard` | 3 | 2 |",
        "| imports of a floor above | 1 | 1 |",
        "| `Any` | 1 | 0 |",
        "| pairs of places that share 6 lines or more | 0 | 1 |",
        "| the same without signatures | 0 | 1 |",
    ):
        assert row in printed.splitlines()
    assert "guardrail.guard -> chains" in printed.splitlines()
