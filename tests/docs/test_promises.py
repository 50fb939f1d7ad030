"""Each promise of the pages on security names a test, and the test is there."""

import ast
import re

import pytest

from tests.docs.pages import ROOT

PAGES = (ROOT / "SECURITY.md", ROOT / "docs" / "security.md")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
FILE = re.compile(r"`tests/[^`]*`")


def promises(page):
    """The rows of the page's tables, without their heads."""
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [row for row in rows if not row.startswith("| promise |")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_promise_names_a_test_that_is_there(page):
    assert promises(page)
    for row in promises(page):
        named = NAMED.findall(row)
        assert named, row
        assert len(named) == len(FILE.findall(row)), f"a file alone holds no promise: {row}"
        for path, name in named:
            tree = ast.parse((ROOT / path).read_text("utf-8"))
            there = {
                node.name
                for node in tree.body
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            }
            assert name in there, row
