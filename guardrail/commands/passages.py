"""Text files as evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from guardrail.errors import InputError
from guardrail.types import Evidence, Passage

__all__ = ["read_passages"]

_BLANK_LINES = re.compile(r"\n\s*\n")


def read_passages(files: Iterable[Path]) -> tuple[Evidence, ...] | None:
    """Each paragraph of each file as a passage, named by file and place; None of no files.

    Lines stay, so that tables and lists can be read as such. A heading, or a line that ends with a
    colon, belongs to what stands below it.

    Raises:
        InputError: A file cannot be read, is not UTF-8 or holds no text.
    """
    found: list[Evidence] = []
    for path in (paths := list(files)):
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path} is not UTF-8 text (byte 0x{error.object[error.start]:02X} at "
                f"{error.start}); save it as UTF-8"
            ) from error
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
        paragraphs = list(_paragraphs(text))
        if not paragraphs:
            raise InputError(f"{path} is empty")
        found += [
            Passage(text=paragraph, id=f"{path.name} {place}")
            for place, paragraph in enumerate(paragraphs, start=1)
        ]
    return tuple(found) if paths else None


def _paragraphs(text: str) -> Iterator[str]:
    above = ""
    for part in _BLANK_LINES.split(text):
        body = part.strip()
        if not body:
            continue
        joined = f"{above}\n\n{body}" if above else body
        last = body.splitlines()[-1].strip()
        if last.startswith("#") or last.endswith(":"):
            above = joined
            continue
        above = ""
        yield joined
    if above:
        yield above
