"""Fenced blocks and links of Markdown pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
ALL_PAGES = tuple(
    sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), RESULTS], key=lambda page: page.name)
)
LINKED_PAGES = (*ALL_PAGES, *sorted((ROOT / "judges").rglob("*.md")))
"""With the cards of the weights, which the pages link to."""

_FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)]*)\)")


class Block(NamedTuple):
    """A fenced block: its language, its file name, its text, and where it begins."""

    language: str
    title: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(match[1], match[2] or "", match[3], text.count("\n", 0, match.start()) + 1)
        for match in _FENCE.finditer(text)
    ]


def inline_code(page: Path) -> list[str]:
    """Code within lines of prose; of a changelog only the unreleased part, which is about now."""
    current = re.split(r"^## \d", page.read_text("utf-8"), maxsplit=1, flags=re.M)[0]
    prose = re.sub(r"^```.*?^```$", "", current, flags=re.M | re.S)
    return re.findall(r"`([^`]+)`", prose)


def links(page: Path) -> list[str]:
    """Targets of all links, code left out."""
    return _LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.S))


def anchors(page: Path) -> set[str]:
    """What ``#…`` may name, as GitHub makes it of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}
