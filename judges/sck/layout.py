"""Layout of an answer: step list, side-by-side list, paragraphs, …; reads Markdown."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon

__all__ = ["Format", "Layout", "detect"]


class Format(StrEnum):
    """Layouts of SCK's Table 2, and those it does not list."""

    STEP_LIST = "step-by-step list"
    BULLET_LIST = "list"
    SIDE_BY_SIDE = "side-by-side list"
    POINT_COUNTERPOINT = "point-counterpoint paragraphs"
    PARAGRAPHS = "paragraphs"
    PARAGRAPH = "paragraph"
    SENTENCES = "sentences"
    CODE = "code"
    BROKEN = "broken layout"
    EMPTY = "empty"


class Layout(NamedTuple):
    """A format and the signs of it."""

    format: Format
    signs: tuple[str, ...]


class _Line(NamedTuple):
    """A line by its marker: ``number``, ``bullet``, ``row``, ``heading``, ``text``."""

    kind: str
    number: int
    text: str


FEW_SENTENCES = 2
"""Most sentences of a text that is not yet a paragraph."""

_FENCES = ("```", "~~~")
_NUMBER = re.compile(
    r"\s*(?:\*\*)?(?:step\s+)?\(?(\d{1,3})(?:[.):](?:\*\*)?|\*\*[.):]?)\s+", re.IGNORECASE
)
_BULLET = re.compile(r"\s*[-*+•‣◦–]\s+")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE = re.compile(r"[\s|:=_*-]*$")
_HEADING = re.compile(r"\s*#{1,6}\s+|\s*\*\*[^*]+\*\*:?\s*$|[^.!?]{1,60}:\s*$")
_LABEL = re.compile(r"(?:\*\*)?([A-Z0-9][^:*]{0,40}?)(?:\*\*)?:(?:\*\*)?\s+\S")
_SENTENCE = re.compile(r"[.!?][\"”’')*_]*(?=\s|$)")


def detect(answer: str) -> Layout:
    """Detect the layout of an answer.

    A list has at least two lines with its marker. The numbers of a step list ascend one by one;
    numbers out of order, or markers of several kinds at one level, are a broken layout.
    """
    prose = _without_code(answer)
    if not prose.strip():
        return Layout(Format.CODE, ("only code",)) if answer.strip() else Layout(Format.EMPTY, ())
    lines = [_classify(line) for line in prose.splitlines() if line.strip()]
    counts = {
        kind: sum(line.kind == kind for line in lines) for kind in ("number", "bullet", "row")
    }
    listed = _list_layout(prose, lines, counts)
    if listed is not None:
        return listed
    counterpoint = _counterpoint(prose)
    if counterpoint is not None:
        return counterpoint
    paragraphs = [block for block in re.split(r"\n\s*\n", prose) if block.strip()]
    if len(paragraphs) > 1:
        return Layout(Format.PARAGRAPHS, (f"{len(paragraphs)} paragraphs",))
    sentences = max(1, len(_SENTENCE.findall(prose)))
    kind = Format.SENTENCES if sentences <= FEW_SENTENCES else Format.PARAGRAPH
    return Layout(kind, (f"{sentences} sentences in one paragraph",))


def _without_code(answer: str) -> str:
    """Replace each block of code by a blank line; an unclosed block extends to the end."""
    kept: list[str] = []
    inside = False
    for line in answer.split("\n"):
        if inside:
            inside = line.strip() not in _FENCES
            continue
        inside = line.lstrip().startswith(_FENCES)
        kept.append("" if inside else line)
    return "\n".join(kept)


def _classify(line: str) -> _Line:
    if _ROW.match(line):
        return _Line("rule" if _RULE.match(line) else "row", 0, line)
    if number := _NUMBER.match(line):
        return _Line("number", int(number[1]), line[number.end() :])
    if bullet := _BULLET.match(line):
        indent = len(line) - len(line.lstrip())
        return _Line("nested" if indent >= 2 else "bullet", 0, line[bullet.end() :])
    if _RULE.match(line):
        return _Line("rule", 0, line)
    if _HEADING.match(line):
        return _Line("heading", 0, line)
    return _Line("text", 0, line)


def _list_layout(prose: str, lines: list[_Line], counts: dict[str, int]) -> Layout | None:
    if counts["row"] >= 2 and all(
        line.text.count("|") >= 3 for line in lines if line.kind == "row"
    ):
        return Layout(Format.SIDE_BY_SIDE, (f"a table of {counts['row']} rows",))
    numbers = [line.number for line in lines if line.kind == "number"]
    if numbers and counts["bullet"]:
        return Layout(Format.BROKEN, ("numbers and bullets mixed at one level",))
    if numbers and not _ascending(numbers):
        return Layout(Format.BROKEN, (f"numbers out of order: {numbers[:8]}",))
    if len(numbers) + counts["bullet"] < 2:
        return None
    if _cue("points_for").search(prose) and _cue("points_against").search(prose):
        return Layout(Format.POINT_COUNTERPOINT, ("a list of points for and against",))
    if len(numbers) >= 2:
        return Layout(Format.STEP_LIST, (f"{len(numbers)} numbered lines in order",))
    items = [line.text for line in lines if line.kind == "bullet"]
    labels = {match[1] for item in items if (match := _LABEL.match(item))}
    headings = sum(line.kind == "heading" for line in lines)
    if len(labels) >= 2 or headings >= 2:
        return Layout(Format.SIDE_BY_SIDE, (f"{max(len(labels), headings)} labelled sides",))
    return Layout(Format.BULLET_LIST, (f"{counts['bullet']} bullets",))


def _ascending(numbers: list[int]) -> bool:
    """True if the numbers ascend one by one; a new list may start again at 1."""
    return numbers[0] in (0, 1) and all(
        after in (before + 1, 1) for before, after in pairwise(numbers)
    )


def _counterpoint(prose: str) -> Layout | None:
    """Layout of prose that sets one side against another; None for other prose."""
    if (first := _cue("points_for").search(prose)) and (
        second := _cue("points_against").search(prose)
    ):
        return Layout(Format.POINT_COUNTERPOINT, (first[0].lower(), second[0].lower()))
    paragraphs = [block for block in re.split(r"\n\s*\n", prose) if block.strip()]
    for paragraph in paragraphs[1:]:
        if counter := _cue("counters").match(paragraph.lstrip()):
            return Layout(Format.POINT_COUNTERPOINT, (f"a paragraph opens with {counter[0]!r}",))
    return None


@cache
def _cue(kind: str) -> re.Pattern[str]:
    """A pattern of the words in one list of the lexicon."""
    words = "|".join(lexicon("intent_words")[kind])
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
