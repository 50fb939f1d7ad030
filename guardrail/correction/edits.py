"""What an edit is, and a text with its edits made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Edit", "replaced"]


class Edit(NamedTuple):
    """Words of a sentence, and what is written in their place.

    Attributes:
        start: Offset of the first character, in the sentence.
        end: Offset past the last.
        text: What is written; never empty, so that a reader can be shown where.
        number: Number of the statement that tells it.
    """

    start: int
    end: int
    text: str
    number: int


def replaced(text: str, edits: Sequence[Edit]) -> str:
    """A text with edits made; they must not overlap.

    Args:
        text: The text that their offsets index.
        edits: The edits, in any order.
    """
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text
