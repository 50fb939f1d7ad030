"""Files of documents, read by what their names end in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from guardrail.core.documents.sections import Page, Section, sections_of, shown
from guardrail.core.errors import InputError

__all__ = ["ENDINGS", "MAX_BYTES", "read_document", "read_file"]

MAX_BYTES: Final = 64 * 1024 * 1024
"""Most bytes of one document."""


MARKDOWN: Final = (".md", ".markdown", ".mdx")


def read_file(path: str | Path) -> list[Section]:
    """Read a document from a file; see ``read_document``.

    Raises:
        InputError: As ``read_document``, or the file cannot be read.
        MissingExtraError: It takes the extra ``documents``.
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    return read_document(data, str(path))


def read_document(data: bytes, name: str) -> list[Section]:
    """Read a document: its paragraphs, lists and tables, with headings and pages.

    Args:
        data: The file's bytes.
        name: Its name; ``.pdf``, ``.html``, ``.htm`` and ``.docx`` are read as such, all else as
            Markdown or plain text in UTF-8.

    Returns:
        Its sections in order, one at least.

    Raises:
        InputError: It is larger than ``MAX_BYTES``, damaged, locked, or holds no text.
        MissingExtraError: It takes the extra ``documents``.
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"{name} is larger than {MAX_BYTES // 1024**2} MB; split it")
    read = ENDINGS.get(Path(name).suffix.lower(), _text_pages)
    found = list(sections_of(read(data, name)))
    if not found:
        raise InputError(f"{name} is empty" if read is _text_pages else f"{name} holds no text")
    return found


def _text_pages(data: bytes, name: str) -> Iterable[Page]:
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not UTF-8 text (byte 0x{error.object[error.start]:02X} at "
            f"{error.start}); save it as UTF-8"
        ) from error
    return [Page(shown(text) if Path(name).suffix.lower() in MARKDOWN else text)]


def _pdf_pages(data: bytes, name: str) -> Iterable[Page]:
    from guardrail.core.documents.pdf import pdf_pages

    return pdf_pages(data, name)


def _html_pages(data: bytes, name: str) -> Iterable[Page]:
    from guardrail.core.documents.markup import markdown_of_html

    return [Page(markdown_of_html(data, name))]


def _docx_pages(data: bytes, name: str) -> Iterable[Page]:
    from guardrail.core.documents.markup import markdown_of_docx

    return [Page(markdown_of_docx(data, name))]


ENDINGS: Final[dict[str, Callable[[bytes, str], Iterable[Page]]]] = {
    ".pdf": _pdf_pages,
    ".html": _html_pages,
    ".htm": _html_pages,
    ".docx": _docx_pages,
}
"""How documents are read by the endings of their names; all others are text."""
