"""Links lead somewhere, the site builds without a warning, and generated pages are fresh."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import ALL_PAGES, ROOT, anchors, links


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith(("https://", "mailto:")):
            continue
        assert not link.startswith("http://"), link
        target, _, anchor = link.partition("#")
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(found), f"{page.name}: {link}"


def test_the_configuration_reference_is_that_of_the_settings() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from configuration_reference import page
    finally:
        sys.path.pop(0)
    written = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    assert written == page(), "run: python docs/configuration_reference.py"


def test_every_setting_is_explained() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    unexplained = [line for line in text.splitlines() if line.endswith("|  |")]
    assert unexplained == []


def test_the_readme_names_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    table = (ROOT / "README.md").read_text("utf-8").partition("| extra |")[2].partition("\n\n")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert named == set(extras["optional-dependencies"]) - {"dev", "docs"}  # those of make


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "Guardrail" in (tmp_path / "api" / "index.html").read_text("utf-8")
