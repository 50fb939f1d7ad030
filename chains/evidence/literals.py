"""Data that a tool returns as text: JSON, Markdown tables, and rows as Python prints them."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import cast
from uuid import UUID
from zoneinfo import ZoneInfo

from guardrail import Table

__all__ = ["data_of_text"]


def data_of_text(text: str) -> object | None:
    """The object, list or rows in a text; None for any other text."""
    data = _json(text)
    return _rows(text) if data is None else data


def _rows(text: str) -> Sequence[object] | None:
    """The rows in a text as Markdown or Python prints them; None for any other text."""
    text = text.strip()
    # Python's parser takes a hundred times as much memory as the text; a Markdown table of that
    # length would be cut in any case.
    if not text.startswith(("|", "[(", "[{")) or len(text) > 200_000:
        return None
    if text.startswith("|"):
        return Table.rows_of_markdown(text)
    try:
        rows = _literal(ast.parse(text, mode="eval").body)
    except (
        SyntaxError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError,
        MemoryError, OSError,
    ):  # fmt: skip
        return None
    return rows if isinstance(rows, list) else None


def _literal(node: ast.AST) -> object:
    """The value of a literal as Python prints it: ``[('Fjell 3', Decimal('2490.00'))]``.

    Raises:
        ValueError: It is something else.
        LookupError: It calls an unknown type.
    """
    match node:
        case ast.List():
            return [*map(_literal, node.elts)]
        case ast.Tuple():
            return tuple(map(_literal, node.elts))
        case ast.Dict():
            keys = [ast.literal_eval(key) for key in node.keys if key is not None]
            return dict(zip(keys, map(_literal, node.values), strict=True))
        case ast.Attribute(attr="utc" | "UTC"):
            return UTC
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            types = (Decimal, UUID, date, datetime, timedelta, timezone, ZoneInfo)
            kind: Callable[..., object] = {one.__name__: one for one in types}[name]
            named = {word.arg or "": _literal(word.value) for word in node.keywords}
            return kind(*map(_literal, node.args), **named)
        case ast.expr():
            return ast.literal_eval(node)
    raise ValueError("not a literal")


def _json(text: str) -> object | None:
    """The object or list in a text; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None
