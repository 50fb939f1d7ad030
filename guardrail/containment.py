"""Where a sentence tells a place by a wider one that holds it: *born in London*, for Somers Town.

The graph settles this: no judge can know what lies where.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from guardrail.clauses import in_clause
from guardrail.coreference import Subject
from guardrail.evidence.places import tells_place
from guardrail.matching import Match
from guardrail.naming import SentenceTokens, Span, name_of, runs
from guardrail.occurrences import in_institution, within
from guardrail.support import touches
from guardrail.text.sentences import Stretch
from guardrail.vocabulary import STOP_WORDS

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = ["in_wider_places", "wider_text"]

CODE = 3
"""Letters of the longest names, ``UK`` or ``IN``, that count only in the case the graph writes."""

JOINING = frozenset({"in", "of", "the"})
"""Words between a place and a wider one that holds it."""


def in_wider_places(
    doc: Doc,
    sentence: SentenceTokens,
    place: Span,
    plain: Sequence[Match],
    placed: Sequence[Match],
    about: Subject,
    wider: Mapping[str, tuple[str, ...]],
) -> list[Match]:
    """Let wider places stand for the values of triples that tell a place.

    They do so where the words of the triple's own property tell them of its subject, and directly
    behind the value itself: *Somers Town, London*.

    Args:
        doc: The parsed answer.
        sentence: One of its sentences, prepared.
        place: Offsets of that sentence.
        plain: The n triples found in it.
        placed: The same after ``in_clause``.
        about: Who the sentence is about.
        wider: Names of the places that hold a value, by its id.

    Returns:
        n matches in order. Those of a place that the sentence tells by wider ones alone have these
        for ``value_spans`` and for ``wider``. In those whose value it does not tell, ``wider``
        says where wider places stand all the same: they are no other value.
    """
    if not wider:
        return list(placed)
    return [
        _widened(doc, sentence, place, one, two, about, names)._replace(located=True)
        if (names := wider.get(one.triple.value_id or "")) and tells_place(one.triple.property)
        else two
        for one, two in zip(plain, placed, strict=True)
    ]


def wider_text(match: Match, stretch: Stretch) -> str:
    """The wider places that a sentence tells for a value, as it writes them: *London, England*."""
    offset = stretch.start
    return ", ".join(stretch.text[start - offset : end - offset] for start, end in match.wider)


def _widened(
    doc: Doc,
    sentence: SentenceTokens,
    place: Span,
    plain: Match,
    placed: Match,
    about: Subject,
    names: Iterable[str],
) -> Match:
    found = _places(sentence, names, plain)
    spans = tuple(span for span in found if _alone(sentence, span, found, plain))
    if placed.value_share >= 1.0:
        return placed._replace(wider=_behind(sentence, placed.value_spans, spans))
    if not plain.cue_spans or plain.subject not in ("explicit", "antecedent"):
        return placed
    if spans:
        tried = plain._replace(value_share=1.0, value_spans=spans, finer=None)
        (told,) = in_clause(doc, place, [tried], about)
        if told.denied:
            return told._replace(wider=told.denied)
        if told.value_spans:
            spans = told.value_spans + _behind(sentence, told.value_spans, spans)
            return told._replace(value_spans=spans, wider=spans)
    if placed.value_share > 0.0:
        return placed
    # *North London*, whatever it is, may be a part of London, and London one of Greater London.
    return placed._replace(wider=found + _pieces(sentence, names, plain))


def _places(sentence: SentenceTokens, names: Iterable[str], match: Match) -> tuple[Span, ...]:
    """Where a sentence names wider places, in order, the longest name where several stand."""
    found = {
        span
        for name in names
        if (parts := name_of(name).tokens)
        for span in runs(sentence, parts)
        if _as_written(sentence, span, name) and not touches(span, match.subject_spans)
    }
    return tuple(sorted(span for span in found if not within(span, found)))


def _pieces(sentence: SentenceTokens, names: Iterable[str], match: Match) -> tuple[Span, ...]:
    """Where names stand that are a piece of a wider place's: *London*, of Greater London."""
    pieces = {
        parts[first:last]
        for parts in (name_of(name).tokens for name in names)
        for first in range(len(parts))
        for last in range(first + 1, len(parts) + 1)
        if last - first < len(parts) and parts[first].folded in sentence.by_folded
    }
    return tuple(
        span
        for parts in pieces
        for span in runs(sentence, parts)
        if _as_written(sentence, span, " ".join(part.text for part in parts))
        and _alone(sentence, span, (), match)
    )


def _alone(sentence: SentenceTokens, span: Span, places: Sequence[Span], match: Match) -> bool:
    """Whether a name is no piece of another one: *New London*, *London Road*."""
    known = (*places, *match.subject_spans)
    return not in_institution(sentence, span, match.triple.property) and not any(
        one.text[:1].isupper()
        and one.folded not in STOP_WORDS
        and not touches((one.start, one.end), known)
        for one in sentence.tokens
        if one.end + 1 == span[0] or one.start == span[1] + 1
    )


def _as_written(sentence: SentenceTokens, span: Span, name: str) -> bool:
    """Whether a run of words is a name: capitalised, and as the graph writes it if very short."""
    words = [one for one in sentence.tokens if span[0] <= one.start and one.end <= span[1]]
    letters = "".join(filter(str.isalnum, name))
    if len(letters) <= CODE:
        return letters == "".join(char for one in words for char in one.text if char.isalnum())
    return words[0].text[:1].isupper()


def _behind(
    sentence: SentenceTokens, value: Sequence[Span], spans: Iterable[Span]
) -> tuple[Span, ...]:
    """The wider places that follow a value, or each other: *Camden, London, in England*."""
    chain = list(value)
    for start, end in spans:
        if any(
            last <= start
            and all(
                one.folded in JOINING
                for one in sentence.tokens
                if last <= one.start and one.end <= start
            )
            for _, last in chain
        ):
            chain.append((start, end))
    return tuple(chain[len(value) :])
