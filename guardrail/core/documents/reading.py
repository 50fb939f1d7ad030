"""Files of documents, read by their suffix; formats that may grow without bound in own processes.

A small file may unpack to any size, or take its reader hours. A thread that reads cannot be
stopped; a process can.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from guardrail.core.documents.markdown import Page, Section, sections_of, shown
from guardrail.core.errors import InputError, MissingExtraError, OverloadedError, file_errors

MAX_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of a document in bytes."""
MAX_MEMORY: Final = 2 * 1024**3
"""Bytes of memory that reading may take."""
DOCUMENTS_AT_ONCE: Final = 4
"""Documents that are read at once; more wait."""
MAX_TEXT: Final = 64 * 1024 * 1024
"""Maximum length of a document's text in characters, the same as of a plain text file."""
_ROOM = threading.BoundedSemaphore(DOCUMENTS_AT_ONCE)

Reader = Callable[[bytes], list[str]]


class _Format(NamedTuple):
    """How a format is read: module and function of its reader, and the packages that this takes."""

    module: str
    reader: str
    packages: tuple[str, ...]
    seconds: float = 30.0
    paged: bool = False


ENDINGS: Final = {
    ".pdf": _Format("pdf", "pages_of", ("pdfplumber",), 120.0, paged=True),
    **dict.fromkeys((".html", ".htm"), _Format("markup", "html_pages", ("bs4", "markdownify"))),
    ".docx": _Format("markup", "docx_pages", ("bs4", "markdownify", "mammoth")),
}
"""How documents are read by the endings of their names; all others are text."""


def read_file(path: str | Path) -> list[Section]:
    """Read a document from a file; see ``read_document``.

    Raises:
        InputError: As ``read_document``, or the file cannot be read.
        MissingExtraError: The extra ``documents`` is not installed.
    """
    with file_errors("read", path), Path(path).open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    return read_document(data, str(path))


def read_document(data: bytes, name: str) -> list[Section]:
    """Read a document: its paragraphs, lists and tables, with headings and pages.

    Args:
        data: The file's bytes.
        name: Its name; ``.pdf``, ``.html``, ``.htm`` and ``.docx`` determine the format, all others
            are Markdown or plain text in UTF-8.

    Returns:
        Its sections in order, at least one.

    Raises:
        InputError: It is larger than ``MAX_BYTES``, damaged, locked, or has no text.
        MissingExtraError: The extra ``documents`` is not installed.
        OverloadedError: Other documents are being read for too long.
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"{name} is larger than {MAX_BYTES // 1024**2} MB; split it")
    format_ = ENDINGS.get(Path(name).suffix.lower())
    found = list(sections_of(_text(data, name) if format_ is None else _pages(format_, data, name)))
    if not found:
        raise InputError(f"{name} is empty" if format_ is None else f"{name} holds no text")
    return found


def in_own_process(reader: Reader, data: bytes, name: str, seconds: float) -> list[str]:
    """The pages of a document, as a function of a module reads them from its bytes.

    The function reports errors in the file by an ``InputError`` whose text continues after the
    file's name. It has so many ``seconds``.

    Raises:
        InputError: The reader raises one, it takes more time or ``MAX_MEMORY``, or the text is
            longer than ``MAX_TEXT``.
        OverloadedError: Other documents are being read for as long.
    """
    if not _ROOM.acquire(timeout=seconds):
        raise OverloadedError(
            f"{DOCUMENTS_AT_ONCE} other documents are being read; send {name} again later"
        )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", __name__, reader.__module__, reader.__name__]
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, env=environment, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{name} takes more than {seconds:g} s to read; split it") from error
    finally:
        _ROOM.release()
    if done.returncode:
        raise InputError(f"{name} cannot be read in {MAX_MEMORY // 1024**3} GB of memory")
    result: dict[str, Any] = json.loads(done.stdout)
    if "error" in result:
        raise InputError(f"{name} {result['error']}")
    pages: list[str] = result["pages"]
    return pages


def _pages(format_: _Format, data: bytes, name: str) -> Iterable[Page]:
    for package in format_.packages:
        if find_spec(package) is None:
            raise MissingExtraError(package, "documents")
    module = import_module(f"{__package__}.{format_.module}")
    pages = in_own_process(getattr(module, format_.reader), data, name, format_.seconds)
    return [Page(text, n if format_.paged else None) for n, text in enumerate(pages, start=1)]


def _text(data: bytes, name: str) -> Iterable[Page]:
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not UTF-8 text (byte 0x{error.object[error.start]:02X} at "
            f"{error.start}); save it as UTF-8"
        ) from error
    return [
        Page(shown(text) if Path(name).suffix.lower() in (".md", ".markdown", ".mdx") else text)
    ]


def main() -> None:
    """Read a document from the standard input, and write its pages as JSON."""
    with suppress(ImportError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    module, name = sys.argv[1:]
    reader: Reader = getattr(import_module(module), name)
    try:
        pages = reader(sys.stdin.buffer.read())
        if sum(map(len, pages)) > MAX_TEXT:
            raise InputError(f"holds more than {MAX_TEXT:,} characters; split it")
        result: dict[str, object] = {"pages": pages}
    except InputError as error:
        result = {"error": str(error)}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
