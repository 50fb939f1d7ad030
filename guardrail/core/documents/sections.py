"""Markdown cut into sections: paragraphs, each with the heading that it stands under."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ["Page", "Section", "sections_of", "shown"]

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
UNDERLINE = re.compile(r" {0,3}(?:(=+)|-{2,})[ \t]*$")
NO_HEADING = re.compile(r"[ \t]*(?:[-*+>#|=]|\d{1,9}[.)]|$)")
"""What begins a line that is no heading, though the next one underlines it."""
COMMENT_MARK = re.compile("(<!--|-->)")
CODE_INDENT = 4
BLANK_LINES = re.compile(r"\n\s*\n")
HEADING = re.compile(r"#{1,6}[ \t]+(.*)")


class Page(NamedTuple):
    """A page as Markdown; ``number`` is None of a document that has none."""

    text: str
    number: int | None = None


class Section(NamedTuple):
    """A paragraph, list or table of a document.

    Attributes:
        text: As Markdown, below the heading that it stands under.
        heading: That heading; empty where there is none.
        page: The page that it begins on, from 1; None of a document without pages.
    """

    text: str
    heading: str = ""
    page: int | None = None


def sections_of(pages: Iterable[Page]) -> Iterator[Section]:
    """Cut a document into sections.

    Lines stay, so that tables and lists can be read as such. A line that ends with a colon belongs
    to what stands below it; so does a heading, which goes on over pages.

    Args:
        pages: In order.
    """
    heading, line = "", ""
    for page in pages:
        above: list[str] = []
        for part in _parts(page.text):
            lines = part.strip("\n").rstrip().split("\n")
            headings = 0
            for indented in lines:
                first = indented.lstrip()
                code = len(indented.expandtabs(CODE_INDENT)) - len(first) >= CODE_INDENT
                found = None if code else HEADING.fullmatch(first)
                if found is None and first:
                    break
                headings += 1
                if found is None:
                    continue
                if above:  # a label or a heading directly above the next heading
                    yield Section(_below(line, above), heading, page.number)
                heading, line, above = found[1].rstrip(" \t#").strip("*_ "), first, []
            body = "\n".join(lines[headings:])
            if not body.strip():
                continue
            above.append(body)
            if body.splitlines()[-1].strip().endswith(":"):
                continue
            yield Section(_below(line, above), heading, page.number)
            above = []
        if above:
            yield Section(_below(line, above), heading, page.number)


def shown(text: str) -> str:
    """Markdown as a reader is shown it: without comments, headings marked that are underlined."""
    kept: list[str] = []
    fence, comment = "", False
    for line in text.split("\n"):
        if not comment:
            fence = _fence_after(line, fence)
        if not fence:
            line, comment = _without_comments(line, comment)
        under = None if fence else UNDERLINE.match(line)
        alone = kept and not NO_HEADING.match(kept[-1]) and (len(kept) < 2 or not kept[-2].strip())
        if under and alone:
            kept[-1] = f"{'#' if under[1] else '##'} {kept[-1].strip()}"
            line = ""
        kept.append(line)
    return text if comment else "\n".join(kept)


def _without_comments(line: str, inside: bool) -> tuple[str, bool]:
    """A line outside of comments, and whether one goes on behind it."""
    kept: list[str] = []
    ticks = 0
    for part in COMMENT_MARK.split(line):
        begins = part == "<!--" and not inside and ticks % 2 == 0  # in `code` it is text
        if not inside and not begins:
            kept.append(part)
            ticks += part.count("`")
        inside = begins or (inside and part != "-->")
    return "".join(kept), inside


def _fence_after(line: str, fence: str) -> str:
    """The signs that fence the code in which the next line stands; empty outside of code."""
    found = FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    closes = found[1].startswith(fence) and not line.strip().strip(fence[0])
    return "" if closes else fence


def _parts(text: str) -> Iterator[str]:
    """What stands between blank lines; fenced code is one part."""
    part: list[str] = []
    fence = ""
    for line in text.split("\n"):
        fence = _fence_after(line, fence)
        if fence or line.strip():
            part.append(line)
        else:
            yield "\n".join(part)
            part = []
    yield from BLANK_LINES.split("\n".join(part))


def _below(line: str, parts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, [line, *parts]))
