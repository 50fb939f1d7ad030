"""The layout of plain text and Markdown: headings, labels above lists, tables with their heads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from guardrail.core.text.sentences import Stretch, split_sentences

__all__ = ["UNDER_HEADER", "Line", "Piece", "cells_of", "laid_out", "lined"]

UNDER_HEADER = re.compile(
    r"[ \t]*+(?:\|[ \t]*+)?(?::?-++:?[ \t]*+\|[ \t]*+)++(?::?-++:?[ \t]*+)?$(?:\n(.*))?", re.M
)
"""The line between the header of a Markdown table and its rows, and the first of these."""

NAME_CHARS = 500
"""Longest name of a row or column, in characters: every cell's statement repeats both."""

LABEL_WORDS = 6
"""Most words of a line with a colon at its end that only names what stands below it."""

CELL = re.compile(r"(?<!\\)\|")
MARKS = "*_#` \t"
LAST = re.compile(r"[*_#` \t]*+$", re.MULTILINE)
LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•‣◦]|\(?\d{1,3}[.)])[ \t]")


class Piece(NamedTuple):
    """A piece of a laid-out text.

    Attributes:
        text: The piece on one line: a sentence, or of a table's row *label, column: value*.
        heading: The heading it stands under; empty where there is none.
        fact: Of a table's row its label, the column and the value.
        label: The label above it: of the list that it is an item of, or of the next sentence.
        is_item: True for a list item, whose ``text`` begins with the label.
    """

    text: str
    heading: str = ""
    fact: tuple[str, str, str] | None = None
    label: str = ""
    is_item: bool = False

    @property
    def words(self) -> str:
        """Its own words, without the label above it."""
        return self.text.removeprefix(f"{self.label}: ") if self.is_item else self.text


def laid_out(text: str) -> Iterator[Piece]:
    """The pieces of a text that say something, in order, each with what it stands under.

    Headings, labels of lists, heads of tables and bare numbers say nothing by themselves. An item
    of a list is read with the label above it, a row of a table with the heads of its columns.
    """
    heading = label = ""
    head: list[str] | None = None
    shown = -1
    for stretch, line in lined(text):
        words = " ".join(stretch.text.split())
        if line.is_table_head(stretch):
            head, shown = line.cells, line.start
            continue
        if head is not None and line.is_row:
            if line.start != shown:
                shown = line.start
                yield from _row(head, line.cells, heading)
            continue
        head = None
        if line.is_heading(stretch):
            heading, label = words.strip(MARKS + ":"), ""
            continue
        if line.is_label(stretch):
            label = words.strip(MARKS + ":")
            continue
        listed = line.is_item and bool(label)
        if any(sign.isalpha() for sign in words):
            text = f"{label}: {words}" if listed else words
            yield Piece(text, heading, label=label, is_item=listed)
        if not line.is_item:
            label = ""


def lined(text: str) -> Iterator[tuple[Stretch, Line]]:
    """The sentences of a text, each with the line that it stands on: one for all that share it."""
    line = Line(text, 0, -1)
    place = 0
    for stretch in split_sentences(text):
        start = text.rfind("\n", place, stretch.start) + 1 or line.start
        stop = line.stop
        if stop < stretch.end:
            stop = text.find("\n", stretch.end)
            stop = len(text) if stop < 0 else stop
        if (start, stop) != (line.start, line.stop):
            line = Line(text, start, stop)
        place = stretch.start
        yield stretch, line


class Line:
    """The line of a sentence, or those that it goes over; what its sentences share is found once.

    Attributes:
        whole: The text that it is of; ``start`` and ``stop`` are its offsets there.
        text: The line itself.
        is_item: Whether it is an item of a list; ``is_row``, whether it may be a table's row.
        has_rule: Whether the rule of a table stands below it; ``has_rows``, a row below that.
    """

    def __init__(self, whole: str, start: int, stop: int) -> None:
        self.whole, self.start, self.stop, self.text = whole, start, stop, whole[start:stop]
        self.is_item, self.is_row = LIST_ITEM.match(self.text) is not None, "|" in self.text
        rule = UNDER_HEADER.match(whole, stop + 1)
        self.has_rule = rule is not None
        self.has_rows = rule is not None and bool((rule[1] or "").strip(MARKS + "|"))

    @cached_property
    def cells(self) -> list[str]:
        """Its cells, as of a row of a table."""
        return cells_of(self.text)

    def is_table_head(self, stretch: Stretch) -> bool:
        """Whether a sentence of it is the line above the rule of a Markdown table."""
        return "|" in stretch.text and self.has_rule

    def is_heading(self, stretch: Stretch) -> bool:
        """Whether a sentence stands alone on it, and it is marked as a heading or is bold.

        A sentence that ends as such, with a full stop, is none.
        """
        if not LAST.match(self.whole, stretch.end):
            return False
        head = self.whole[self.start : stretch.start].strip()
        signs = ("**", "__")
        bold = stretch.text.startswith(signs) and stretch.text.rstrip(": ").endswith(signs)
        ends = stretch.text.rstrip(MARKS)[-1:] in ".!?"
        return (head.startswith("#") or (bold and not head)) and not ends

    def is_label(self, stretch: Stretch) -> bool:
        """Whether it only names what stands below it: *Bring:*, *The rules:*."""
        if not LAST.match(self.whole, stretch.end) or not stretch.text.rstrip(MARKS).endswith(":"):
            return False
        before = self.whole[self.start : stretch.start]
        return not before.strip(MARKS) and len(stretch.text.split()) <= LABEL_WORDS


def cells_of(line: str) -> list[str]:
    """The cells of a line of a Markdown table, without marks of emphasis."""
    return [" ".join(cell.split()).strip(MARKS) for cell in CELL.split(line.strip().strip("|"))]


def _row(head: list[str], cells: list[str], heading: str) -> Iterator[Piece]:
    """A row as statements: one for each column after the first, which names the subject."""
    label, *values = cells
    for column, value in zip(head[1:], values, strict=False):
        if label and value:
            stop = "" if value.endswith((".", "!", "?")) else "."
            label, column = label[:NAME_CHARS], column[:NAME_CHARS]
            yield Piece(f"{label}, {column}: {value}{stop}", heading, (label, column, value))
