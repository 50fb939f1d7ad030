"""HTML and DOCX as Markdown: what a reader sees of them, without the frame of a page."""

from __future__ import annotations

import io
import zipfile
from typing import Final

from guardrail.core.documents.own_process import in_own_process
from guardrail.core.errors import InputError, MissingExtraError

__all__ = ["docx_pages", "html_pages", "markdown_of_docx", "markdown_of_html"]

MAX_UNPACKED: Final = 256 * 1024 * 1024
"""Most bytes that a DOCX file may unpack to."""
MAX_SECONDS: Final = 30
"""Most time for one document; 200 KB can be written that take Python's reader of HTML as long."""
UNSEEN: Final = "script, style, template, noscript, nav, header, footer, aside, form, svg, iframe"
"""Elements that are no text of the document (CSS selector)."""


def markdown_of_html(data: bytes, name: str) -> str:
    """The text of a page, with headings, lists and tables; that of its main part where it has one.

    Args:
        data: The page.
        name: Its name, for errors.

    Raises:
        InputError: Its elements are nested too deep, or it takes more than ``MAX_SECONDS``.
        MissingExtraError: The extra ``documents`` is not installed.
        OverloadedError: Others are read for as long.
    """
    try:
        import bs4  # noqa: F401
        import markdownify  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("markdownify", "documents") from error
    return in_own_process(html_pages, data, name, MAX_SECONDS)[0]


def markdown_of_docx(data: bytes, name: str) -> str:
    """The text of a Word document, with headings, lists and tables; images are left out.

    Args:
        data: The file's bytes.
        name: Its name, for errors.

    Raises:
        InputError: It is no such document, unpacks to more than ``MAX_UNPACKED``, or takes more
            than ``MAX_SECONDS``.
        MissingExtraError: The extra ``documents`` is not installed.
        OverloadedError: Others are read for as long.
    """
    try:
        import mammoth  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("mammoth", "documents") from error
    if _unpacked(data) > MAX_UNPACKED:
        raise InputError(f"{name} unpacks to more than {MAX_UNPACKED // 1024**2} MB; split it")
    return in_own_process(docx_pages, data, name, MAX_SECONDS)[0]


def html_pages(data: bytes | str) -> list[str]:
    """A page of HTML as Markdown, read here and now; ``markdown_of_html`` tells the file's name."""
    from bs4 import BeautifulSoup
    from markdownify import ATX, MarkdownConverter

    converter = MarkdownConverter(
        heading_style=ATX,
        strip=["a", "img"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
        table_infer_header=True,
    )
    try:
        soup = BeautifulSoup(data, "html.parser")
        for element in soup.select(UNSEEN):
            element.decompose()
        body = soup.find("main") or soup.find("article") or soup.body or soup
        return [str(converter.convert_soup(body))]
    except RecursionError as error:
        raise InputError("has elements that are nested too deep") from error


def docx_pages(data: bytes) -> list[str]:
    """A Word document as Markdown, read here and now; see ``markdown_of_docx``."""
    import mammoth

    try:
        images = mammoth.images.img_element(lambda image: {})
        html = mammoth.convert_to_html(io.BytesIO(data), convert_image=images).value
    except Exception as error:  # damaged XML and archives raise what their readers please
        raise InputError(f"is no Word document that can be read: {error}") from error
    return html_pages(html)


def _unpacked(data: bytes) -> int:
    """Bytes that an archive says it unpacks to; 0 of what is none, which its reader will tell."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return 0
