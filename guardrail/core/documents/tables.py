"""Tables of documents as Markdown: which row is the head, and what cells over several stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

__all__ = ["Cell", "has_head", "markdown_table", "own_head", "spread"]

MOST_SPANNED: Final = 1_000
"""Maximum number of columns that one cell may span (HTML, 4.9.11)."""
_FIGURE: Final = re.compile(r"\d[\d.,\u2019\u202f]*")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_AMOUNT: Final = re.compile(r"(?!(?:19|20)\d\d\b)(?:\W{0,2}|[A-Z]{3}\s)\d")
_BARE: Final = re.compile(r"(?<!\\)\|")


class Cell(NamedTuple):
    """A cell as it is written.

    Attributes:
        text: One line.
        columns: Number of columns that it spans.
        rows: Number of rows that it spans; 0 for all below.
        head: Whether it is marked as a head.
    """

    text: str
    columns: int = 1
    rows: int = 1
    head: bool = False


def markdown_table(rows: Sequence[Sequence[str]], head: Sequence[str] | None) -> str:
    """A table as Markdown; without a head its rows as lines, so that none is made up.

    Args:
        rows: Cells of the rows below the head.
        head: Cells of the head; None where there is none.
    """
    cells = [[_cell(text) for text in row] for row in rows]
    filled = [row for row in cells if any(row)]
    if head is None or not filled:
        lines = filled or [[_cell(text) for text in head or ()]]
        return "\n".join(", ".join(filter(None, row)).replace(r"\|", "|") for row in lines)
    columns = max(len(head), *map(len, filled))
    wide = [[*row, *[""] * (columns - len(row))] for row in ([*map(_cell, head)], *filled)]
    rendered = [f"| {' | '.join(row)} |" for row in wide]
    return "\n".join([rendered[0], "|" + " --- |" * columns, *rendered[1:]])


def has_head(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of rows without marks may be their head.

    It is none where a column of it tells a figure (*990 euros*; no year) that is written as one
    below it is (*890 euros*), nor where the second of two columns begins with one (*Price, 990
    euros* above *Weight, 12 kg*).
    """
    if len(rows) < 2:
        return False
    if max(map(len, rows)) == 2 and _AMOUNT.match(rows[0][-1].strip()):
        return False
    for place, first in enumerate(rows[0]):
        below = (_shape(row[place]) for row in rows[1:] if place < len(row))
        figure = _FIGURE.search(first) and not _YEAR.fullmatch(first.strip())
        if figure and _shape(first) in below:
            return False
    return True


def own_head(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row tells words where all below it tell figures, as heads do."""
    for place, first in enumerate(rows[0]):
        below = [row[place] for row in rows[1:] if place < len(row)]
        words = first.strip() and not _FIGURE.search(first)
        if words and below and all(map(_FIGURE.search, below)):
            return True
    return False


def spread(rows: Iterable[Sequence[Cell]]) -> list[list[Cell]]:
    """Rows that repeat a cell in all columns and rows that it spans.

    A cell that spans a whole row is written once.
    """
    found: list[list[Cell]] = []
    down: dict[int, tuple[int, Cell]] = {}
    for row in rows:
        line: list[Cell] = []
        waiting = list(reversed(row))
        while waiting or len(line) in down:
            if len(line) in down:
                left, cell = down.pop(len(line))
                if left != 1:
                    down[len(line)] = (left - 1, cell)
                line.append(cell)
                continue
            cell = waiting.pop()
            columns = max(1, min(MOST_SPANNED, cell.columns))
            for place in range(columns):
                if cell.rows != 1:
                    down[len(line)] = (cell.rows - 1, cell)
                alone = len(row) == 1 and place and not cell.head
                line.append(Cell("") if alone else cell)
        found.append(line)
    return found


def _cell(text: str) -> str:
    return _BARE.sub(r"\\|", " ".join(text.split()))


def _shape(text: str) -> str:
    return _FIGURE.sub("0", " ".join(text.split()))
