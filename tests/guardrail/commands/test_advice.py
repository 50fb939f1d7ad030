"""Every option that a text of ours names is one, of the command that is named with it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

import chains
import guardrail
import judges
import kg
from guardrail.cli import app

OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")
COMMAND = re.compile(r"\bguardrail((?: [a-z]+)+)")
OF_OTHERS = {
    "--check": "sha256sum",
    "--constraint": "pip",
    "--editable": "pip",
    "--force-reinstall": "pip",
    "--guardrail-config": "pytest",
    "--folds": "training.sck_weights",
    "--guardrail-html": "pytest",
    "--out": "training.sck_weights",
}


def commands(group, name: str = "") -> Iterator:
    """All commands below one, by their words; typer's groups are click's, or its own copy's."""
    yield name, group
    if hasattr(group, "list_commands"):
        context = group.context_class(group)
        for word in group.list_commands(context):
            yield from commands(group.get_command(context, word), f"{name} {word}".strip())


OPTIONS = {
    name: {"--help", *(option for item in command.params for option in item.opts)}
    | {option for item in command.params for option in item.secondary_opts}
    for name, command in commands(typer.main.get_command(app))
}
ALL = set().union(*OPTIONS.values())


def unknown(text: str) -> list[str]:
    """The options that a text names and no command has, or not the one named before it."""
    reported = []
    for match in OPTION.finditer(text):
        option = match.group()
        before = [*COMMAND.finditer(text, 0, match.start())]
        words = before[-1][1].split() if before else []
        while words and " ".join(words) not in OPTIONS:
            words.pop()
        near = before and not re.search(r"[.;:]\s", text[before[-1].end() : match.start()])
        known = OPTIONS[" ".join(words)] if words and near else ALL
        if option not in known and option not in OF_OTHERS:
            reported.append(f"{' '.join(['guardrail', *words]) if words and near else ''} {option}")
    return reported


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """The texts in the code of a package, with their places; pieces of an f-string are one."""
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        inside = {id(part) for node in joined for part in node.values}
        for node in joined:
            parts = [p.value if isinstance(p, ast.Constant) else "…" for p in node.values]
            yield f"{path.name}:{node.lineno}", "".join(map(str, parts))
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and id(node) not in inside:
                yield f"{path.name}:{node.lineno}", text


@pytest.mark.parametrize("package", [guardrail, kg, judges, chains], ids=lambda item: item.__name__)
def test_an_option_that_is_advised_exists(package) -> None:
    folder = Path(package.__file__).parent
    assert [
        (place, *reported) for place, text in texts(folder) if (reported := unknown(text))
    ] == []


def test_one_that_does_not_would_be_seen() -> None:
    assert unknown("run: guardrail kg load data.csv --subject name") == []
    assert unknown("run: guardrail kg load data.csv --subjects name") == [
        "guardrail kg load --subjects"
    ]
    assert unknown("run: guardrail doctor --upstream URL") == ["guardrail doctor --upstream"]
    assert unknown("name it with --no-such-option") == [" --no-such-option"]
