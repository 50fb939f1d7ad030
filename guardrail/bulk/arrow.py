"""The Arrow library, and how a table holds JSON lines."""

from __future__ import annotations

from typing import Any, Final

from guardrail.core.errors import MissingExtraError

__all__ = ["LINES", "arrow"]

LINES: Final = "json"
"""Name of the one column of a table that holds JSON lines."""


def arrow() -> Any:
    """The Arrow library.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    return pyarrow
