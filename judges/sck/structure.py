"""Structure score: what a question's intent expects of layout, length and words (SCK 2.2)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Score
from judges.sck.language import Reading
from judges.sck.report import Feature, FeatureWeights, Intent, StructureReport, combine

__all__ = [
    "EXPECTATIONS",
    "Expectation",
    "Format",
    "Layout",
    "agreement",
    "detect",
    "score_structure",
    "seven",
]


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


class Expectation(NamedTuple):
    """One row of Table 2.

    Attributes:
        length: Least and most words.
        tenses: Expected tenses.
        keywords: Expected words.
        persons: Expected persons of pronouns; impersonal text counts as third person.
        formats: Score of each layout: 1 for that of the table, 0 for one that is not listed.
        format_name: The layout in the words of the table.
    """

    length: tuple[int, int]
    tenses: tuple[str, ...]
    keywords: tuple[str, ...]
    persons: tuple[str, ...]
    formats: Mapping[Format, float]
    format_name: str


SHORT, MODERATE, LONG = 15, 60, 400
"""Least words of a short and of a moderate answer, and most words of a long one. The paper gives
no numbers; these are a sentence, a paragraph and a page."""

MODERATE_END = 200
"""Most words of a moderate answer: about two paragraphs."""

ENOUGH_KEYWORDS = 2
"""Distinct keywords for the full score."""

LAYOUT_SCORES: Mapping[Intent, tuple[float, ...]] = {
    Intent.INSTRUCTION: (1.0, 0.7, 0.3, 0.3, 0.5, 0.4, 0.4, 0.5),
    Intent.REASON: (0.5, 0.5, 0.5, 0.5, 0.7, 1.0, 1.0, 0.2),
    Intent.EVIDENCE: (0.5, 0.5, 0.5, 0.5, 0.9, 1.0, 0.6, 0.2),
    Intent.COMPARISON: (0.3, 0.7, 1.0, 0.6, 0.5, 0.4, 0.3, 0.2),
    Intent.EXPERIENCE: (0.3, 0.4, 0.5, 0.5, 1.0, 0.9, 0.6, 0.2),
    Intent.DEBATE: (0.1, 0.4, 0.6, 1.0, 0.7, 0.5, 0.3, 0.2),
    Intent.FACTOID: (0.3, 0.5, 0.5, 0.5, 0.5, 0.8, 1.0, 0.2),
    Intent.NONE: (0.8, 0.8, 0.8, 0.8, 1.0, 1.0, 1.0, 0.5),
}
"""Score of each layout by intent, in the order of ``Format``: steps, list, sides, points,
paragraphs, one paragraph, sentences, code. Broken and empty layouts score 0."""

_BRIEF, _FULL = (SHORT, MODERATE_END), (MODERATE, LONG)
_NOW_OR_PAST = ("present", "past")
_FORMS: Mapping[Intent, tuple[tuple[int, int], tuple[str, ...], tuple[str, ...], str]] = {
    Intent.INSTRUCTION: (_BRIEF, ("present", "future"), ("2nd",), "step-by-step list"),
    Intent.REASON: (_BRIEF, _NOW_OR_PAST, ("3rd", "2nd"), "sentences, short paragraph"),
    Intent.EVIDENCE: (_FULL, ("past",), ("3rd",), "paragraph"),
    Intent.COMPARISON: ((MODERATE, MODERATE_END), _NOW_OR_PAST, ("3rd",), "side-by-side list"),
    Intent.EXPERIENCE: (_FULL, ("past",), ("1st",), "paragraphs"),
    Intent.DEBATE: (_FULL, _NOW_OR_PAST, ("1st", "3rd"), "point-counterpoint paragraphs"),
    Intent.FACTOID: ((1, MODERATE), _NOW_OR_PAST, ("3rd",), "sentences"),
    Intent.NONE: ((1, LONG), (*_NOW_OR_PAST, "future"), ("1st", "2nd", "3rd"), "any, unbroken"),
}
"""Length, tenses, persons and layout of Table 2, with two more rows: factoid, and no intent."""


def _expectation(intent: Intent) -> Expectation:
    length, tenses, persons, layout = _FORMS[intent]
    keywords = tuple(lexicon("intent_words").get(intent.value, ()))
    scores = dict(zip(Format, (*LAYOUT_SCORES[intent], 0.0, 0.0), strict=True))
    return Expectation(length, tenses, keywords, persons, scores, layout)


EXPECTATIONS: Mapping[Intent, Expectation] = {intent: _expectation(intent) for intent in Intent}
"""Table 2 with graded layouts and the keywords of the lexicon."""


class _Row(NamedTuple):
    found: str
    expected: str
    score: Score


def score_structure(
    answer: str,
    reading: Reading,
    question_intents: Mapping[str, float],
    answer_intents: Mapping[str, float],
    weights: FeatureWeights,
) -> StructureReport:
    """Score one answer's structure.

    Args:
        answer: The answer.
        reading: Its words.
        question_intents: Distribution of the question's intent over all eight classes.
        answer_intents: The same for the answer after alignment.
        weights: Weights of the features.
    """
    intent = max(Intent, key=lambda item: question_intents.get(item, 0.0))
    expected = EXPECTATIONS[intent]
    rows = {
        "length": _length(reading, expected),
        "tense": _share(reading.tenses, expected.tenses, "the answer has no finite verb"),
        "keywords": _keywords(answer, expected),
        "pronoun": _pronoun(reading, expected),
        "format": _format(detect(answer), expected),
        "alignment": _alignment(intent, question_intents, answer_intents),
    }
    score, parts = combine(
        [(name, row.score, getattr(weights, name)) for name, row in rows.items()],
        what="the structure score",
    )
    return StructureReport(
        score=score,
        intent=intent,
        question_intents=dict(question_intents),
        answer_intents=dict(answer_intents),
        features=tuple(
            Feature(name=part.name, found=row.found, expected=row.expected, part=part)
            for part, row in zip(parts, rows.values(), strict=True)
        ),
    )


def _length(reading: Reading, expected: Expectation) -> _Row:
    low, high = expected.length
    words = reading.words
    value = 1.0 if low <= words <= high else words / low if words < low else high / words
    return _Row(f"{words} words", f"{low} to {high} words", Score(value=value))


def _share(counts: Mapping[str, int], wanted: tuple[str, ...], nothing: str) -> _Row:
    total = sum(counts.values())
    found = ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
    share = sum(counts.get(name, 0) for name in wanted) / max(1, total)
    score = Score(value=share) if total else Score(reason=nothing)
    return _Row(found, " or ".join(wanted), score)


def _pronoun(reading: Reading, expected: Expectation) -> _Row:
    if not reading.words or any(reading.persons.values()):
        return _share(reading.persons, expected.persons, "the answer has no words")
    score = Score(value=1.0 if "3rd" in expected.persons else 0.0)
    return _Row("impersonal", " or ".join(expected.persons), score)


def _keywords(answer: str, expected: Expectation) -> _Row:
    if not expected.keywords:
        return _Row("not asked", "none", Score(reason="this intent has no keywords"))
    low = answer.lower()
    found = [word for word in expected.keywords if re.search(rf"\b{word}\b", low)]
    value = min(1.0, len(found) / ENOUGH_KEYWORDS)
    wanted = f"{ENOUGH_KEYWORDS} of: {', '.join(expected.keywords)}"
    return _Row(", ".join(found) or "none", wanted, Score(value=value))


def _format(layout: Layout, expected: Expectation) -> _Row:
    found = f"{layout.format} ({'; '.join(layout.signs)})" if layout.signs else layout.format.value
    if layout.format is Format.EMPTY:
        return _Row(found, expected.format_name, Score(reason="the answer is empty"))
    return _Row(found, expected.format_name, Score(value=expected.formats[layout.format]))


def _alignment(intent: Intent, question: Mapping[str, float], answer: Mapping[str, float]) -> _Row:
    if intent is Intent.NONE:
        return _Row("not asked", "any", Score(reason="the question has no intent"))
    reads = seven(answer)
    best = max(reads, key=lambda name: reads[name])
    value = agreement(seven(question), reads)
    found = f"reads like {best} ({reads[best]:.2f})"
    return _Row(found, f"reads like {intent}", Score(value=value))


def seven(scores: Mapping[str, float]) -> dict[str, float]:
    """The distribution over the seven intents alone, given that there is one."""
    kept = {intent.value: scores.get(intent, 0.0) for intent in Intent if intent != Intent.NONE}
    total = sum(kept.values())
    if total <= 0:
        return dict.fromkeys(kept, 1 / len(kept))
    return {name: share / total for name, share in kept.items()}


def agreement(question: Mapping[str, float], answer: Mapping[str, float]) -> float:
    """Agreement of two intent distributions: 1 - Jensen-Shannon divergence in bits, in [0, 1]."""
    divergence = 0.0
    for name in {**question, **answer}:  # in a fixed order: sums depend on it
        left, right = question.get(name, 0.0), answer.get(name, 0.0)
        middle = (left + right) / 2
        for share in (left, right):
            if share > 0:
                divergence += share * math.log2(share / middle) / 2
    return min(1.0, max(0.0, 1.0 - divergence))


# --- Layout -------------------------------------------------------------------------------------


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
    """Detect the layout of an answer, which may be Markdown.

    A list has at least two lines with its marker. The numbers of a step list ascend one by one;
    numbers out of order, or markers of several kinds at one level, are a broken layout.
    """
    prose = _without_code(answer)
    if not prose.strip():
        return Layout(Format.CODE, ("only code",)) if answer.strip() else Layout(Format.EMPTY, ())
    listed = _list_layout(prose, [_line(line) for line in prose.splitlines() if line.strip()])
    if listed is not None:
        return listed
    first, second = _cue("points_for").search(prose), _cue("points_against").search(prose)
    if first and second:
        return Layout(Format.POINT_COUNTERPOINT, (first[0].lower(), second[0].lower()))
    paragraphs = [block for block in re.split(r"\n\s*\n", prose) if block.strip()]
    for paragraph in paragraphs[1:]:
        if counter := _cue("counters").match(paragraph.lstrip()):
            return Layout(Format.POINT_COUNTERPOINT, (f"a paragraph opens with {counter[0]!r}",))
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


def _line(line: str) -> _Line:
    if _ROW.match(line):
        return _Line("rule" if _RULE.match(line) else "row", 0, line)
    if number := _NUMBER.match(line):
        return _Line("number", int(number[1]), line[number.end() :])
    if bullet := _BULLET.match(line):
        indent = len(line) - len(line.lstrip())
        return _Line("nested" if indent >= 2 else "bullet", 0, line[bullet.end() :])
    if _RULE.match(line):
        return _Line("rule", 0, line)
    return _Line("heading" if _HEADING.match(line) else "text", 0, line)


def _list_layout(prose: str, lines: list[_Line]) -> Layout | None:
    rows = [line.text for line in lines if line.kind == "row"]
    if len(rows) >= 2 and all(row.count("|") >= 3 for row in rows):
        return Layout(Format.SIDE_BY_SIDE, (f"a table of {len(rows)} rows",))
    numbers = [line.number for line in lines if line.kind == "number"]
    items = [line.text for line in lines if line.kind == "bullet"]
    if numbers and items:
        return Layout(Format.BROKEN, ("numbers and bullets mixed at one level",))
    # Numbers ascend one by one from 0 or 1; a new list may start again at 1.
    ascending = all(after in (before + 1, 1) for before, after in pairwise(numbers))
    if numbers and (numbers[0] > 1 or not ascending):
        return Layout(Format.BROKEN, (f"numbers out of order: {numbers[:8]}",))
    if len(numbers) + len(items) < 2:
        return None
    if _cue("points_for").search(prose) and _cue("points_against").search(prose):
        return Layout(Format.POINT_COUNTERPOINT, ("a list of points for and against",))
    if numbers:
        return Layout(Format.STEP_LIST, (f"{len(numbers)} numbered lines in order",))
    labels = {match[1] for item in items if (match := _LABEL.match(item))}
    headings = sum(line.kind == "heading" for line in lines)
    if len(labels) >= 2 or headings >= 2:
        return Layout(Format.SIDE_BY_SIDE, (f"{max(len(labels), headings)} labelled sides",))
    return Layout(Format.BULLET_LIST, (f"{len(items)} bullets",))


@cache
def _cue(kind: str) -> re.Pattern[str]:
    """A pattern of the words in one list of the lexicon."""
    words = "|".join(lexicon("intent_words")[kind])
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
