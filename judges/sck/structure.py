"""Structure score: what the intent of a question expects of its answer (SCK 2.2, Table 2)."""

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
        length: Words the answer should have, from and to.
        tenses: Tenses it should be in.
        keywords: Words it should use.
        persons: Persons of its pronouns; impersonal text counts as third person.
        formats: Score of each layout, 1 for the one the table names; others 0.
        format_name: What the table calls the layout.
    """

    length: tuple[int, int]
    tenses: tuple[str, ...]
    keywords: tuple[str, ...]
    persons: tuple[str, ...]
    formats: Mapping[Format, float]
    format_name: str


SHORT, MODERATE, LONG = 15, 60, 400
"""Words at which a short, a moderate and the end of a long answer lie. The paper gives no
numbers; these stand for a sentence, a paragraph and a page."""

MODERATE_END = 200
"""Words at which a moderate answer ends: about two paragraphs."""

ENOUGH_KEYWORDS = 2
"""Different keywords that earn the full score."""


def _formats(
    *best: Format,
    lists: float,
    paragraph: float,
    paragraphs: float,
    sentences: float,
    sides: float = 0.5,
    steps: float | None = None,
    code: float = 0.2,
) -> dict[Format, float]:
    """Scores of the layouts; ``best`` get 1, broken and empty ones 0."""
    scores = {
        Format.BULLET_LIST: lists,
        Format.STEP_LIST: lists if steps is None else steps,
        Format.SIDE_BY_SIDE: sides,
        Format.POINT_COUNTERPOINT: sides,
        Format.PARAGRAPH: paragraph,
        Format.PARAGRAPHS: paragraphs,
        Format.SENTENCES: sentences,
        Format.CODE: code,
        Format.BROKEN: 0.0,
        Format.EMPTY: 0.0,
    }
    return scores | dict.fromkeys(best, 1.0)


def _words(intent: Intent) -> tuple[str, ...]:
    """The keywords that an answer to such a question uses."""
    return tuple(lexicon("intent_words")[intent.value])


EXPECTATIONS: Mapping[Intent, Expectation] = {
    Intent.INSTRUCTION: Expectation(
        (SHORT, MODERATE_END),
        ("present", "future"),
        _words(Intent.INSTRUCTION),
        ("2nd",),
        _formats(
            Format.STEP_LIST,
            lists=0.7,
            paragraph=0.4,
            paragraphs=0.5,
            sentences=0.4,
            sides=0.3,
            code=0.5,
        ),
        "step-by-step list",
    ),
    Intent.REASON: Expectation(
        (SHORT, MODERATE_END),
        ("present", "past"),
        _words(Intent.REASON),
        ("3rd", "2nd"),
        _formats(
            Format.SENTENCES, Format.PARAGRAPH, lists=0.5, paragraph=1, paragraphs=0.7, sentences=1
        ),
        "sentences, short paragraph",
    ),
    Intent.EVIDENCE: Expectation(
        (MODERATE, LONG),
        ("past",),
        _words(Intent.EVIDENCE),
        ("3rd",),
        _formats(Format.PARAGRAPH, lists=0.5, paragraph=1, paragraphs=0.9, sentences=0.6),
        "paragraph",
    ),
    Intent.COMPARISON: Expectation(
        (MODERATE, MODERATE_END),
        ("present", "past"),
        _words(Intent.COMPARISON),
        ("3rd",),
        _formats(
            Format.SIDE_BY_SIDE,
            lists=0.7,
            paragraph=0.4,
            paragraphs=0.5,
            sentences=0.3,
            sides=0.6,
            steps=0.3,
        ),
        "side-by-side list",
    ),
    Intent.EXPERIENCE: Expectation(
        (MODERATE, LONG),
        ("past",),
        _words(Intent.EXPERIENCE),
        ("1st",),
        _formats(
            Format.PARAGRAPHS, lists=0.4, paragraph=0.9, paragraphs=1, sentences=0.6, steps=0.3
        ),
        "paragraphs",
    ),
    Intent.DEBATE: Expectation(
        (MODERATE, LONG),
        ("present", "past"),
        _words(Intent.DEBATE),
        ("1st", "3rd"),
        _formats(
            Format.POINT_COUNTERPOINT,
            lists=0.4,
            paragraph=0.5,
            paragraphs=0.7,
            sentences=0.3,
            sides=0.6,
            steps=0.1,
        ),
        "point-counterpoint paragraphs",
    ),
    Intent.FACTOID: Expectation(
        (1, MODERATE),
        ("present", "past"),
        (),
        ("3rd",),
        _formats(
            Format.SENTENCES, lists=0.5, paragraph=0.8, paragraphs=0.5, sentences=1, steps=0.3
        ),
        "sentences",
    ),
    Intent.NONE: Expectation(
        (1, LONG),
        ("present", "past", "future"),
        (),
        ("1st", "2nd", "3rd"),
        _formats(
            Format.PARAGRAPH, lists=0.8, paragraph=1, paragraphs=1, sentences=1, sides=0.8, code=0.5
        ),
        "any, unbroken",
    ),
}
"""Table 2, with graded layouts, and two rows it lacks: factoid answers, and no intent at all."""


def score_structure(
    answer: str,
    reading: Reading,
    layout: Layout,
    question_intents: Mapping[str, float],
    answer_intents: Mapping[str, float] | None,
    weights: FeatureWeights,
) -> StructureReport:
    """Score one answer's structure.

    Args:
        answer: The answer.
        reading: Its words.
        layout: Its layout.
        question_intents: Distribution of the question's intent over all eight classes.
        answer_intents: The same for the answer after alignment; None where no model gives it.
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
        answer_intents=dict(answer_intents or {}),
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


def _alignment(
    intent: Intent, question: Mapping[str, float], answer: Mapping[str, float] | None
) -> _Row:
    wanted = f"reads like {intent}"
    if intent is Intent.NONE:
        return _Row("not asked", "any", Score(reason="the question has no intent"))
    if answer is None:
        return _Row("not asked", wanted, Score(reason="no model tells the intent of answers"))
    reads = seven(answer)
    best = max(reads, key=lambda name: reads[name])
    value = agreement(seven(question), reads)
    return _Row(f"reads like {best} ({reads[best]:.2f})", wanted, Score(value=value))
