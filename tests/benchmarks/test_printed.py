"""The page of results prints no number that its command does not print: commands without data."""

import re
from importlib import import_module
from itertools import dropwhile, takewhile

import pytest

from tests.docs.pages import RESULTS, ROOT

LIMITS = ROOT / "docs" / "limits.md"

TABLES = {
    "newcomer": ("| as a newcomer, three companies |", lambda rows: [row[-1:] for row in rows]),
    "evasion": ("| thirty forms, eight of each kind in each |", lambda rows: rows[-1:]),
    "opposites": ("| a rule, the same in other words, and its opposite", lambda rows: rows),
    "notations": ("| evidence | true called contradicted |", lambda rows: rows),
}
"""Each command's table on the page, by its first line, and the part of what it prints there."""


def cells(lines):
    """The cells of a table's body, row by row."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return rows[2:]


def numbers(text):
    return set(re.findall(r"\d+(?:\.\d+)?%?", text))


@pytest.mark.parametrize("command", TABLES)
def test_a_page_prints_what_its_command_prints(command, capsys):
    head, part = TABLES[command]
    page = dropwhile(lambda line: not line.startswith(head), RESULTS.read_text("utf-8").split("\n"))
    shown = cells(takewhile(lambda line: line.startswith("|"), page))
    assert import_module(f"benchmarks.{command}.__main__").main([]) == 0
    printed = cells(line for line in capsys.readouterr().out.split("\n") if line.startswith("|"))
    overall = numbers(" ".join(" ".join(row) for row in part(printed)))
    assert shown
    unprinted = {row[0]: sorted(numbers(" ".join(row[1:])) - overall) for row in shown}
    assert not any(unprinted.values()), unprinted
    if command == "opposites":
        told = re.search(r"distinguished in (\d+) %", LIMITS.read_text("utf-8"))
        assert told is not None
        assert told[1] == f"{float(printed[0][1]):.0%}".removesuffix("%")
