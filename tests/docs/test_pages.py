"""Links and promises hold, the site builds without a warning, and generated pages are fresh."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import pytest

from chains.gateway.settings import PROTOCOL_PATHS
from guardrail.config import CheckName
from guardrail.verdict.checks import all_checks
from judges.registry import create_nli
from tests.docs.pages import ALL_PAGES, LINKED_PAGES, ROOT, anchors, links


@pytest.mark.parametrize("page", LINKED_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Into the web their form is checked; ``make links`` asks whether anything is there."""
    for link in links(page):
        assert re.fullmatch(r"\S+", link), f"{page.name}: {link!r}"
        address = urlsplit(link)
        if address.scheme:
            assert address.scheme == "https", link
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", address.netloc), link
            continue
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


def test_each_check_has_a_switch_and_a_row() -> None:
    """In the section ``[checks]`` of the settings, and in the table of the page on concepts."""
    page = (ROOT / "docs" / "concepts.md").read_text("utf-8")
    table = page.partition("check | says | about\n")[2].partition("\n\n")[0]
    named = re.findall(r"^`(\w+)` \|", table, re.MULTILINE)
    switches = list(get_args(CheckName))
    names = [check.name for check in all_checks()]
    assert switches == names, "CheckName in guardrail/config.py against all_checks()"
    assert named == names, "the table of checks in docs/concepts.md against all_checks()"


def test_each_protocol_has_a_row() -> None:
    page = (ROOT / "docs" / "gateway.md").read_text("utf-8")
    table = page.partition("name | path | whose\n")[2].partition("\n\n")[0]
    named = dict(re.findall(r"^`(\w+)` \| `([^`]+)` \|", table, re.MULTILINE))
    assert named == PROTOCOL_PATHS


PRESENT = [page for page in ALL_PAGES if page.name != "CHANGELOG.md"]
PRESENT.append(ROOT / "benchmarks" / "RESULTS.md")
"""Pages about the present; the changelog and the cards of weights are history too."""


@pytest.mark.parametrize("page", PRESENT, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_no_judge_that_does_not_ship(page: Path) -> None:
    """When another judge ships, its tables are printed again, and the page says so."""
    text = page.read_text("utf-8")
    shipped = create_nli("onnx").name
    versions = re.findall(r"\b[Jj]udge (\d+(?:\.\d+)+)", text)
    assert [version for version in versions if not shipped.endswith(f"-{version}")] == []
    names = re.findall(r"[\w-]+-judge-\d+(?:\.\d+)+", text)
    assert set(names) <= set(shipped.split("+"))


def test_the_quick_start_names_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = (ROOT / "docs" / "quick-start.md").read_text("utf-8")
    table = page.partition("extra |")[2].partition("\n\n")[0]
    named = set(re.findall(r"^`(\w+)` \|", table, re.MULTILINE))
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


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/security.md"])
def test_each_promise_names_an_existing_test(page: str) -> None:
    lines = (ROOT / page).read_text("utf-8").splitlines()
    rows = [line for line in lines if " | " in line and "promise | test" not in line]
    assert rows
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
        assert named, row
        assert len(named) == row.count("`tests/"), row
        for path, name in named:
            tree = ast.parse((ROOT / path).read_text("utf-8"))
            assert name in {getattr(node, "name", "") for node in tree.body}, row
