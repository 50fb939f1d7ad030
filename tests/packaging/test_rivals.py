"""Another distribution that has a package of our name, installed by pip before and after ours."""

import base64
import hashlib
import shutil
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.packaging.wheels import built, pip

LARGE = ("*.onnx", "*.nt.gz", "*.json", "*.jsonl", "*.bin")
"""What takes long to pack and is not imported: weights, the people graph, tables of words."""


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our wheel."""
    folder = tmp_path_factory.mktemp("ours")
    return built(folder / "source", folder / "wheel", without=LARGE)


def rival(folder: Path, name: str, files: dict[str, bytes]) -> Path:
    """A wheel of another distribution."""
    info = f"{name}-1.0.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={digest(data)},{len(data)}" for path, data in files.items()]
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as packed:
        for path, data in files.items():
            packed.writestr(path, data)
        packed.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,"]))
    return wheel


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


class Environment:
    """An environment of its own, with nothing in it but what is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, with_pip=False)
        self.python = next(
            path for path in (folder / "bin/python", folder / "Scripts/python.exe") if path.exists()
        )

    def install(self, wheel: Path, *options: str) -> None:
        options = ("--no-index", "--no-deps", "--no-compile", *options)
        pip("--python", self.python, "install", *options, wheel)

    def uninstall(self, name: str) -> None:
        pip("--python", self.python, "uninstall", "--yes", name)

    def first_import(self, code: str = "import guardrail") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, "-I", "-c", code],
            capture_output=True, text=True, check=False, cwd=self.folder,
        )  # fmt: skip


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    yield Environment(tmp_path / "environment")
    shutil.rmtree(tmp_path / "environment")


JUDGES = {"judges/__init__.py": b"VERDICT = 'guilty'\n", "judges/court.py": b""}


def test_alone_nothing_is_said(environment, ours, tmp_path):
    environment.install(ours)
    environment.install(rival(tmp_path, "harmless", {"harmless/judges.py": b""}))
    done = environment.first_import()
    assert (done.returncode, done.stderr) == (0, "")


def test_a_rival_installed_after_ours(environment, ours, tmp_path):
    environment.install(ours)
    environment.install(rival(tmp_path, "judges", JUDGES))
    done = environment.first_import()
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "ImportError: the distribution 'judges' wrote over the package 'judges' of kg-guardrail; "
        "run: pip uninstall judges && pip install --force-reinstall kg-guardrail, or keep the two "
        "in separate environments."
    )
    environment.uninstall("judges")
    environment.install(ours, "--force-reinstall")
    done = environment.first_import()
    assert (done.returncode, done.stderr) == (0, "")


def test_a_rival_installed_before_ours(environment, ours, tmp_path):
    environment.install(rival(tmp_path, "judges", JUDGES))
    environment.install(ours)
    done = environment.first_import()
    assert done.returncode == 0
    (sentence,) = [line for line in done.stderr.splitlines() if "RuntimeWarning" in line]
    assert "kg-guardrail wrote over the package 'judges' of the distribution 'judges'" in sentence
    assert "pip uninstall judges && pip install --force-reinstall kg-guardrail" in sentence


def test_the_rival_s_removal_took_our_files(environment, ours, tmp_path):
    environment.install(rival(tmp_path, "rival", {"chains/__init__.py": b""}))
    environment.install(ours)
    environment.uninstall("rival")
    done = environment.first_import()
    assert done.stderr.strip().splitlines()[-1] == (
        "ImportError: the package 'chains' that kg-guardrail needs is missing instead of being "
        "its own; run: pip install --force-reinstall kg-guardrail."
    )


def test_a_rival_in_another_folder_is_named(environment, ours, tmp_path):
    environment.install(ours)
    theirs = tmp_path / "theirs"
    wheel = rival(tmp_path, "kg_rival", {"kg/__init__.py": b""})
    pip("install", "--no-index", "--no-deps", "--target", theirs, wheel)
    done = environment.first_import(
        f"import sys; sys.path.insert(0, {str(theirs)!r}); import guardrail"
    )
    assert done.stderr.strip().splitlines()[-1] == (
        f"ImportError: the package 'kg' that kg-guardrail needs comes from "
        f"{theirs / 'kg'} instead of being its own; run: pip uninstall kg_rival."
    )


def test_any_of_ours_may_be_imported_first(environment, ours, tmp_path):
    """``kg`` and ``judges`` stand on guardrail's types, so the check runs for them as well."""
    environment.install(ours)
    environment.install(rival(tmp_path, "chains", {"chains/__init__.py": b""}))
    done = environment.first_import("import kg.base")
    assert "the distribution 'chains' wrote over the package 'chains'" in done.stderr
