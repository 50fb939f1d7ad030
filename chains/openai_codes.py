"""Fields of a reply that are no text: numbers, codes, and lists and tables of them.

A server may write anything where the protocol has an id, a reason or a count; of text that
nobody judged nothing leaves that way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["clean_call", "codes_only", "echoed"]

CODE = re.compile(r"[\w.:/@+=,*-]*", re.ASCII)
"""An id, a name of a model, a word of the protocol, or what is encrypted: never two words."""

DEEPEST = 12
"""Levels of lists and tables; the protocol's fields have fewer."""

ARGUMENTS = frozenset({"arguments", "input"})
"""What a call hands to its tool: data, which the policy judges where it says ``structured``."""


def codes_only(value: Any, depth: int = DEEPEST) -> Any:
    """A field's value without texts, each of which becomes None.

    Args:
        value: As the server sent it.
        depth: Levels that are read; what lies deeper is None.
    """
    if isinstance(value, str):
        return value if CODE.fullmatch(value) else None
    if isinstance(value, list | dict) and depth <= 0:
        return None
    if isinstance(value, list):
        return [codes_only(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {
            key: codes_only(item, depth - 1) for key, item in value.items() if CODE.fullmatch(key)
        }
    return value


def echoed(reply: Mapping[str, Any], asked: Mapping[str, Any], names: frozenset[str]) -> Any:
    """Fields in which a reply repeats its request: as the request has them, else without texts.

    Args:
        reply: What the server sent.
        asked: The request.
        names: The fields.
    """
    return {
        name: asked[name] if name in asked else codes_only(reply[name])
        for name in names & reply.keys()
    }


def clean_call(call: Any) -> Any:
    """A call of a tool, or a piece of one, with texts in what it hands over alone."""
    if not isinstance(call, dict):
        return codes_only(call)
    kept = codes_only(call)
    for key in ("function", "custom"):
        if isinstance(inner := call.get(key), dict):
            kept[key] |= {name: inner[name] for name in ARGUMENTS & inner.keys()}
    return kept | {name: call[name] for name in ARGUMENTS & call.keys()}
