"""Headings: lines of an answer that only name what the lines below them tell of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from guardrail.naming import NEGATIONS
from guardrail.text.sentences import LIST_MARKER, Stretch

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = ["is_heading"]

SEPARATOR = re.compile(r"\s*+\|?[ \t]*:?-[-: \t|]*\|[-: \t|]*$", re.MULTILINE)
"""The line below the header of a table."""

CELL_WORDS = 3
"""Most words in a cell of a table's header; one with more may state something."""

NUMBERED = re.compile(r"\d{1,3}[.)]\s+")

TELLING = re.compile(r"[\d,;:()\[\]–—=|]|\s-\s")
"""What no mere name has: figures, and signs that put a value beside a label."""

STRESS = " \t*_"
"""Signs for bold and italic type, and spaces."""

NEXT_LINE = re.compile(r"(?P<blank>(?:[ \t]*\r?\n)*)(?P<line>[^\n]*)")


def is_heading(text: str, doc: Doc, stretch: Stretch) -> bool:
    """Whether a stretch is the header row of a table, or a heading that is a name alone.

    Behind ``#``, between ``**`` or before a colon a name heads what follows. As an item of a list
    it does so where lines of another kind follow; items that stand one below the other are told
    of what their list is about.

    Args:
        text: The text that was parsed.
        doc: The same, parsed.
        stretch: A sentence, list item, heading or table row of it.
    """
    first = text.rfind("\n", 0, stretch.start) + 1
    last = text.find("\n", stretch.end)
    last = len(text) if last < 0 else last
    marker, tail = text[first : stretch.start], text[stretch.end : last]
    if tail.strip(STRESS + "|\r"):
        return False
    if "|" in stretch.text:
        return _is_header(stretch.text) and SEPARATOR.match(text, last) is not None
    if LIST_MARKER.fullmatch(marker) is None or not _is_name(doc, stretch, titled="#" in marker):
        return False
    if "#" in marker or stretch.text.rstrip(STRESS).endswith(":"):
        return True
    following = NEXT_LINE.match(text, last + 1)
    if following is None or not following["line"].strip():
        return False
    if not marker.strip():
        return stretch.text.startswith(("**", "__"))
    above = _line_above(text, first)
    if _same_list(above, marker) or _same_list(following["line"], marker):
        return False
    deeper = _indent(following["line"]) > _indent(marker)
    return deeper or not following["blank"] or not above.rstrip(STRESS).endswith(":")


def _is_header(row: str) -> bool:
    cells = [cell.split() for cell in row.split("|")]
    return not any(
        len(cell) > CELL_WORDS or any(map(_tells, cell)) or any(map(str.isdigit, "".join(cell)))
        for cell in cells
    )


def _tells(word: str) -> bool:
    return word.lower() in NEGATIONS


def _is_name(doc: Doc, stretch: Stretch, *, titled: bool) -> bool:
    """Whether a stretch has no verb, figure, negation, or value beside a label."""
    name = NUMBERED.sub("", stretch.text, count=1) if titled else stretch.text
    name = name.strip(STRESS).removesuffix(":").strip(STRESS)
    if not name or name[-1] in ".!?" or TELLING.search(name) or any(map(_tells, name.split())):
        return False
    span = doc.char_span(stretch.start, stretch.end, alignment_mode="expand")
    return span is not None and all(one.pos_ not in ("VERB", "AUX") for one in span)


def _line_above(text: str, first: int) -> str:
    """The nearest line above an offset that is not blank."""
    while first > 0:
        start = text.rfind("\n", 0, first - 1) + 1
        if line := text[start : first - 1].rstrip():
            return line
        first = start
    return ""


def _same_list(line: str, marker: str) -> bool:
    """Whether a line is an item of the same list as one with this marker."""
    own = LIST_MARKER.match(line)
    if own is None or not own.group().strip():
        return False
    same_kind = any(map(str.isdigit, own.group())) is any(map(str.isdigit, marker))
    return same_kind and _indent(line) == _indent(marker)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
