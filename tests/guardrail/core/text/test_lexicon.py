"""Words are data: each list of English words lies in a file that says what it is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import chains
import guardrail.core.text.lexicon
import judges
import kg
from guardrail.core.text.lexicon import lexicon, lexicon_set

FOLDER = Path(guardrail.core.text.lexicon.__file__).parent
FILES = sorted(FOLDER.glob("*.json"))
PACKAGES = [Path(package.__file__).parent for package in (guardrail, kg, judges, chains)]
FEW = 3
"""So many English words side by side in one literal are a list of words."""
ALTERNATION = re.compile(r"[\w' -]+(?:\|[\w' -]+){2,}")


def english() -> frozenset[str]:
    """Words that code has no reason to hold side by side: closed classes, calendar, kinship."""
    files = ("function_words", "calendar", "names")
    lists = [value for name in files for value in lexicon(name).values() if isinstance(value, list)]
    lists += [row["words"] for row in lexicon("relations")["relations"]]
    lists += [item for name, item in lexicon("intent_words").items() if name != "about"]
    return frozenset(word for item in lists for word in item)


def literals(tree: ast.AST) -> Iterator[tuple[int, list[str]]]:
    """Line and strings of each list, set, tuple, dictionary, split string and alternation."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Set | ast.Tuple | ast.Dict):
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            found = [part.value for part in parts if isinstance(part, ast.Constant)]
            yield node.lineno, [text for text in found if isinstance(text, str)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for text in ALTERNATION.findall(node.value):
                yield node.lineno, text.split("|")


def word_lists(folder: Path) -> list[str]:
    """Where the modules of a folder hold lists of English words."""
    known = english()
    return [
        f"{path.relative_to(folder.parent)}:{line}: {sorted(words)}"
        for path in sorted(folder.rglob("*.py"))
        if "training" not in path.parts
        for line, strings in literals(ast.parse(path.read_text(encoding="utf-8")))
        if len(words := {string.lower() for string in strings} & known) >= FEW
    ]


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_code_has_no_list_of_english_words(folder: Path) -> None:
    assert word_lists(folder) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_what_it_is_for(path: Path) -> None:
    about = lexicon(path.stem)["about"]
    assert about
    for name, value in lexicon(path.stem).items():
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            assert len(value) == len(lexicon_set(path.stem, name)), f"{name} has a word twice"


def test_relations_name_only_what_the_table_has() -> None:
    table = lexicon("relations")
    names = [row["name"] for row in table["relations"]]
    words = [word for row in table["relations"] for word in row["words"]]
    assert len(set(names)) == len(names)
    assert len(set(words)) == len(words)
    for row in table["relations"]:
        assert {hop for path in row["paths"] for hop in path} <= set(table["hops"])
        assert row.get("fallback") in {None, *names}
