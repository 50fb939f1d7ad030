"""The Arrow library, and how a table holds JSON lines."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from guardrail.core.errors import MissingExtraError

__all__ = ["LINES", "arrow"]

LINES: Final = "json"
"""Name of the one column of a table that holds JSON lines."""


def arrow() -> ModuleType:
    """The Arrow library.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    library: ModuleType = pyarrow
    return library
