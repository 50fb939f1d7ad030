"""Citations, notes and spans of a sentence: what carries it, what it lacks, what contradicts it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.names import find_names
from guardrail.core.text.values import Agreement, compare
from guardrail.core.text.words import content_stems, fold, meets
from guardrail.core.types import (
    Citation,
    Effect,
    Finding,
    Span,
    SpanKind,
    Triple,
    Verdict,
    WordScore,
)

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.checks.base import Premises
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.combination import Outcome

MIN_CARRIED = 0.8
"""From this probability on a statement carries a sentence in other words than its own."""


def citations_of(
    claim: Claim, evidence: Premises, outcome: Outcome, *, verbatim: bool
) -> tuple[Citation, ...]:
    """What a sentence cites: triples in the order of its text, then passages.

    A statement is cited where its own words bear on the sentence, or where the judge is sure of it:
    a wrong citation is worse than none. With ``verbatim`` a triple's value must be in the
    sentence as the graph writes it.
    """
    carried = [
        evidence.indexed.statements[number]
        for number in outcome.carried
        if evidence.carries(number) >= MIN_CARRIED
        or bears_on(claim, evidence.indexed.statements[number])
    ]
    triples = [
        item
        for item in carried
        if item.triple is not None
        and (not verbatim or _stands(item.triple.value, claim.stretch.text))
    ]
    triples.sort(key=lambda item: _place(claim, item))
    passages = [item for item in carried if item.triple is None][:3]
    return tuple(dict.fromkeys([item.citation for item in (*triples, *passages)]))


def is_cited(claim: Claim, statement: Statement) -> bool:
    """True if the model itself cites a fact in the sentence, by its id or its label."""
    return statement.triple is not None and any(
        _names(citation, statement.triple)
        for marker in claim.markers
        for citation in marker.citations
    )


def citation_errors(claim: Claim, evidence: Premises, outcome: Outcome) -> tuple[str, ...]:
    """Why citations that the model wrote into a sentence are wrong; empty if all are right.

    A fact is cited rightly if it was given, and the sentence speaks of its subject and has its
    value; a numbered source if one of its statements carries the sentence.
    """
    if outcome.verdict is Verdict.NO_CLAIM:
        return ()
    statements = evidence.indexed.statements
    errors = []
    for citation in (item for marker in claim.markers for item in marker.citations):
        shown = f"[{citation.entity}, {citation.property}: {citation.value}]"
        named = [
            (number, item)
            for number, item in enumerate(statements)
            if item.triple is not None and _names(citation, item.triple)
        ]
        if not named:
            errors.append(f"{shown}: no such fact is given")
        elif outcome.verdict is Verdict.CONTRADICTED or not any(
            number in outcome.carried or (claim.where(item) and evidence.speaks_of(item))
            for number, item in named
        ):
            errors.append(f"{shown}: the sentence does not state it")
    carrying = {statements[number].place for number in outcome.carried}
    for number in dict.fromkeys(number for marker in claim.markers for number in marker.sources):
        there = any(item.place == number - 1 for item in statements)  # repeated items have none
        if there and number - 1 not in carrying:
            errors.append(f"[{number}]: the source does not carry the sentence")
    return tuple(errors)


def _names(citation: Citation, triple: Triple) -> bool:
    return (
        fold(citation.entity) in (fold(triple.subject), fold(triple.subject_id or ""))
        and fold(citation.property) == fold(triple.property)
        and fold(citation.value) == fold(triple.value)
    )


def bears_on(claim: Claim, statement: Statement) -> bool:
    """Whether a sentence has a value or a word of what a statement says of its subject.

    The name that comes first in both is what both tell of: having it in common bears on nothing.
    """
    if claim.where(statement):
        return True
    if any(
        compare(mine, held) is Agreement.SAME for mine in claim.values for held in statement.values
    ):
        return True
    shared = (statement.stems - content_stems(statement.subject)) & claim.stems
    if not shared or statement.triple is not None:
        return bool(shared)
    mine, held = _first_name(claim.text), _first_name(statement.text)
    return fold(mine) != fold(held) or not shared <= content_stems(mine)


def _first_name(text: str) -> str:
    return next((text[slice(*span)] for span in find_names(text)), "")


def _place(claim: Claim, statement: Statement) -> int:
    spans = claim.where(statement)
    return spans[0][0] if spans else len(claim.text)


def _stands(value: str, text: str) -> bool:
    """True if a text contains a value as written, ignoring case, and not within a word."""
    written = re.escape(value.casefold())
    return re.search(rf"(?<!\w){written}(?!\w)", text.casefold()) is not None


def against_of(evidence: Premises, outcome: Outcome) -> tuple[str, ...]:
    """The statement that contradicts a sentence, or what was found, where one is known."""
    if outcome.verdict is not Verdict.CONTRADICTED:
        return ()
    if outcome.against is None:
        return (outcome.spoke.because,) if outcome.spoke else ()
    statement = evidence.indexed.statements[outcome.against]
    return (statement.triple.text if statement.triple else statement.text,)


def note_of(
    claim: Claim, evidence: Premises, outcome: Outcome, cited: Sequence[Citation], *, verbatim: bool
) -> str | None:
    """What a reader should know of a sentence that cites something; None where there is nothing.

    Where citations are ``verbatim``, only triples are cited whose value is in the sentence.
    """
    lines = [f"contradicted by: {text}" for text in against_of(evidence, outcome)]
    folded_text = fold(claim.text)
    for number in outcome.carried:
        statement = evidence.indexed.statements[number]
        triple, around = statement.triple, statement.others
        if triple is not None and around and fold(triple.value) not in folded_text:
            lines.append(f"{triple.value} lies in {', '.join(around)}")
    cited_values = {(fold(item.property), fold(item.value)) for item in cited}
    gone = [
        f"[{citation.entity}, {citation.property}: {citation.value}]"
        for marker in claim.markers
        for citation in marker.citations
        if (fold(citation.property), fold(citation.value)) not in cited_values
    ]
    if gone:
        lines.append(
            "citation dropped, since no evidence holds it or the sentence does not state it"
            f"{' word for word' if verbatim else ''}: " + " ".join(dict.fromkeys(gone))
        )
    return "; ".join(dict.fromkeys(lines)) or None


MARKED = 0.5
"""Least probability at which a word counts as missing or contradicted."""


_Phrase = tuple[int, int, SpanKind, Triple | None]
"""Offsets in a sentence, with the verdict on these words and the triple behind it."""


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
    chosen: list[_Phrase] = []
    for item in wanted:
        if item[0] < item[1] and not meets(item[:2], [other[:2] for other in chosen]):
            chosen.append(item)
    text, offset = claim.place.text, claim.stretch.start
    return tuple(
        [
            Span(text=text[a:b], start=offset + a, end=offset + b, kind=kind, triple=triple)
            for a, b, kind, triple in sorted(chosen, key=itemgetter(0))
        ]
    )


def _refused(
    claim: Claim, evidence: Premises, outcome: Outcome, findings: Sequence[Finding]
) -> list[_Phrase]:
    if outcome.verdict is Verdict.SUPPORTED:
        return []
    words = evidence.grounding.words if evidence.grounding else ()
    against = outcome.verdict is Verdict.CONTRADICTED
    kind, effect, triple = SpanKind.NA, Effect.MISSING, None
    if against:
        kind, effect = SpanKind.CONTRADICTED, Effect.CONTRADICTS
        if outcome.against is not None:
            triple = evidence.indexed.statements[outcome.against].triple
    offset = claim.stretch.start
    places = [
        (item.start - offset, item.end - offset) for item in findings if item.effect is effect
    ]
    if not places or not against:
        scores = [word.contradicted if against else word.missing for word in words]
        places += _runs(claim, words, scores)
    found: list[_Phrase] = [(start, end, kind, triple) for start, end in places]
    if against and found:
        missing = _runs(claim, words, [word.missing for word in words])
        found += [(start, end, SpanKind.NA, None) for start, end in missing]
    return found or [(0, len(claim.place.text), kind, triple)]


def _carried(claim: Claim, evidence: Premises, outcome: Outcome) -> list[_Phrase]:
    """The values of the supporting statements in the sentence."""
    carried = [evidence.indexed.statements[number] for number in outcome.carried]
    found: list[_Phrase] = [
        (start, end, SpanKind.SUPPORTED, statement.triple)
        for statement in carried
        for start, end in claim.where(statement)[:1]
    ]
    prose = any(statement.triple is None for statement in carried)
    if prose and outcome.verdict is Verdict.UNSUPPORTED and evidence.grounding:
        words = evidence.grounding.words
        runs = _runs(claim, words, [1.0 - word.missing for word in words])
        found += [(start, end, SpanKind.SUPPORTED, None) for start, end in runs]
    return found


def _runs(
    claim: Claim, words: Sequence[WordScore], scores: Sequence[float]
) -> list[tuple[int, int]]:
    """Neighbouring words with a high score, as runs; function words join them, but end none."""
    light = lexicon_set("function_words", "stop_words")
    runs: list[list[WordScore]] = []
    is_open = False
    for word, score in zip(words, scores, strict=True):
        is_light = fold(claim.text[word.start : word.end]) in light
        if score < MARKED and not (is_open and is_light):
            is_open = False
            continue
        if not is_open:
            runs.append([])
            is_open = True
        if not is_light:
            runs[-1].append(word)
    return [(run[0].start, run[-1].end) for run in runs if run]
