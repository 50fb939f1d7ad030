import ast
import subprocess
import sys
from pathlib import Path

import pytest

import guardrail
from guardrail import core

HEAVY = ("torch", "spacy", "langchain", "langchain_core", "transformers", "onnxruntime", "kg")


def run(code: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    inserted = "".join(f"sys.path.insert(0, {str(path)!r});" for path in paths)
    return subprocess.run(
        [sys.executable, "-c", f"import sys;{inserted}{code}"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_importing_is_cheap() -> None:
    code = (
        "import time; begin = time.process_time(); import guardrail;"
        "print(time.process_time() - begin);"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    seconds, loaded = run(code).stdout.split("\n")[:2]
    assert float(seconds) < 0.3
    assert loaded == "[]"


def test_every_public_name_exists() -> None:
    for name in guardrail.__all__:
        assert getattr(guardrail, name) is not None


def test_a_foreign_package_of_our_name_is_told_in_one_sentence(tmp_path: Path) -> None:
    foreign = tmp_path / "kg"
    foreign.mkdir()
    (foreign / "__init__.py").write_text("raise SystemExit('imported')")
    result = run("import guardrail", tmp_path)
    assert result.returncode == 1
    message = result.stderr.strip().split("\n")[-1]
    assert message.startswith(
        f"ImportError: the package 'kg' that kg-guardrail needs comes from {foreign}"
    )
    assert "uninstall" in message


PACKAGES = {"guardrail", "kg", "judges", "chains"}
GROUND = "guardrail.core"
"""What graphs and judges stand on; it knows nothing of what stands above it."""


def imported(path: Path) -> set[str]:
    """The modules that a file imports anywhere in it, as far as ``package.module``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = "." in node.module
            found |= {node.module if whole else f"{node.module}.{item.name}" for item in node.names}
        elif isinstance(node, ast.Import):
            found |= {item.name for item in node.names}
    return {".".join(name.split(".")[:2]) for name in found}


@pytest.mark.parametrize(
    ("package", "others"), [("kg", {"judges", "chains"}), ("judges", {"kg", "chains"})]
)
def test_graphs_and_judges_know_neither_the_engine_nor_each_other(package, others):
    root = Path(guardrail.__file__).parents[1]
    files = [
        file
        for file in (root / package).rglob("*.py")
        if "training" not in file.parts and file.name != "build_people.py"
    ]  # offline tools stand above everything
    for file in files:
        names = imported(file)
        ours = {name for name in names if name.startswith("guardrail")}
        assert ours <= {GROUND}, file
        assert not {name for name in names if name.split(".")[0] in others}, file


def test_the_ground_floor_imports_nothing_but_itself():
    for file in Path(core.__file__).parent.rglob("*.py"):
        own = {name for name in imported(file) if name.split(".")[0] in PACKAGES}
        assert own <= {GROUND}, file
