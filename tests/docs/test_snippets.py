"""Every snippet of every page runs as pasted, in the order of its page.

Each Python block runs by itself in a folder per page; blocks with a title are files in it. Commands
run as they are, except those of two lists, each entry with its reason. Chat models are a local
server that speaks OpenAI's protocol. A text block after a Python block is its output; lines after a
command are what a terminal shows.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.scale import write_people
from chains.gateway import GatewaySettings
from guardrail import Guardrail, GuardrailConfig, Triple
from guardrail.config import gateway_section
from guardrail.core.plugins import Kind
from kg import load_profile, open_graphs
from tests.chains.fake_openai import FakeOpenAI, served
from tests.docs import spark
from tests.docs.pages import ALL_PAGES, ROOT, Block, blocks, inline_code
from tests.guardrail.core.documents import made
from tests.guardrail.evaluation.plugin import LOADING
from tests.program import on_terminal, python

SKIPPED = {
    "pip": "installs; the wheel is built and installed by tests/packaging",
    "python3": "makes an environment",
    ".": "changes the reader's shell",
    "curl": "asks a server; test_gateway_page sends it these bodies and compares the replies",
    "docker": "needs a daemon; test_deployment reads the files that it builds and starts",
    "helm": "needs a cluster; test_helm reads the chart and holds its parts against each other",
    "kubectl": "needs a cluster",
    "install": "writes to /etc; test_deployment reads the files",
    "cp": "writes to /etc; test_deployment reads the files",
    "systemctl": "starts a service; test_deployment has systemd read it",
}
"""First words of commands that are not run, with the reason."""
LOOKED_UP = {
    r"^guardrail serve ": "serves for ever",
    r"-m benchmarks": "takes minutes or hours",
    r"[ :][A-Z]{3,}(/| |$)": "contains a placeholder for the reader's data",
    r"s3://": "needs a store of the reader's, and a cluster",
}
"""Patterns of commands whose options are only looked up, with the reason."""
SHOWN = {"csv", "text", "json", "turtle", "yaml"}
"""Languages of blocks that are shown, or files to be read."""
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@pytest.fixture(scope="module")
def endpoint():
    with served(FakeOpenAI().app) as address:
        yield {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "k"}


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.stem)
def test_the_page_s_snippets_run(page, endpoint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, module in spark.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, value in endpoint.items():
        monkeypatch.setenv(name, value)
    lay_out(tmp_path)
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
            for command, shown in commands(block):
                run(command, tmp_path, shown)
        elif block.language == "toml":
            read_settings(block)
        elif block.language == "json":
            for line in block.text.splitlines() if block.title.endswith("l") else [block.text]:
                json.loads(line)
        else:
            assert block.language in SHOWN, f"{page.name}:{block.line}: nothing runs this"


def lay_out(folder: Path) -> None:
    """Write what the pages take for granted: texts, tables, dumps, answers and a log."""
    (folder / "handbook.txt").write_text("The Fjell 3 costs 2,490 euros.\n", "utf-8")
    (folder / "handbook.pdf").write_bytes(made.pdf())
    labelled = [f"It costs {n}.,It costs {n + n % 2}.,{n % 2 == 0}" for n in range(24)]
    (folder / "my.csv").write_text("\n".join(["answer,evidence,label", *labelled]), "utf-8")
    write_people(folder / "facts.nt.gz", 60)
    write_people(folder / "latest-truthy.nt.gz", 120)
    (folder / "people.csv").write_text("id,name,office\n1,Ann Berg,oslo\n", "utf-8")
    (folder / "answers").mkdir()
    asked = {"question": ["Where was Ana5 Smith0 born?"], "answer": ["Ana5 Smith0 is a poet."]}
    rows = pa.table({"id": ["a"]} | asked)
    pq.write_table(rows, folder / "answers" / "november.parquet")
    config = {"judge": "none", "graph": "none", "log": folder / "scores.sqlite"}
    with Guardrail(GuardrailConfig.model_validate(config)) as guard:
        guard.check("What does it cost?", "It costs 3.", evidence=[Triple("it", "price", "4")])


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a block, each on one line, with what is shown below it."""
    found = _COMMAND.findall(block.text.replace("\\\n", " "))
    return [(command.partition(" #")[0].rstrip(), shown) for command, shown in found]


def program_of(words: list[str]) -> str:
    """The name of the program that a command starts, behind variables that it sets."""
    return next(word for word in words if "=" not in word).rpartition("/")[2]


def run(command: str, folder: Path, shown: str = "") -> None:
    """Run a command, or look its options up where that is all that can be done here.

    A file that ``echo`` writes is written; of ``make`` is asked what it would do. What the page
    shows, a terminal of 80 columns shows too.
    """
    words = shlex.split(command)
    program = program_of(words)
    if program in SKIPPED:
        return
    if program == "echo":
        subprocess.run(command, shell=True, check=True, cwd=folder)
    elif program == "make":
        done = dry_run(words)
        for value in (word.partition("=")[2] for word in words if "=" in word):
            assert value in done, command
    elif any(re.search(pattern, command) for pattern in LOOKED_UP):
        look_up(command)
    elif program == "pytest":
        finished(["-m", program, *LOADING, *words[1:]], folder)
    else:
        assert program == "guardrail", f"nothing runs {command}"
        arguments = ["-m", "guardrail", *words[1:]]
        if shown:
            assert on_a_terminal(arguments, folder) == shown, command
        else:
            finished(arguments, folder)


def look_up(command: str) -> None:
    """Look up the options of a command in its help; ``[…]`` marks optional ones."""
    words = [word.strip("[]") for word in shlex.split(command) if "=" not in word or word[0] == "-"]
    if words[0] == "guardrail":
        words[:1] = ["python", "-m", "guardrail"]
    assert words[:2] == ["python", "-m"], command
    first = next((place for place, word in enumerate(words) if place > 1 and word[0] == "-"), None)
    shown = help_of(tuple(words[2:first]))
    for option in (word.partition("=")[0] for word in words[first:] if first and word[0] == "-"):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", shown), f"{command}: no {option}"


@cache
def help_of(program: tuple[str, ...]) -> str:
    """What ``--help`` prints of a module and its command, on lines wide enough for every name."""
    return finished(["-m", *program, "--help"], ROOT, COLUMNS="200")


def finished(arguments: list[str], folder: Path, **environment: str) -> str:
    """What a program in Python printed that ended well."""
    done = python(*arguments, cwd=folder, env={**os.environ, **environment})
    assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
    return done.stdout


def dry_run(words: list[str]) -> str:
    """What a command of ``make`` would run."""
    return subprocess.run(
        [*words, "--dry-run"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.stem)
def test_commands_in_prose_are_known(page):
    for code in inline_code(page):
        if code.startswith(("guardrail ", "python -m ")):
            look_up(code)
        elif code.startswith("python docs/"):
            assert (ROOT / code.split()[1]).exists(), code
        elif code.startswith("make "):
            dry_run(shlex.split(code))


def on_a_terminal(arguments: list[str], folder: Path) -> str:
    """What a program shows on a terminal, without colours."""
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    seen = on_terminal(*arguments, cwd=folder, env=environment)
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]|\r", "", seen)


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
        settings = GuardrailConfig.from_toml(path, environ={})
        GatewaySettings.from_env(section=gateway_section(path), environ={})
        if settings.graph.location and "http" in settings.graph.location:
            open_graphs(settings.graph.location).close()
