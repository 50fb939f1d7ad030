"""Structure score: what a question's intent expects of layout, length and words (SCK 2.2)."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Score
from judges.sck.language import Reading
from judges.sck.report import Feature, FeatureWeights, Intent, StructureReport, combine


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


ENOUGH_KEYWORDS = 2
"""Distinct keywords for the full score."""


def _expectation(
    intent: Intent,
    length: tuple[int, int],
    tenses: str,
    persons: str,
    layout: str,
    scores: tuple[float, ...],
) -> Expectation:
    keywords = tuple(lexicon("intent_words").get(intent.value, ()))
    formats = dict(zip(Format, (*scores, 0.0, 0.0), strict=True))
    words = (tuple(tenses.split()), keywords, tuple(persons.split()))
    return Expectation(length, *words, formats, layout)


EXPECTATIONS: Mapping[Intent, Expectation] = {
    row[0]: _expectation(*row)
    for row in (
        (Intent.INSTRUCTION, (15, 200), "present future", "2nd", "step-by-step list",
         (1.0, 0.7, 0.3, 0.3, 0.5, 0.4, 0.4, 0.5)),
        (Intent.REASON, (15, 200), "present past", "3rd 2nd", "sentences, short paragraph",
         (0.5, 0.5, 0.5, 0.5, 0.7, 1.0, 1.0, 0.2)),
        (Intent.EVIDENCE, (60, 400), "past", "3rd", "paragraph",
         (0.5, 0.5, 0.5, 0.5, 0.9, 1.0, 0.6, 0.2)),
        (Intent.COMPARISON, (60, 200), "present past", "3rd", "side-by-side list",
         (0.3, 0.7, 1.0, 0.6, 0.5, 0.4, 0.3, 0.2)),
        (Intent.EXPERIENCE, (60, 400), "past", "1st", "paragraphs",
         (0.3, 0.4, 0.5, 0.5, 1.0, 0.9, 0.6, 0.2)),
        (Intent.DEBATE, (60, 400), "present past", "1st 3rd", "point-counterpoint paragraphs",
         (0.1, 0.4, 0.6, 1.0, 0.7, 0.5, 0.3, 0.2)),
        (Intent.FACTOID, (1, 60), "present past", "3rd", "sentences",
         (0.3, 0.5, 0.5, 0.5, 0.5, 0.8, 1.0, 0.2)),
        (Intent.NONE, (1, 400), "present past future", "1st 2nd 3rd", "any, unbroken",
         (0.8, 0.8, 0.8, 0.8, 1.0, 1.0, 1.0, 0.5)),
    )
}  # fmt: skip
"""Table 2 with the keywords of the lexicon and two more rows: factoid, and no intent.

Each row has least and most words, tenses, persons, and the layout with a score for each ``Format``
but broken and empty ones, which score 0. The paper gives no numbers of words: a short answer starts
at 15 (a sentence), a moderate one has 60 to 200 (a paragraph or two), a long one at most 400 (a
page).
"""


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


_MARKERS = (
    ("rule", re.compile(r"\s*\|([\s|:=_*-]*)\|\s*$")),
    ("row", re.compile(r"(\s*\|.*\|\s*)$")),
    (
        "number",
        re.compile(r"(?i)\s*(?:\*\*)?(?:step\s+)?\(?(\d{1,3})(?:[.):](?:\*\*)?|\*\*[.):]?)\s+"),
    ),
    ("nested bullet", re.compile(r"\s{2,}[-*+•‣◦–]\s+(.*)")),
    ("bullet", re.compile(r"\s*[-*+•‣◦–]\s+(.*)")),
    ("rule", re.compile(r"([\s|:=_*-]*)$")),
    ("heading", re.compile(r"(\s*#{1,6}\s+|\s*\*\*[^*]+\*\*:?\s*$|[^.!?]{1,60}:\s*$)")),
)
"""Kinds of lines by their markers, with what is read of each; the first that matches counts."""


def detect(answer: str) -> Layout:
    """Detect the layout of an answer, which may be Markdown.

    A list has at least two lines with its marker. The numbers of a step list ascend one by one;
    numbers out of order, or markers of several kinds at one level, are a broken layout.
    """
    prose = _without_code(answer)
    if not prose.strip():
        return Layout(Format.CODE, ("only code",)) if answer.strip() else Layout(Format.EMPTY, ())
    listed = _list_layout(prose)
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
    sentences = max(1, len(re.findall(r"[.!?][\"”’')*_]*(?=\s|$)", prose)))
    kind = Format.SENTENCES if sentences <= 2 else Format.PARAGRAPH
    return Layout(kind, (f"{sentences} sentences in one paragraph",))


def _without_code(answer: str) -> str:
    """Replace each block of code by a blank line; an unclosed block extends to the end."""
    kept: list[str] = []
    inside, fences = False, ("```", "~~~")
    for line in answer.split("\n"):
        if inside:
            inside = line.strip() not in fences
            continue
        inside = line.lstrip().startswith(fences)
        kept.append("" if inside else line)
    return "\n".join(kept)


def _list_layout(prose: str) -> Layout | None:
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for line in filter(str.strip, prose.splitlines()):
        matches = ((kind, pattern.match(line)) for kind, pattern in _MARKERS)
        kind, text = next(((kind, match[1]) for kind, match in matches if match), ("text", line))
        lines[kind].append(text)
    rows = lines["row"]
    if len(rows) >= 2 and all(row.count("|") >= 3 for row in rows):
        return Layout(Format.SIDE_BY_SIDE, (f"a table of {len(rows)} rows",))
    numbers, items = list(map(int, lines["number"])), lines["bullet"]
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
    label = re.compile(r"(?:\*\*)?([A-Z0-9][^:*]{0,40}?)(?:\*\*)?:(?:\*\*)?\s+\S")
    labels = {match[1] for match in map(label.match, items) if match}
    sides = max(len(labels), len(lines["heading"]))
    if sides >= 2:
        return Layout(Format.SIDE_BY_SIDE, (f"{sides} labelled sides",))
    return Layout(Format.BULLET_LIST, (f"{len(items)} bullets",))


@cache
def _cue(kind: str) -> re.Pattern[str]:
    """A pattern of the words in one list of the lexicon."""
    words = "|".join(lexicon("intent_words")[kind])
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
