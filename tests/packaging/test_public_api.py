"""What ``make api`` tells of a change, on a small package with a commit before it."""

import subprocess

import pytest

from tests.packaging.public_api import breaking_changes

BEFORE = """\
class Till:
    def __exit__(self, kind, error, trace): ...
    def pay(self, amount, currency="EUR"): ...

def closing(hour): ...
def opening(hour): ...
def helper(a): ...
"""


@pytest.fixture
def shop(tmp_path):
    """A committed package that exports names of one of its modules."""

    def write(code, exports):
        package = tmp_path / "shop"
        package.mkdir(exist_ok=True)
        (package / "till.py").write_text(code)
        names = ", ".join(exports)
        (package / "__init__.py").write_text(
            f"from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n"
            f"    from shop.till import {names}\n\n__all__ = {list(exports)}\n"
        )
        return tmp_path

    write(BEFORE, ["Till", "closing", "opening"])
    for command in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first"],
    ):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    return write


def test_private_and_added_names_are_not_reported(shop):
    code = BEFORE.replace("helper(a)", "other()").replace("kind, error, trace", "*details")
    here = shop(code + "def new(): ...\n", ["Till", "closing", "opening", "new"])
    assert breaking_changes(here, "HEAD", ["shop"]) == []


def test_a_removed_name_or_parameter_is_reported_under_its_public_name(shop):
    code = BEFORE.replace(', currency="EUR"', "")
    assert breaking_changes(shop(code, ["Till", "closing"]), "HEAD", ["shop"]) == [
        ("Till", "- `Till.pay(currency)`: *Parameter was removed*"),
        ("opening", "- `opening`: *Public object was removed*"),
    ]
