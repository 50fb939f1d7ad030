"""Rows that a benchmark keeps on disk while it runs, so that a stopped run goes on."""

from __future__ import annotations

from pathlib import Path

__all__ = ["kept_lines"]


def kept_lines(path: Path) -> list[str]:
    """The whole lines of a file; a last one that a stop cut is taken off the file.

    Raises:
        OSError: The file cannot be read or mended.
        UnicodeDecodeError: It is no UTF-8.
    """
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    lines = whole.decode("utf-8").split("\n")[:-1]  # a row may hold other line separators
    if len(whole) < len(content):
        path.write_bytes(whole)
    return lines
