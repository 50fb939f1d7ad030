"""Paths of keys in nested mappings: ``context``, ``retrieved.documents``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["value_at"]


def value_at(held: Any, path: str) -> tuple[Any, bool]:
    """What stands at a path of keys, and whether anything does."""
    for key in path.split("."):
        if not isinstance(held, Mapping) or key not in held:
            return None, False
        held = held[key]
    return held, True
