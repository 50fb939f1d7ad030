"""Checksums of a model's files, in the form that ``sha256sum --check`` reads."""

from __future__ import annotations

import hashlib
from pathlib import Path

from guardrail.core.errors import JudgeError

__all__ = ["SUMS", "check_sums", "write_sums"]

SUMS = "SHA256SUMS"
"""Name of the file in a model's folder."""

LEFT_OUT = (SUMS, "README.md")
"""Files that no verdict depends on."""


def check_sums(folder: Path) -> None:
    """Compare the files of a folder with its checksums.

    Raises:
        JudgeError: The folder has no checksums, they leave a file out, or a file is missing,
            cannot be read, or is not the one that was written.
    """
    sums = folder / SUMS
    write = f"if the files are right, write their checksums: cd {folder} && sha256sum * > {SUMS}"
    if not sums.is_file():
        raise JudgeError(f"the model in {folder} has no {SUMS}, so it is not loaded; {write}")
    try:
        lines = sums.read_text("ascii").splitlines()
        wanted = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        wanted.pop(SUMS, None)
        unnamed = [name for name in _files(folder) if name not in wanted]
        wrong = [name for name, digest in wanted.items() if _digest(folder / name) != digest]
    except (OSError, UnicodeDecodeError) as error:
        raise JudgeError(f"the files that {sums} names cannot be read: {error}") from error
    if unnamed or wrong:
        raise JudgeError(
            f"{folder / (wrong or unnamed)[0]} is not the file that {SUMS} names: it is damaged or "
            f"was changed; install it again, or {write}"
        )


def write_sums(folder: Path) -> None:
    """Write the checksums of a folder's files, once they are all written."""
    lines = "".join(f"{_digest(folder / name)}  {name}\n" for name in _files(folder))
    (folder / SUMS).write_text(lines, encoding="ascii")


def _files(folder: Path) -> list[str]:
    """Names of the files that verdicts depend on."""
    names = (item.name for item in folder.iterdir() if item.is_file())
    return sorted(name for name in names if name not in LEFT_OUT and not name.startswith("."))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
