"""Fenced blocks and links of Markdown pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GUIDES = (
    "index", "quick-start", "reading-a-verdict", "own-graph", "own-passages", "policies",
    "streaming", "gateway", "score-log", "configuration", "judges", "security", "extending",
    "other-guardrails", "api",
)  # fmt: skip
PAGES = (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in GUIDES))
ALL_PAGES = tuple(
    sorted({*PAGES, *(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")}, key=lambda page: page.name)
)

_FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block: its language, the file it stands for, its text, and where it begins."""

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


def links(page: Path) -> list[str]:
    """Targets of all links, code left out."""
    return _LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.S))


def anchors(page: Path) -> set[str]:
    """What ``#…`` may name, as GitHub makes it of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}
