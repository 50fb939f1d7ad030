"""What is installed by its hashes is what was tested, and nothing is left out."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.wheels import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)


def pins(text):
    return {canonicalize_name(name): version for name, version in PIN.findall(text)}


def test_the_makefile_and_the_image_name_locks_that_are_there():
    named = {
        name
        for path in ("Makefile", "deploy/Dockerfile")
        for name in re.findall(r"requirements/[\w-]+\.txt", (ROOT / path).read_text("utf-8"))
    }
    assert {f"requirements/{path.name}" for path in LOCKS} <= named


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_pins_what_was_tested_by_hash(lock):
    tested = pins((ROOT / "constraints.txt").read_text("utf-8"))
    text = lock.read_text("utf-8")
    assert pins(text)
    assert pins(text).items() <= tested.items()
    for entry in re.split(r"\n(?=\S)", text.strip()):
        assert PIN.match(entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
    assert "://" not in text, "a lock names no index: it is the installer's to choose"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_holds_all_that_its_extras_need(lock):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = list(project["dependencies"])
    for extra in set(lock.stem.split("-")) - {"base"}:
        needed += project["optional-dependencies"][extra]
    locked = pins(lock.read_text("utf-8"))
    for requirement in map(Requirement, needed):
        version = locked[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version, prereleases=True), requirement
    assert "torch" not in locked, "no build of torch is for every machine"
