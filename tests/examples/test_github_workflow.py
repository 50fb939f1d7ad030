"""The workflow to copy: its commands run, in a repository laid out as it says."""

import re
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


def test_it_uploads_and_keeps_what_its_commands_write() -> None:
    told = {str(step.get("name")): step for step in steps()}
    written = " ".join(str(step.get("run", "")) for step in steps())
    upload = told["Show what was judged"]["with"]
    assert isinstance(upload, dict)
    for file in upload["path"].split():
        assert file in written
    fetched, kept = told["Fetch the last run of main"]["with"], told["Keep it for the next"]["with"]
    assert isinstance(fetched, dict)
    assert isinstance(kept, dict)
    assert fetched["path"] == kept["path"]  # the path is a part of what a cache goes by


def filled(text: object, told: dict[str, str]) -> str:
    """A text with GitHub's expressions replaced; of an ``||`` the first that is told."""

    def value(found: re.Match[str]) -> str:
        names = [name.strip().removeprefix("github.") for name in found[1].split("||")]
        return next((told[name] for name in names if name in told), "")

    return re.sub(r"\$\{\{(.*?)\}\}", value, str(text))


def fetched_by(kept: list[str], told: dict[str, str]) -> str | None:
    """What a run gets of kept caches, the oldest first: its key, else the newest by a prefix."""
    restore = next(step for step in steps() if step.get("name") == "Fetch the last run of main")
    settings = restore["with"]
    assert isinstance(settings, dict)
    own = filled(settings["key"], told)
    if own in kept:
        return own
    for prefix in filled(settings["restore-keys"], told).split():
        for key in reversed(kept):
            if key.startswith(prefix):
                return key
    return None


def kept_by(told: dict[str, str]) -> str:
    save = next(step for step in steps() if step.get("name") == "Keep it for the next")
    assert isinstance(save["with"], dict)
    return filled(save["with"]["key"], told)


def test_a_run_is_compared_with_the_commit_that_the_change_is_made_to() -> None:
    """Whether that passed or failed; and never with an earlier attempt of itself."""

    def push(sha: str, before: str, attempt: int = 1) -> dict[str, str]:
        run = {"run_id": f"1{sha}", "run_attempt": str(attempt)}
        return {"sha": sha, "event.before": before, **run}

    first, second = push("a", "0"), push("b", "a")
    assert fetched_by([], first) is None
    kept = [kept_by(first)]
    assert fetched_by(kept, second) == kept_by(first)
    kept.append(kept_by(second))
    again = push("b", "a", attempt=2)
    assert fetched_by(kept, again) == kept_by(first), "what failed must not pass by a second try"
    assert kept_by(again) not in kept, "a key is written once"
    pull = {"sha": "m", "event.pull_request.base.sha": "a", "run_id": "9", "run_attempt": "1"}
    assert fetched_by(kept, pull) == kept_by(first)
    far = pull | {"event.pull_request.base.sha": "c"}
    assert fetched_by(kept, far) == kept_by(second), "else the newest there is"


def test_what_failed_is_kept_and_what_was_not_judged_is_not() -> None:
    for step in steps():
        if step.get("name") in ("Make this run the last", "Keep it for the next"):
            assert str(step["if"]).strip("${} ").split(" && ") == [
                "!cancelled()",  # so that a step before it may have failed
                "github.ref == 'refs/heads/main'",
                "hashFiles('this-run.jsonl') != ''",
            ]
        elif step.get("name") in ("Test the chatbot", "Show what was judged"):
            assert step["if"] == "${{ !cancelled() }}"
        else:
            assert "if" not in step
