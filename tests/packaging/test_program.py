"""The program is quick to say what it can do, and says it truly."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from guardrail.cli import COMMANDS, _Commands

ROOT = Path(__file__).parents[2]


def test_help_is_quick_and_loads_no_command():
    code = (
        "import sys, runpy; sys.argv = ['guardrail', '--help']\n"
        "try: runpy.run_module('guardrail', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "late = ('pydantic', 'numpy', 'spacy', 'openai', 'rich.table')\n"
        "print([name for name in late if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert "check " in done.stdout
    assert done.stderr.strip() == "[]"
    begin = _children_seconds()
    subprocess.run([sys.executable, "-m", "guardrail", "--help"], capture_output=True, check=True)
    assert _children_seconds() - begin < 0.4


def _children_seconds() -> float:
    """Processor time of this process's children so far: others on the machine do not count."""
    used = os.times()
    return used.children_user + used.children_system


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads(name):
    assert _Commands(name="guardrail").get_command(None, name).name == name


def test_the_benchmarks_run_from_the_repository_and_say_so_elsewhere(tmp_path):
    for package in ("guardrail", "chains", "judges", "kg"):
        (tmp_path / package).symlink_to(ROOT / package)
    command = [sys.executable, "-m", "guardrail", "bench", "caqa", "--help"]
    environment = {**os.environ, "PYTHONPATH": ""}
    here = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert "build" in here.stdout
    there = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert there.returncode == 1
    assert "in the repository, not in the wheel" in there.stderr


def test_training_and_benchmarks_stay_out_of_the_wheel():
    from setuptools import find_packages

    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    found = find_packages(str(ROOT), **tools["packages"]["find"])
    assert "judges.sck" in found
    assert not [name for name in found if name.startswith(("benchmarks", "training", "tests"))]


def test_an_endpoint_s_client_and_openai_load_late():
    code = (
        "import sys, guardrail.guard, judges, chains\n"
        "from guardrail import Guardrail; Guardrail()\n"
        "print([name for name in ('openai', 'SPARQLWrapper', 'rdflib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr
