"""The workflow to copy: its commands run, in a repository laid out as it says."""

import shlex
import subprocess
from pathlib import Path

import yaml

from tests.docs.pages import ROOT, blocks
from tests.guardrail.evaluation.plugin import LOADING
from tests.program import python

WORKFLOW = ROOT / "examples" / "github_workflow.yaml"
PROGRAMS = {"guardrail": ("guardrail",), "pytest": ("pytest", *LOADING)}


def steps() -> list[dict[str, object]]:
    workflow = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    assert workflow[True] == {"pull_request": None, "push": {"branches": ["main"]}}  # YAML's "on"
    (job,) = workflow["jobs"].values()
    return list(job["steps"])


def test_its_commands_run(tmp_path: Path) -> None:
    for block in blocks(ROOT / "docs" / "testing.md"):
        if block.title == "answers.jsonl":
            (tmp_path / block.title).write_text(block.text, "utf-8")
        elif block.title == "test_bot.py":
            (tmp_path / "tests").mkdir()
            (tmp_path / "tests" / block.title).write_text(block.text, "utf-8")
    commands = [shlex.split(str(step["run"])) for step in steps() if "run" in step]
    assert [words[0] for words in commands] == ["pip", "guardrail", "pytest", "cp"]
    for words in commands[1:]:
        program = PROGRAMS.get(words[0])
        if program is None:
            subprocess.run(words, cwd=tmp_path, check=True)
            continue
        done = python("-m", *program, *words[1:], cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
