"""Spans: which words of a sentence are carried, which are not, and which are contradicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.words import fold, meets, plain
from guardrail.core.types import Effect, Finding, Span, SpanKind, Triple, Verdict, WordScore

if TYPE_CHECKING:
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.combination import Outcome
    from guardrail.verdict.premises import Premises

__all__ = ["spans_of"]

SURE = 0.5
"""Least probability at which a word counts as missing or contradicted."""


class _Stretch(NamedTuple):
    """Characters of a sentence with their verdict."""

    start: int
    end: int
    kind: SpanKind
    triple: Triple | None = None


def spans_of(
    claim: Claim, evidence: Premises, outcome: Outcome, findings: Sequence[Finding]
) -> tuple[Span, ...]:
    """Phrases by support, in order, not overlapping; offsets count the answer's characters.

    What is contradicted goes before what is missing, and that before what is carried. A sentence
    that lacks support always has a span that says so, its whole text where no word is known.
    """
    if outcome.verdict is Verdict.NO_CLAIM:
        return ()
    wanted = _refused(claim, evidence, outcome, findings)
    if claim.answers is None:
        wanted += _carried(claim, evidence, outcome)
    chosen: list[_Stretch] = []
    for item in wanted:
        if item.start < item.end and not meets(item[:2], [other[:2] for other in chosen]):
            chosen.append(item)
    offset = claim.stretch.start
    return tuple(
        Span(
            text=claim.place.text[item.start : item.end],
            start=offset + item.start,
            end=offset + item.end,
            kind=item.kind,
            triple=item.triple,
        )
        for item in sorted(chosen)
    )


def _refused(
    claim: Claim, evidence: Premises, outcome: Outcome, findings: Sequence[Finding]
) -> list[_Stretch]:
    if outcome.verdict is Verdict.SUPPORTED:
        return []
    against = outcome.verdict is Verdict.CONTRADICTED
    kind = SpanKind.CONTRADICTED if against else SpanKind.NA
    effect = Effect.CONTRADICTS if against else Effect.MISSING
    number = outcome.against
    triple = None if number is None else evidence.indexed.statements[number].triple
    triple = triple if against else None
    offset = claim.stretch.start
    found = [
        _Stretch(finding.start - offset, finding.end - offset, kind, triple)
        for finding in findings
        if finding.effect is effect
    ]
    words = evidence.grounding.words if evidence.grounding else ()
    if not found or not against:
        found += [_Stretch(start, end, kind, triple) for start, end in _runs(claim, words, against)]
    if against:
        missing = _runs(claim, words, False)
        found += [_Stretch(start, end, SpanKind.NA) for start, end in missing if found]
    if not found:
        found = [_Stretch(0, len(claim.place.text), kind, triple)]
    return found


def _runs(claim: Claim, words: Sequence[WordScore], against: bool) -> list[tuple[int, int]]:
    """Neighbouring words that are missing, or contradicted, as runs; function words join them."""
    light = lexicon_set("function_words", "stop_words")
    runs: list[tuple[int, int]] = []
    run: list[WordScore] = []
    for word in words:
        hit = (word.contradicted if against else word.missing) >= SURE
        empty = fold(claim.text[word.start : word.end]) in light
        if hit or (run and empty):
            run.append(word)
            continue
        if run:
            runs += _trimmed(claim, run, light)
        run = []
    return runs + (_trimmed(claim, run, light) if run else [])


def _trimmed(
    claim: Claim, words: Sequence[WordScore], light: frozenset[str]
) -> list[tuple[int, int]]:
    """A run without the function words at its ends; nothing where it has no others."""
    full = [word for word in words if fold(claim.text[word.start : word.end]) not in light]
    return [(full[0].start, full[-1].end)] if full else []


def _carried(claim: Claim, evidence: Premises, outcome: Outcome) -> list[_Stretch]:
    """Spans of the values of the supporting statements in the sentence."""
    text = plain(claim.text)
    found: list[_Stretch] = []
    for number in outcome.carried:
        statement = evidence.indexed.statements[number]
        for start, end in statement.stands_in(text, claim.tokens, claim.values)[:1]:
            found.append(_Stretch(start, end, SpanKind.SUPPORTED, statement.triple))
    prose = any(evidence.indexed.statements[number].triple is None for number in outcome.carried)
    if prose and outcome.verdict is Verdict.UNSUPPORTED and evidence.grounding:
        inverted = [
            word.model_copy(update={"missing": 1.0 - word.missing})
            for word in evidence.grounding.words
        ]
        runs = _runs(claim, inverted, False)
        found += [_Stretch(start, end, SpanKind.SUPPORTED) for start, end in runs]
    return found
