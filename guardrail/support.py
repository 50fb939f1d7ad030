"""Which triples a sentence states, by exact evidence and the judge's word.

The decisions are rules over exact evidence and the judge's probabilities, each with a named
threshold, so that a reader can follow why a phrase was marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from guardrail.degrees import attribute_of
from guardrail.matching import NEAR, Match
from guardrail.naming import SentenceTokens, Span
from guardrail.quantities import quantity_of
from guardrail.text.values import Date, parse_date
from guardrail.truths import names_property, truth_value
from guardrail.types import NLIScores, Triple
from guardrail.vocabulary import (
    describes_entity,
    is_functional,
    is_nationality,
    is_personal,
    needs_word,
    property_words,
)

__all__ = [
    "Thresholds",
    "accepted",
    "attached_dates",
    "is_name",
    "needs_nli",
    "settled",
    "touches",
]

COUNTING = ("number of ", "count of ")
"""How labels of counts begin."""


class Thresholds(NamedTuple):
    """Probabilities at which the judge's word counts.

    They were fitted for the shipped judge with ``guardrail.benchmarks.attribution``, on the part
    ``develop`` and, for ``lack_soft``, ``lack_kind`` and ``lack_degree``, on ``seen`` as well;
    ``stated`` is the largest of 0.15, 0.3 and 0.5 that cost the recall of triples less than 0.01.

    Attributes:
        entailment: Enough where value and subject stand in the sentence; and of a window of a
            passage.
        entailment_alone: Enough where the value stands there in part or in other words; and of a
            window that lacks a name, date or number of the sentence.
        entailment_veto: A value, subject and property word found exactly are still refused below.
        contradiction: Enough where exact evidence conflicts as well.
        contradiction_alone: Enough where the property is named but no conflicting value is found.
        stated: Where no word for the property stands in the sentence, a triple is refused if the
            judge can tell that the sentence states its relation, and gives that less.
        lack_hard: Least doubt of the attribution judge, that is 1 - P(supportive), for a left-over
            name to mark the sentence ``[NA]``.
        lack_number: The same for a left-over date or number.
        lack_soft: The same for a left-over term or quality.
        lack_relation: The same for a left-over relation.
        lack_bare: The same for a phrase of a predicate of which nothing is supported.
        lack_kind: The same for a noun of no evidence that tells what kind of thing is spoken of.
        lack_degree: The same for the degree of something of which no evidence speaks.
        lack_alone: The same where nothing is left over.
    """

    entailment: float = 0.5
    entailment_alone: float = 0.8
    entailment_veto: float = 0.05
    contradiction: float = 0.5
    contradiction_alone: float = 0.97
    stated: float = 0.3
    lack_hard: float = 0.2
    lack_number: float = 0.4
    lack_soft: float = 0.85
    lack_relation: float = 0.9
    lack_bare: float = 0.5
    lack_kind: float = 0.6
    lack_degree: float = 0.15
    lack_alone: float = 0.99


def needs_nli(match: Match, *, few: bool) -> bool:
    """Whether the judge should be asked if the sentence entails a triple.

    Args:
        match: How the triple stands in the sentence.
        few: The evidence is so small that the judge can be asked about every triple of it.
    """
    if match.subject in ("foreign", "other") or match.by_wider:
        return False  # and no judge can know what lies in what
    if match.value_share > 0.0:
        return not _unworded(match)
    if few and not is_name(match.triple.value):
        return True
    # Another value may be told: the judge is asked, except for dates, which conflict exactly.
    return (
        bool(match.cue_spans)
        and match.subject in ("explicit", "antecedent")
        and is_functional(match.triple.property)
        and parse_date(match.triple.value) is None
    )


def settled(match: Match, tokens: SentenceTokens, matches: Sequence[Match]) -> bool:
    """Whether a value stands beside its own property's word, so that nothing is left to judge.

    So it is with a date attached to the word, with any other value that no other triple claims
    and that the word stands shortly before, with a nationality, which needs no word, with a truth
    value whose property is named in full, and with a wider place, of which the graph knows best.
    """
    triple = match.triple
    if match.asked:
        return True
    if match.by_wider:
        return bool(match.cue_spans) and match.subject in ("explicit", "antecedent")
    if match.value_share < 1.0 or match.inverse or match.subject not in ("explicit", "antecedent"):
        return False
    if truth_value(triple.value) is not None:
        return names_property(triple.property, tokens.by_stem)
    if tokens.negated:
        return False
    if parse_date(triple.value) is not None:
        attached = attached_dates(tokens, match, matches)
        return any((date.start, date.end) in match.value_spans for date in attached)
    if is_nationality(triple.property) and match.value_spans:
        return True
    return _cue_distance(match) <= NEAR and not any(
        other.number != match.number and touches(span, other.value_spans)
        for other in matches
        for span in match.value_spans
    )


def accepted(
    matches: Sequence[Match], scores: Mapping[int, NLIScores] | None, limits: Thresholds
) -> list[Match]:
    """The triples that the sentence states, in evidence order.

    Args:
        matches: The triples found in the sentence.
        scores: The judge's word on those it was asked about, by place in the evidence; None
            without a judge.
        limits: The thresholds.
    """
    if scores is None:
        kept = [match for match in matches if _accept(match, None, limits)]
    else:
        kept = [
            match
            for match in matches
            if match.number in scores and _accept(match, scores[match.number], limits)
        ]
    return [match for match in kept if not _outdone(match, kept)]


def _accept(match: Match, score: NLIScores | None, limits: Thresholds) -> bool:
    if match.subject in ("foreign", "other"):
        return False
    known = match.subject in ("explicit", "antecedent")
    full = match.value_share >= 1.0
    worded = bool(match.cue_spans) or match.asked or describes_entity(match.triple.property)
    if _unworded(match) or (not worded and _is_count(match.triple)):
        return False
    if score is None:
        return full and known and worded
    if not worded and _differs(score, limits):
        return False
    if full and known and worded:
        return score.entailment >= limits.entailment_veto
    if full:
        return score.entailment >= limits.entailment
    if match.value_share == 0.0 and is_name(match.triple.value):
        return False
    return score.entailment >= limits.entailment_alone


def _differs(score: NLIScores, limits: Thresholds) -> bool:
    """Whether the judge can tell that the sentence states another relation of the same names."""
    return score.stated is not None and score.stated < limits.stated


def _is_count(triple: Triple) -> bool:
    """Whether a number says how many there are, or a rating: the sentence has to say of what."""
    words = property_words(triple.property)
    counts = words.startswith(COUNTING) or attribute_of(triple.property) is not None
    return counts and quantity_of(triple.value) is not None


def _unworded(match: Match) -> bool:
    """Whether the word is missing without which prose does not state the triple's property."""
    return not match.cue_spans and not match.asked and needs_word(match.triple.property)


def is_name(value: str) -> bool:
    """Whether a value is a name, date or number, which no other words can stand for."""
    named = any(part[:1].isupper() or part[:1].isdigit() for part in value.split())
    return named or quantity_of(value) is not None


def _outdone(match: Match, kept: Sequence[Match]) -> bool:
    """Whether another triple words the same value better: died in Rome, not born in Rome."""
    if not match.value_spans:
        return False
    if any(_part_of_name(match, other) or _holds(match, other) for other in kept):
        return True
    distance = _cue_distance(match)
    for other in kept:
        if (
            other.number != match.number
            and other.triple.subject == match.triple.subject
            and other.triple.property != match.triple.property
            and set(other.value_spans) & set(match.value_spans)
            and other.cue_spans
            and not describes_entity(match.triple.property)
            and _cue_distance(other) < distance
        ):
            return True
    return False


def _part_of_name(match: Match, other: Match) -> bool:
    """Whether a value is found in nothing but pieces of a longer value of another triple.

    The word of its property makes it one of its own; where that is told of persons, the word has
    to stand right before: *born in Memphis, Tennessee*, but not *born in 1950 and taught at the
    University of Memphis*.
    """
    return (
        other.value_share >= 1.0
        and not (match.cue_spans and not is_personal(match.triple.property))
        and _cue_distance(match) > NEAR
        and other.triple.value != match.triple.value
        and all(
            any(
                start <= first and last <= end and end - start > last - first
                for start, end in other.value_spans
            )
            for first, last in match.value_spans
        )
    )


def _holds(match: Match, other: Match) -> bool:
    """Whether another triple has for its value the very place that only holds a match's own."""
    return (
        match.by_wider
        and not other.by_wider
        and other.triple.subject == match.triple.subject
        and other.triple.property == match.triple.property
        and any(touches(span, other.value_spans) for span in match.value_spans)
    )


def _cue_distance(match: Match) -> float:
    """Characters between the value and the nearest word that names the property before it."""
    best = float("inf")
    for start, end in match.value_spans:
        for first, last in match.cue_spans:
            gap = start - last if last <= start else 1.5 * max(0, first - end)
            best = min(best, gap)
    return best


def attached_dates(tokens: SentenceTokens, match: Match, matches: Sequence[Match]) -> list[Date]:
    """The dates that the sentence gives for the property of a match."""
    words = property_words(match.triple.property)
    period = tokens.lifetime(words)
    if period is not None:
        return [date for date in tokens.dates if period[0] <= date.start and date.end <= period[1]]
    rivals = [
        span
        for other in matches
        if property_words(other.triple.property) != words
        for span in other.cue_spans
        if span not in match.cue_spans
    ]
    attached = []
    for date in tokens.dates:
        for _, end in match.cue_spans:
            between = (end, date.start)
            if 0 <= date.start - end <= 80 and not any(
                between[0] <= start and stop <= between[1] for start, stop in rivals
            ):
                attached.append(date)
                break
    return attached


def touches(span: Span, spans: Sequence[Span]) -> bool:
    """Whether a stretch shares a character with one of several."""
    return any(span[0] < end and start < span[1] for start, end in spans)
