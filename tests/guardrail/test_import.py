import subprocess
import sys
from pathlib import Path

import guardrail

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
    runs = [run(code).stdout.split("\n")[:2] for _ in range(3)]
    assert min(float(seconds) for seconds, _ in runs) < 0.3
    assert {loaded for _, loaded in runs} == {"[]"}


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
