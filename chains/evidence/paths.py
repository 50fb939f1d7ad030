"""Paths of keys in nested mappings: ``context``, ``retrieved.documents``."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["value_at"]


def value_at(held: object, path: str) -> tuple[object, bool]:
    """What stands at a path of keys, and whether anything does."""
    for key in path.split("."):
        if not isinstance(held, Mapping) or key not in held:
            return None, False
        held = held[key]
    return held, True
