"""Reads the data folder, and says which groups of a set measure: shared with the training."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from guardrail.core.errors import GuardrailError, InputError

__all__ = ["HELD_OUT", "PATIENCE_S", "exit_on_error", "held_out", "measures", "read_jsonl"]

PATIENCE_S: Final = 86_400.0
"""Seconds that a language model has for a call: here it is measured, not bounded."""

HELD_OUT: Final[Mapping[str, float]] = {
    "tabfact": 0.1,
    "summedits": 0.3,
    "rel2text": 0.2,
    "redocred_sentences": 0.2,
}
"""Share of the groups that measure, of sets whose other groups train."""


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Read a gzipped JSON-lines file of the data folder.

    Raises:
        InputError: The file is missing.
    """
    try:
        lines = gzip.open(path, "rt", encoding="utf-8")  # noqa: SIM115
    except FileNotFoundError:
        raise InputError(
            f"there is no file {path}: give the folder that holds {path.parent.name}/{path.name} "
            "with --data DIR; benchmarks/RESULTS.md lists its files"
        ) from None
    with lines:
        for line in lines:
            yield json.loads(line)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Exit with the message of a package error instead of a traceback."""
    try:
        yield
    except GuardrailError as error:
        sys.exit(str(error))


def held_out(group: str, share: float, *, salt: str = "") -> bool:
    """Tell whether a group (page, table, entity) belongs to validation; stable across runs.

    Args:
        group: Name of the group; all its rows share one side.
        share: Share of groups held out, in [0, 1].
        salt: Makes independent splits of the same names.
    """
    digest = hashlib.blake2b(f"{salt}\x1f{group}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def measures(name: str, group: str) -> bool:
    """Whether a group of a set in ``HELD_OUT`` is one that measures."""
    return held_out(group, HELD_OUT.get(name, 0.0), salt=name)
