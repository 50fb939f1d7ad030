"""Documents as Markdown: cut into sections under their headings, and tables written as such."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

_FIGURE: Final = re.compile(r"\d[\d.,\u2019\u202f]*")


class Page(NamedTuple):
    """A page as Markdown; ``number`` is None in a document without pages."""

    text: str
    number: int | None = None


class Section(NamedTuple):
    """A paragraph, list or table of a document.

    Attributes:
        text: As Markdown, below its heading.
        heading: That heading; empty if there is none.
        page: The page that it begins on, from 1; None in a document without pages.
    """

    text: str
    heading: str = ""
    page: int | None = None


def sections_of(pages: Iterable[Page]) -> Iterator[Section]:
    """Cut the pages of a document into sections.

    Lines are kept, so that tables and lists can be read as such. A line that ends with a colon
    belongs to the text below it; so does a heading, which continues on the next page.
    """
    heading, line = "", ""
    for page in pages:
        above: list[str] = []
        for part in _parts(page.text):
            lines = part.strip("\n").rstrip().split("\n")
            headings = 0
            for indented in lines:
                first = indented.lstrip()
                code = len(indented.expandtabs(4)) - len(first) >= 4  # indented code
                found = None if code else re.fullmatch(r"#{1,6}[ \t]+(.*)", first)
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
    """Markdown as a reader sees it: without comments, and with underlined headings marked."""
    kept: list[str] = []
    fence, comment = "", False
    for line in text.split("\n"):
        if not comment:
            fence = _fence_after(line, fence)
        if not fence:
            line, comment = _without_comments(line, comment)
        under = None if fence else re.match(r" {0,3}(?:(=+)|-{2,})[ \t]*$", line)
        # Beginning of a line that is no heading, even if the next one underlines it
        alone = (
            kept
            and not re.match(r"[ \t]*(?:[-*+>#|=]|\d{1,9}[.)]|$)", kept[-1])
            and (len(kept) < 2 or not kept[-2].strip())
        )
        if under and alone:
            kept[-1] = f"{'#' if under[1] else '##'} {kept[-1].strip()}"
            line = ""
        kept.append(line)
    return text if comment else "\n".join(kept)


class Cell(NamedTuple):
    """A cell as it is written, and the columns and rows that it spans; 0 rows for all below."""

    text: str
    columns: int = 1
    rows: int = 1
    head: bool = False


def markdown_table(rows: Sequence[Sequence[str]], head: Sequence[str] | None) -> str:
    """A table as Markdown; without a head its rows as lines, so that no head is invented.

    Args:
        rows: Cells of the rows below the head.
        head: Cells of the head; None if there is none.
    """
    cells = [[_cell(text) for text in row] for row in rows]
    filled = [row for row in cells if any(row)]
    if head is None or not filled:
        lines = filled or [[_cell(text) for text in head or ()]]
        return "\n".join(", ".join(filter(None, row)).replace(r"\|", "|") for row in lines)
    columns = max(len(head), *map(len, filled))
    wide = [[*row, *[""] * (columns - len(row))] for row in ([*map(_cell, head)], *filled)]
    rendered = [f"| {' | '.join(row)} |" for row in wide]
    return "\n".join([rendered[0], "|" + " --- |" * columns, *rendered[1:]])


def has_head(rows: Sequence[Sequence[str]]) -> bool:
    """True if the first of unmarked rows may be their head.

    It is none if one of its cells has a figure (*990 euros*; no year) written like one below it
    (*890 euros*), nor if the second of two columns begins with one (*Price, 990 euros* above
    *Weight, 12 kg*).
    """
    if len(rows) < 2:
        return False
    if max(map(len, rows)) == 2 and re.match(
        r"(?!(?:19|20)\d\d\b)(?:\W{0,2}|[A-Z]{3}\s)\d", rows[0][-1].strip()
    ):
        return False
    for place, first in enumerate(rows[0]):
        below = (_shape(row[place]) for row in rows[1:] if place < len(row))
        figure = _FIGURE.search(first) and not re.fullmatch(r"(?:19|20)\d\d", first.strip())
        if figure and _shape(first) in below:
            return False
    return True


def own_head(rows: Sequence[Sequence[str]]) -> bool:
    """True if the first row has words above figures in some column, as heads do."""
    for place, first in enumerate(rows[0]):
        below = [row[place] for row in rows[1:] if place < len(row)]
        words = first.strip() and not _FIGURE.search(first)
        if words and below and all(map(_FIGURE.search, below)):
            return True
    return False


def spread(rows: Iterable[Sequence[Cell]]) -> list[list[Cell]]:
    """Rows in which a cell is repeated in all columns and rows that it spans.

    A cell that spans a whole row is written once.
    """
    found: list[list[Cell]] = []
    down: dict[int, tuple[int, Cell]] = {}
    for row in rows:
        line: list[Cell] = []
        waiting = list(reversed(row))
        while waiting or len(line) in down:
            if len(line) in down:
                left, cell = down.pop(len(line))
                if left != 1:
                    down[len(line)] = (left - 1, cell)
                line.append(cell)
                continue
            cell = waiting.pop()
            # Maximum number of columns that one cell may span (HTML, 4.9.11)
            columns = max(1, min(1_000, cell.columns))
            for place in range(columns):
                if cell.rows != 1:
                    down[len(line)] = (cell.rows - 1, cell)
                alone = len(row) == 1 and place and not cell.head
                line.append(Cell("") if alone else cell)
        found.append(line)
    return found


def _without_comments(line: str, inside: bool) -> tuple[str, bool]:
    """The part of a line outside of comments, and whether a comment continues after it."""
    kept: list[str] = []
    ticks = 0
    for part in re.split("(<!--|-->)", line):
        begins = part == "<!--" and not inside and ticks % 2 == 0  # in `code` it is text
        if not inside and not begins:
            kept.append(part)
            ticks += part.count("`")
        inside = begins or (inside and part != "-->")
    return "".join(kept), inside


def _fence_after(line: str, fence: str) -> str:
    """The fence of the code that the next line is in; empty outside of code."""
    found = re.match(r" {0,3}(`{3,}|~{3,})", line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    closes = found[1].startswith(fence) and not line.strip().strip(fence[0])
    return "" if closes else fence


def _parts(text: str) -> Iterator[str]:
    """The text between blank lines; fenced code is one part."""
    part: list[str] = []
    fence = ""
    for line in text.split("\n"):
        fence = _fence_after(line, fence)
        if fence or line.strip():
            part.append(line)
        else:
            yield "\n".join(part)
            part = []
    yield from re.split(r"\n\s*\n", "\n".join(part))


def _below(line: str, parts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, [line, *parts]))


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def _shape(text: str) -> str:
    return _FIGURE.sub("0", " ".join(text.split()))
