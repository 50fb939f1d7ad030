"""Markdown cut into sections: paragraphs, each with the heading that it stands under."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ["Page", "Section", "sections_of"]

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
        for part in BLANK_LINES.split(page.text):
            lines = part.strip("\n").rstrip().split("\n")
            headings = 0
            for first in map(str.lstrip, lines):
                found = HEADING.fullmatch(first)
                if found is None and first:
                    break
                headings += 1
                if found is None:
                    continue
                if above:  # a label, or a heading, above nothing but the next heading
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


def _below(line: str, parts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, [line, *parts]))
