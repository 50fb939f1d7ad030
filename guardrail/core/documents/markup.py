"""HTML and DOCX as Markdown: what a reader sees of them, without the frame of a page."""

from __future__ import annotations

import io
import zipfile
from typing import Final

from guardrail.core.errors import InputError, MissingExtraError

__all__ = ["markdown_of_docx", "markdown_of_html"]

MAX_UNPACKED: Final = 256 * 1024 * 1024
"""Most bytes that a DOCX file may unpack to."""
UNSEEN: Final = "script, style, template, noscript, nav, header, footer, aside, form, svg, iframe"
"""Elements that are no text of the document (CSS selector)."""


def markdown_of_html(data: bytes | str, name: str) -> str:
    """The text of a page, with headings, lists and tables; that of its main part where it has one.

    Args:
        data: The page.
        name: Its name, for errors.

    Raises:
        InputError: Its elements are nested too deep.
        MissingExtraError: The extra ``documents`` is not installed.
    """
    try:
        from bs4 import BeautifulSoup
        from markdownify import ATX, MarkdownConverter
    except ImportError as error:
        raise MissingExtraError("markdownify", "documents") from error
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
        return str(converter.convert_soup(body))
    except RecursionError as error:
        raise InputError(f"{name}: its elements are nested too deep") from error


def markdown_of_docx(data: bytes, name: str) -> str:
    """The text of a Word document, with headings, lists and tables; images are left out.

    Args:
        data: The file's bytes.
        name: Its name, for errors.

    Raises:
        InputError: It is no such document, or unpacks to more than ``MAX_UNPACKED``.
        MissingExtraError: The extra ``documents`` is not installed.
    """
    try:
        import mammoth
    except ImportError as error:
        raise MissingExtraError("mammoth", "documents") from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size > MAX_UNPACKED:
            raise InputError(f"{name} unpacks to more than {MAX_UNPACKED // 1024**2} MB; split it")
        images = mammoth.images.img_element(lambda image: {})
        html = mammoth.convert_to_html(io.BytesIO(data), convert_image=images).value
    except InputError:
        raise
    except Exception as error:  # damaged XML and archives raise what their readers please
        raise InputError(f"{name} is no Word document that can be read: {error}") from error
    return markdown_of_html(html, name)
