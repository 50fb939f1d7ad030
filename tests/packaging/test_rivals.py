"""Another distribution that has a package of our name, installed before and after ours."""

import base64
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("guardrail", "kg", "judges", "chains")


def install(prefix: Path, name: str, files: dict[str, bytes]) -> None:
    """What an installer does: write the files, over others of the same path, and their record."""
    rows = []
    for path, data in files.items():
        target = prefix / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}")
    info = prefix / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,"]))


def ours() -> dict[str, bytes]:
    return {
        str(path.relative_to(ROOT)): path.read_bytes()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }


RIVAL = {"judges/__init__.py": b"VERDICT = 'guilty'\n", "judges/court.py": b""}


def first_import(prefix: Path, code: str = "import guardrail") -> subprocess.CompletedProcess[str]:
    # -S: the site-packages of this environment would find the checkout; the scratch one is alone.
    return subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(prefix)!r}); {code}"],
        capture_output=True, text=True, check=False, cwd=prefix,
    )  # fmt: skip


def test_alone_nothing_is_said(tmp_path):
    install(tmp_path, "kg_guardrail", ours())
    install(tmp_path, "harmless", {"harmless/judges.py": b""})
    done = first_import(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_rival_installed_after_ours(tmp_path):
    install(tmp_path, "kg_guardrail", ours())
    install(tmp_path, "judges", RIVAL)
    done = first_import(tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "ImportError: the distribution 'judges' wrote over the package 'judges' of kg-guardrail; "
        "run: pip uninstall judges && pip install --force-reinstall kg-guardrail, or keep the two "
        "in separate environments."
    )


def test_a_rival_installed_before_ours(tmp_path):
    install(tmp_path, "judges", RIVAL)
    install(tmp_path, "kg_guardrail", ours())
    done = first_import(tmp_path)
    assert done.returncode == 0
    (sentence,) = [line for line in done.stderr.splitlines() if "RuntimeWarning" in line]
    assert "kg-guardrail wrote over the package 'judges' of the distribution 'judges'" in sentence
    assert "pip uninstall judges && pip install --force-reinstall kg-guardrail" in sentence


@pytest.mark.parametrize("first", ["kg", "judges", "chains"])
def test_the_rival_s_removal_took_our_files(tmp_path, first):
    install(tmp_path, "kg_guardrail", ours())
    (tmp_path / first / "__init__.py").unlink()
    done = first_import(tmp_path)
    assert done.stderr.strip().splitlines()[-1] == (
        f"ImportError: the package {first!r} that kg-guardrail needs is missing instead of being "
        "its own; run: pip install --force-reinstall kg-guardrail."
    )


def test_a_rival_in_another_folder_is_named(tmp_path):
    install(tmp_path / "ours", "kg_guardrail", ours())
    install(tmp_path / "theirs", "kg_rival", {"kg/__init__.py": b""})
    done = first_import(
        tmp_path / "ours", f"sys.path.insert(0, {str(tmp_path / 'theirs')!r}); import guardrail"
    )
    assert done.stderr.strip().splitlines()[-1] == (
        f"ImportError: the package 'kg' that kg-guardrail needs comes from "
        f"{tmp_path / 'theirs' / 'kg'} instead of being its own; run: pip uninstall kg_rival."
    )


def test_any_of_ours_may_be_imported_first(tmp_path):
    """``kg`` and ``judges`` stand on guardrail's types, so the check runs for them as well."""
    install(tmp_path, "kg_guardrail", ours())
    install(tmp_path, "chains", {"chains/__init__.py": b""})
    done = first_import(tmp_path, "import kg.base")
    assert "the distribution 'chains' wrote over the package 'chains'" in done.stderr
