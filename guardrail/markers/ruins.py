"""Broken markers: models leave brackets open and nest them; what they list is no prose."""

from __future__ import annotations

import re
from collections.abc import Set

__all__ = ["without_ruins"]

MARKER_START = re.compile(r"\[([^\[\],]{1,200}), (?=[^\[\]:]{1,200}: )")
"""What opens a marker: an entity, and a property before a colon."""

IDENTIFIER = re.compile(r"[QPL]\d+")


def without_ruins(text: str, entities: Set[str]) -> str:
    """Blank markers that could not be read, offsets kept.

    From where a bracket names an entity to where it is closed, or to the sentence's end, no value
    counts as stated.

    Args:
        text: A sentence.
        entities: Labels and ids of the entities that the evidence is about.
    """
    parts = []
    position = 0
    for match in MARKER_START.finditer(text):
        entity = match.group(1)
        if match.start() < position or not (entity in entities or IDENTIFIER.fullmatch(entity)):
            continue
        depth = 0
        end = len(text)
        for place in range(match.start(), len(text)):
            depth += (text[place] == "[") - (text[place] == "]")
            if depth == 0:
                end = place + 1
                break
        parts += [text[position : match.start()], " " * (end - match.start())]
        position = end
    return "".join(parts) + text[position:]
