"""JSON as commands print it."""

from __future__ import annotations

import json

__all__ = ["DIGITS", "json_line"]

DIGITS = 6
"""Digits after the point: more than any judge's probability is good for, and no noise of floating
point such as 0.30000000000000004."""


def json_line(value: object) -> str:
    """One line of JSON, floats to ``DIGITS`` digits after the point.

    Surrogates, which cannot be encoded as UTF-8, leave as JSON escapes.

    Raises:
        ValueError: There is a NaN or an infinity.
    """
    text = json.dumps(_rounded(value), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0  # no negative zero
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value
