"""The layout of plain text and Markdown: headings, labels above lists, tables with their heads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from guardrail.core.text.sentences import Stretch, split_sentences

__all__ = [
    "Piece",
    "cells_of",
    "has_rows",
    "is_heading",
    "is_label",
    "is_table_head",
    "laid_out",
    "table_rows",
]

UNDER_HEADER = re.compile(
    r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*(?::?-+:?[ \t]*)?$", re.MULTILINE
)
"""The line between the header of a Markdown table and its rows."""

LABEL_WORDS = 6
"""Most words of a line with a colon at its end that only names what stands below it."""

CELL = re.compile(r"(?<!\\)\|")
MARKS = "*_#` \t"
LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•‣◦]|\(?\d{1,3}[.)])[ \t]")


class Piece(NamedTuple):
    """A piece of a laid-out text.

    Attributes:
        text: The piece on one line: a sentence, or of a table's row *label, column: value*.
        heading: The heading it stands under; empty where there is none.
        fact: Of a table's row its label, the column and the value.
    """

    text: str
    heading: str = ""
    fact: tuple[str, str, str] | None = None


def laid_out(text: str) -> Iterator[Piece]:
    """The pieces of a text that say something, in order, each with what it stands under.

    Headings, labels of lists, heads of tables and bare numbers say nothing by themselves. An item
    of a list is read with the label above it, a row of a table with the heads of its columns.
    """
    heading = label = ""
    head: list[str] | None = None
    head_line = -1
    for stretch in split_sentences(text):
        line, stop = _line(text, stretch)
        words = " ".join(stretch.text.split())
        if is_table_head(text, stretch):
            head, head_line = cells_of(text[line:stop]), line
            continue
        if head is not None and text[line:stop].count("|"):
            if line != head_line:
                head_line = line
                yield from _row(head, cells_of(text[line:stop]), heading)
            continue
        head = None
        if is_heading(text, stretch):
            heading, label = words.strip(MARKS + ":"), ""
            continue
        if is_label(text, stretch):
            label = words.strip(MARKS + ":")
            continue
        if not LIST_ITEM.match(text[line:stop]):
            label = ""
        if any(sign.isalpha() for sign in words):
            yield Piece(f"{label}: {words}" if label else words, heading)


def is_heading(text: str, stretch: Stretch) -> bool:
    """Whether a sentence stands alone on a line that is marked as a heading or is bold.

    A sentence that ends as such, with a full stop, is none.
    """
    line, stop = _line(text, stretch)
    if text[stretch.end : stop].strip(MARKS):
        return False
    head = text[line : stretch.start].strip()
    signs = ("**", "__")
    bold = stretch.text.startswith(signs) and stretch.text.rstrip(": ").endswith(signs)
    ends = stretch.text.rstrip(MARKS)[-1:] in ".!?"
    return (head.startswith("#") or (bold and not head)) and not ends


def is_table_head(text: str, stretch: Stretch) -> bool:
    """Whether a sentence is the line above the rule of a Markdown table."""
    _, stop = _line(text, stretch)
    return "|" in stretch.text and stop < len(text) and bool(UNDER_HEADER.match(text, stop + 1))


def has_rows(text: str, head: Stretch) -> bool:
    """Whether a row stands below the head of a table and its rule."""
    rule = UNDER_HEADER.match(text, _line(text, head)[1] + 1)
    return rule is not None and bool(text[rule.end() + 1 :].partition("\n")[0].strip(MARKS + "|"))


def is_label(text: str, stretch: Stretch) -> bool:
    """Whether a line only names what stands below it: *Bring:*, *The rules:*."""
    line, stop = _line(text, stretch)
    beside = text[line : stretch.start] + text[stretch.end : stop]
    colon = stretch.text.rstrip(MARKS).endswith(":")
    return not beside.strip(MARKS) and colon and len(stretch.text.split()) <= LABEL_WORDS


def table_rows(text: str) -> list[dict[str, str]] | None:
    """The rows of a Markdown table, by column; None of a text that is more, or something else."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    if len(lines) < 3 or not UNDER_HEADER.fullmatch(lines[1]) or any("|" not in s for s in lines):
        return None
    head, *rows = [cells_of(line) for line in (lines[0], *lines[2:])]
    if len({*head}) < len(head) or any(len(row) != len(head) for row in rows):
        return None
    return [dict(zip(head, row, strict=True)) for row in rows]


def _line(text: str, stretch: Stretch) -> tuple[int, int]:
    """Where the line of a stretch begins and ends."""
    stop = text.find("\n", stretch.end)
    return text.rfind("\n", 0, stretch.start) + 1, len(text) if stop < 0 else stop


def cells_of(line: str) -> list[str]:
    """The cells of a line of a Markdown table, without marks of emphasis."""
    return [" ".join(cell.split()).strip(MARKS) for cell in CELL.split(line.strip().strip("|"))]


def _row(head: list[str], cells: list[str], heading: str) -> Iterator[Piece]:
    """A row as statements, one for each column beside the first, which says what it is about."""
    label, *values = cells
    for column, value in zip(head[1:], values, strict=False):
        if label and value:
            stop = "" if value.endswith((".", "!", "?")) else "."
            yield Piece(f"{label}, {column}: {value}{stop}", heading, (label, column, value))
