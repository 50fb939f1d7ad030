"""Every snippet of README and guides runs as it is pasted, in the order of its page.

Each block of Python runs by itself, as whoever pastes it alone would run it, in a folder a page;
blocks with a title are files in it.
Commands run as they are, but for those that serve, install or start containers: their options are
looked up. Chat models are a local server that speaks OpenAI's protocol. A block of text behind one
of Python is what it prints; lines behind a command are what a terminal shows.
"""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest

from guardrail import GuardrailConfig
from guardrail.plugins import Kind
from kg import load_profile
from tests.chains.fake_openai import FakeOpenAI, served
from tests.docs.pages import PAGES, ROOT, Block, blocks

INSTALLED_ELSEWHERE = {
    "pip", "make", "docker", "install", "python3", "cp", "systemctl", ".", "curl", "git", "cd",
}  # fmt: skip
"""First words of commands that change a machine; the deployment files have tests of their own."""
SHOWN = {"csv", "text", "json", "turtle", "yaml"}
"""Languages of blocks that are shown, or files to be read."""
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@pytest.fixture(scope="module")
def endpoint():
    with served(FakeOpenAI().app) as address:
        yield {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "k"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_s_snippets_run(page, endpoint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, value in endpoint.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "handbook.txt").write_text("The Fjell 3 costs 2,490 euros.\n", "utf-8")
    labelled = [f"It costs {n}.,It costs {n + n % 2}.,{n % 2 == 0}" for n in range(24)]
    (tmp_path / "my.csv").write_text("\n".join(["answer,evidence,label", *labelled]), "utf-8")
    printed = ""
    for block in blocks(page):
        if block.title:
            Path(block.title).write_text(block.text, "utf-8")
        if block.language == "python":
            code = compile("\n" * block.line + block.text, str(page), "exec")
            capsys.readouterr()
            exec(code, {"__name__": "__main__"})
            printed = capsys.readouterr().out
        elif block.language == "text" and not block.title:
            assert printed == block.text, f"{page.name}:{block.line}"
        elif block.language == "console":
            for command, shown in _COMMAND.findall(block.text):
                run(command, tmp_path, shown)
        elif block.language == "toml":
            read_settings(block)
        elif block.language == "json":
            for line in block.text.splitlines() if block.title.endswith("l") else [block.text]:
                json.loads(line)
        else:
            assert block.language in SHOWN, f"{page.name}:{block.line}: nothing runs this"


def run(command: str, folder: Path, shown: str = "") -> None:
    """Run a command of the guardrail, or look its options up where it would serve for ever.

    A file that ``echo`` writes is written. What the page shows, a terminal of 80 columns shows too.
    """
    words = shlex.split(command.partition(" #")[0])
    program = next(word for word in words if "=" not in word)
    if {program, Path(program).name} & INSTALLED_ELSEWHERE:
        return
    if program == "echo":
        subprocess.run(command, shell=True, check=True, cwd=folder)
        return
    assert Path(program).name == "guardrail", command
    arguments = [sys.executable, "-m", "guardrail", *words[words.index(program) + 1 :]]
    named: list[str] = []
    if words[1] == "serve":
        named = [word for word in words if word.startswith("--")]
        arguments = [*arguments[:4], "--help"]
    if shown:
        assert on_a_terminal(arguments, folder) == shown, command
        return
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=False, cwd=folder, timeout=200,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert not [name for name in named if name not in done.stdout], command


def on_a_terminal(arguments: list[str], folder: Path) -> str:
    """What a program shows on a terminal, without colours."""
    reader, writer = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "TERM": "xterm"}
    with subprocess.Popen(
        arguments, stdout=writer, stderr=subprocess.DEVNULL, cwd=folder, env=environment
    ):
        os.close(writer)
        seen = b""
        with suppress(OSError):  # the end of a terminal is an error
            while part := os.read(reader, 4096):
                seen += part
        os.close(reader)
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]|\r", "", seen.decode())


def read_settings(block: Block) -> None:
    """Settings and profiles are read by what reads them."""
    if block.title == "pyproject.toml":
        groups = tomllib.loads(block.text)["project"]["entry-points"]
        kinds = {f"kg_guardrail.{kind}" for kind in get_args(Kind)}
        assert set(groups) == kinds
    elif "extends" in tomllib.loads(block.text):
        assert load_profile(block.title).name
    else:
        path = Path(block.title or "page.toml")
        path.write_text(block.text, "utf-8")
        GuardrailConfig.from_toml(path, environ={})


def test_examples_of_extending_are_short():
    page = ROOT / "docs" / "extending.md"
    for block in blocks(page):
        lines = [line for line in block.text.splitlines() if line.strip()]
        assert len(lines) < 30, f"line {block.line}: {len(lines)} lines"
