import subprocess
import sys
from pathlib import Path

import pytest

import guardrail
from guardrail.core.types import Category

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


def test_a_former_public_name_loads_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="guardrail.core.types"):
        assert guardrail.Category is Category
