"""Checksums of a model's files, in the form that ``sha256sum --check`` reads."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from guardrail.core.errors import JudgeError

__all__ = ["SUMS", "check_sums", "without_sums", "write_sums"]

log = logging.getLogger("judges")

SUMS = "SHA256SUMS"
"""Name of the file beside a model's files."""

LEFT_OUT = (SUMS, "README.md")
"""Files that no verdict depends on."""


def check_sums(folder: Path) -> None:
    """Compare the files of a folder with its checksums.

    A folder without any is not checked, and that is logged.

    Raises:
        JudgeError: A file is missing, cannot be read, or is not what was written.
    """
    sums = folder / SUMS
    if not sums.is_file():
        log.warning("%s", without_sums(folder))
        return
    try:
        lines = sums.read_text("ascii").splitlines()
        for line in lines:
            wanted, _, name = line.partition("  ")
            if _digest(folder / name) != wanted:
                raise JudgeError(
                    f"{folder / name} is not the file that {SUMS} beside it names: it is damaged "
                    "or was changed; install it again, or delete the line if the change is yours"
                )
    except (OSError, UnicodeDecodeError) as error:
        raise JudgeError(f"the files that {sums} names cannot be read: {error}") from error


def without_sums(folder: Path) -> str:
    """What is told of a folder without checksums; empty for one that has them."""
    if (folder / SUMS).is_file():
        return ""
    return (
        f"the model in {folder} has no {SUMS}, so that nobody sees when it is damaged or changed; "
        f"write them with: cd {folder} && sha256sum *.onnx *.json > {SUMS}"
    )


def write_sums(folder: Path) -> None:
    """Write the checksums of a folder's files, once they are all written."""
    files = sorted(
        item for item in folder.iterdir() if item.is_file() and item.name not in LEFT_OUT
    )
    lines = "".join(f"{_digest(item)}  {item.name}\n" for item in files)
    (folder / SUMS).write_text(lines, encoding="ascii")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
