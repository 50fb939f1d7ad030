"""Structure score: features that the question's intent expects (SCK 2.2, Table 2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Score
from judges.sck.intents import Intent, agreement, likeliest, seven
from judges.sck.language import Reading
from judges.sck.layout import Format, Layout
from judges.sck.report import Feature, StructureReport
from judges.sck.weights import FeatureWeights, combine

__all__ = ["EXPECTATIONS", "Expectation", "score_structure"]


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


def score_structure(
    answer: str,
    reading: Reading,
    layout: Layout,
    question_intents: Mapping[str, float],
    answer_intents: Mapping[str, float],
    weights: FeatureWeights,
) -> StructureReport:
    """Score one answer's structure.

    Args:
        answer: The answer.
        reading: Its words.
        layout: Its layout.
        question_intents: Distribution of the question's intent over all eight classes.
        answer_intents: The same for the answer after alignment.
        weights: Weights of the features.
    """
    intent = likeliest(question_intents)
    expected = EXPECTATIONS[intent]
    rows = {
        "length": _length(reading, expected),
        "tense": _share(reading.tenses, expected.tenses, "the answer has no finite verb"),
        "keywords": _keywords(answer, expected),
        "pronoun": _pronoun(reading, expected),
        "format": _format(layout, expected),
        "alignment": _alignment(intent, question_intents, answer_intents),
    }
    score, parts = combine(
        [(name, row.score, getattr(weights, name)) for name, row in rows.items()],
        what="the structure score",
    )
    features = tuple(
        Feature(
            name=part.name,
            found=rows[part.name].found,
            expected=rows[part.name].expected,
            part=part,
        )
        for part in parts
    )
    return StructureReport(
        score=score,
        intent=intent,
        question_intents=dict(question_intents),
        answer_intents=dict(answer_intents),
        features=features,
    )


class _Row(NamedTuple):
    found: str
    expected: str
    score: Score


def _length(reading: Reading, expected: Expectation) -> _Row:
    low, high = expected.length
    words = reading.words
    value = 1.0 if low <= words <= high else words / low if words < low else high / words
    return _Row(f"{words} words", f"{low} to {high} words", Score(value=value))


def _share(counts: Mapping[str, int], wanted: tuple[str, ...], nothing: str) -> _Row:
    total = sum(counts.values())
    found = ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
    if not total:
        return _Row(found, " or ".join(wanted), Score(reason=nothing))
    value = sum(counts.get(name, 0) for name in wanted) / total
    return _Row(found, " or ".join(wanted), Score(value=value))


def _pronoun(reading: Reading, expected: Expectation) -> _Row:
    if not reading.words:
        return _Row("none", " or ".join(expected.persons), Score(reason="the answer has no words"))
    if not sum(reading.persons.values()):
        value = 1.0 if "3rd" in expected.persons else 0.0
        return _Row("impersonal", " or ".join(expected.persons), Score(value=value))
    return _share(reading.persons, expected.persons, "")


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
