"""PDF as Markdown, page by page: headings by the size of their letters, tables by their lines."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from guardrail.core.documents.markdown import has_head, markdown_table, own_head
from guardrail.core.errors import InputError

if TYPE_CHECKING:
    from pdfplumber.page import Page as Plumbed
    from pdfplumber.table import Table


class _Grid(NamedTuple):
    """A table: its rows, the edges of its columns, and whether its first row alone is bold."""

    rows: list[list[str]]
    edges: tuple[float, ...]
    bold: bool


class _Block(NamedTuple):
    """A line or table of a page: its Markdown, and where it stands."""

    text: str
    top: float
    bottom: float
    kind: str
    grid: _Grid | None = None


def pages_of(data: bytes) -> list[str]:
    """The pages of a PDF as Markdown.

    Raises:
        InputError: It is damaged, locked, has more than 2,000 pages, or has no text, like
            a scan; the text continues after the file's name.
    """
    import pdfplumber
    from pdfminer.pdfdocument import PDFPasswordIncorrect

    found: list[str] = []
    try:
        with pdfplumber.open(io.BytesIO(data)) as document:
            if len(document.pages) > 2_000:
                raise InputError("has more than 2,000 pages; split it")
            usual = _usual_size(document.pages)
            before: list[_Block] = []
            head: list[str] | None = None
            for page in document.pages:
                blocks = _blocks(page, usual)
                page.close()
                goes_on = _goes_on(before, blocks)
                placed = []
                for place, block in enumerate(blocks):
                    if block.grid is not None:
                        text, head = _table(block.grid, head, goes_on == place)
                        block = block._replace(text=text)
                    placed.append(block)
                found.append("\n".join(_lines(placed)))
                before = blocks
    except (InputError, MemoryError):
        raise
    except Exception as error:  # damaged files raise any error
        locked = any(isinstance(e, PDFPasswordIncorrect) for e in (error, *error.args))
        why = "it is locked; unlock it" if locked else str(error) or type(error).__name__
        raise InputError(f"is no PDF that can be read: {why}") from error
    if not any(text.strip() for text in found):
        raise InputError("has no text; of a scan make one by OCR first")
    return found


def _usual_size(pages: Sequence[Plumbed]) -> float:
    """The size of most letters of the first pages, in points."""
    sizes = Counter(round(char["size"], 1) for page in pages[:20] for char in page.chars)
    return float(sizes.most_common(1)[0][0]) if sizes else 0.0


def _blocks(page: Plumbed, usual: float) -> list[_Block]:
    """The lines and tables of a page, from its top."""
    tables = page.find_tables()
    blocks = [_Block("", t.bbox[1], t.bbox[3], "table", _grid(page, t)) for t in tables]
    boxes = [table.bbox for table in tables]
    rest = page.filter(lambda item: not any(_within(item, box) for box in boxes))
    blocks += [_line(line, usual) for line in rest.extract_text_lines(strip=True)]
    return sorted(blocks, key=lambda item: item.top)


def _goes_on(before: Sequence[_Block], blocks: Sequence[_Block]) -> int | None:
    """The place of a table continued from the previous page, with only the frame in between.

    The frame is the lines that both pages share, apart from their numbers.
    """
    above, tables = (
        [(place, block.grid) for place, block in enumerate(page) if block.grid is not None]
        for page in (before, blocks)
    )
    if not tables or not above:
        return None
    (end, last), (start, first) = above[-1], tables[0]
    pairs = zip(last.edges, first.edges, strict=False)  # Columns within two points are the same
    aligned = len(last.edges) == len(first.edges) and all(abs(a - b) <= 2.0 for a, b in pairs)
    frames = [{re.sub(r"\d+", "", block.text) for block in page} for page in (before, blocks)]
    between = (*before[end + 1 :], *blocks[:start])
    framed = all(re.sub(r"\d+", "", block.text) in frames[0] & frames[1] for block in between)
    return start if aligned and framed else None


def _lines(blocks: Iterable[_Block]) -> Iterator[str]:
    """The lines of a page as Markdown, an empty one between paragraphs."""
    before: _Block | None = None
    paragraph = ""
    for block in blocks:
        # A gap of more than this share of a line's height begins a paragraph
        gap = before is not None and block.top - before.bottom > 0.8 * (block.bottom - block.top)
        plain = block.kind == before.kind == "text" if before is not None else False
        if (
            plain
            and not gap
            and not re.match(r"[-*+•‣◦–]\s|\(?\d{1,3}[.)]\s", block.text)
            and paragraph[-1:] != ":"
        ):
            hyphen = paragraph.endswith("-") and block.text[:1].islower()
            paragraph = paragraph[:-1] + block.text if hyphen else f"{paragraph} {block.text}"
        else:
            if paragraph:
                yield paragraph
            if before is not None and (gap or not plain):
                yield ""
            paragraph = block.text
        before = block
    if paragraph:
        yield paragraph


def _line(line: dict[str, Any], usual: float) -> _Block:
    text = " ".join(line["text"].split())
    sizes = Counter(round(char["size"], 1) for char in line["chars"])
    size = sizes.most_common(1)[0][0]
    bold = all("bold" in char["fontname"].lower() for char in line["chars"] if char["text"].strip())
    short = len(text.split()) <= 14 and any(sign.isalpha() for sign in text)
    heading = short and text[-1:] not in ".:;,!?" and (size > 1.15 * usual or bold)
    return _Block(
        f"## {text}" if heading else text,
        line["top"],
        line["bottom"],
        "heading" if heading else "text",
    )


def _grid(page: Plumbed, table: Table) -> _Grid:
    rows = [[" ".join((cell or "").split()) for cell in row] for row in table.extract()]
    edges = {round(x) for cell in table.cells for x in (cell[0], cell[2])}
    bold = [
        all("bold" in char["fontname"].lower() for char in page.chars if _within(char, row.bbox))
        for row in table.rows[:2]
    ]
    return _Grid(rows, tuple(sorted(edges)), bold == [True, False])


def _table(grid: _Grid, head: list[str] | None, goes_on: bool) -> tuple[str, list[str] | None]:
    """A table as Markdown, with its head, which one that goes on has from the page before.

    Where two readings are open, it has none.
    """
    rows = grid.rows
    if goes_on and not grid.bold and rows[:1] != [head]:
        head = None if own_head(rows) else head
        return markdown_table(rows, head), head
    if grid.bold or has_head(rows):
        return markdown_table(rows[1:], rows[0]), rows[0]
    return markdown_table(rows, None), None


def _within(item: dict[str, Any], box: tuple[float, float, float, float]) -> bool:
    middle = (item["x0"] + item["x1"]) / 2, (item["top"] + item["bottom"]) / 2
    return bool(box[0] <= middle[0] <= box[2] and box[1] <= middle[1] <= box[3])
