"""PDF as Markdown, page by page: headings by the size of their letters, tables by their lines."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from guardrail.core.documents.own_process import in_own_process
from guardrail.core.documents.sections import Page
from guardrail.core.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from pdfplumber.page import Page as Plumbed

__all__ = ["pages_of", "pdf_pages"]

MAX_PAGES: Final = 2_000
MAX_SECONDS: Final = 120
LARGER: Final = 1.15
"""Letters larger than the usual ones by this factor make a heading."""
HEADING_WORDS: Final = 14
"""Most words of a heading."""
APART: Final = 0.8
"""A gap of more than this share of a line's height begins a paragraph."""
LIST_MARK: Final = re.compile(r"[-*+•‣◦–]\s|\(?\d{1,3}[.)]\s")


class _Block(NamedTuple):
    """A line or table of a page: its Markdown, and where it stands."""

    text: str
    top: float
    bottom: float
    kind: str


def pdf_pages(data: bytes, name: str) -> list[Page]:
    """The pages of a PDF.

    Args:
        data: The file's bytes.
        name: Its name, for errors.

    Raises:
        InputError: It is damaged, locked, has more than ``MAX_PAGES`` pages, takes more memory
            than there is for one or more than ``MAX_SECONDS``, or has no text, as a scan has none.
        MissingExtraError: The extra ``documents`` is not installed.
        OverloadedError: Others are read for as long.
    """
    try:
        import pdfplumber  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("pdfplumber", "documents") from error
    pages = in_own_process(pages_of, data, name, MAX_SECONDS)
    return [Page(text, number) for number, text in enumerate(pages, start=1)]


def pages_of(data: bytes) -> list[str]:
    """The pages as Markdown, read here and now; see ``pdf_pages``, which tells the file's name."""
    import pdfplumber
    from pdfminer.pdfdocument import PDFPasswordIncorrect

    found: list[str] = []
    try:
        with pdfplumber.open(io.BytesIO(data)) as document:
            if len(document.pages) > MAX_PAGES:
                raise InputError(f"has more than {MAX_PAGES:,} pages; split it")
            usual = _usual_size(document.pages)
            for page in document.pages:
                found.append("\n".join(_lines(page, usual)))
                page.close()
    except (InputError, MemoryError):
        raise
    except Exception as error:  # damaged files raise whatever their reader stumbles over
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


def _lines(page: Plumbed, usual: float) -> Iterator[str]:
    """The lines of a page as Markdown, an empty one between paragraphs."""
    tables = page.find_tables()
    blocks = [_Block(_table(t.extract()), t.bbox[1], t.bbox[3], "table") for t in tables]
    boxes = [table.bbox for table in tables]
    rest = page.filter(lambda item: not any(_within(item, box) for box in boxes))
    blocks += [_line(line, usual) for line in rest.extract_text_lines(strip=True)]
    before: _Block | None = None
    paragraph = ""
    for block in sorted(blocks, key=lambda item: item.top):
        gap = before is not None and block.top - before.bottom > APART * (block.bottom - block.top)
        plain = block.kind == before.kind == "text" if before is not None else False
        if plain and not gap and not LIST_MARK.match(block.text) and paragraph[-1:] != ":":
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
    short = len(text.split()) <= HEADING_WORDS and any(sign.isalpha() for sign in text)
    heading = short and text[-1:] not in ".:;,!?" and (size > LARGER * usual or bold)
    return _Block(
        f"## {text}" if heading else text,
        line["top"],
        line["bottom"],
        "heading" if heading else "text",
    )


def _table(rows: Sequence[Sequence[str | None]]) -> str:
    """The rows of a table as Markdown, the first as its head."""
    cells = [[" ".join((cell or "").split()).replace("|", r"\|") for cell in row] for row in rows]
    if not cells:
        return ""
    lines = [f"| {' | '.join(row)} |" for row in cells]
    rule = "|" + " --- |" * len(cells[0])
    return "\n".join([lines[0], rule, *lines[1:]])


def _within(item: dict[str, Any], box: tuple[float, float, float, float]) -> bool:
    middle = (item["x0"] + item["x1"]) / 2, (item["top"] + item["bottom"]) / 2
    return bool(box[0] <= middle[0] <= box[2] and box[1] <= middle[1] <= box[3])
