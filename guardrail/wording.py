"""The wording of triples for judges: properties in plain words, values as the sentence writes them.

A small judge does not know that *MIT* stands for an institute's whole name, that 545,796 is *about
546,000*, nor that London holds Somers Town. Where exact evidence has found that out already, the
judge is told, so that it is asked about the statement alone.
"""

from __future__ import annotations

from guardrail.containment import wider_text
from guardrail.drafting import Draft
from guardrail.matching import Match
from guardrail.naming import Span, initials, name_of, runs
from guardrail.quantities import quantity_of
from guardrail.text.values import parse_date
from guardrail.types import Triple
from guardrail.vocabulary import property_words
from judges.base import Pair

__all__ = ["as_evidence", "as_pair", "readable"]


def as_pair(draft: Draft, match: Match) -> Pair:
    """Premise: the sentence; hypothesis: the triple, without its subject where none is named."""
    triple = _as_told(draft, match)
    if match.subject == "open":
        return Pair(draft.stretch.text, f"{triple.property}: {triple.value}")
    return Pair(draft.subject.resolved, triple.text)


def as_evidence(draft: Draft, match: Match, *, told: bool) -> Triple:
    """A triple as the attribution judge reads it: *Somers Town, London* where London is told.

    Args:
        draft: The sentence.
        match: How the triple stands in it.
        told: Whether it was accepted, so that its value is the one that the sentence tells.
    """
    triple = _as_told(draft, match) if told else readable(match.triple)
    if not match.wider or not match.value_spans:
        return triple
    return triple.model_copy(
        update={"value": f"{triple.value}, {wider_text(match, draft.stretch)}"}
    )


def readable(triple: Triple) -> Triple:
    """A triple as judges read it: ``RUNWAY_LENGTH`` and ``runwayLength`` as *runway length*."""
    name = triple.property
    if " " in name or (name.islower() and "_" not in name):
        return triple
    return triple.model_copy(update={"property": property_words(name)})


def _as_told(draft: Draft, match: Match) -> Triple:
    """A triple with its names, figures and dates as the sentence tells them."""
    triple = readable(match.triple)
    subject, value = _short(draft, triple.subject), _figures(draft, match)
    if (subject, value) == (triple.subject, triple.value):
        return triple
    return triple.model_copy(update={"subject": subject, "value": value})


def _figures(draft: Draft, match: Match) -> str:
    """A number or date as the sentence tells it, where it tells nothing finer; else its name."""
    value = match.triple.value
    if parse_date(value) is None and quantity_of(value) is None:
        return _short(draft, value)
    if match.value_share < 1.0 or match.finer or not match.value_spans:
        return value
    start, end = match.value_spans[0]
    return draft.tokens.signs.get(start, "") + _written(draft, (start, end))


def _short(draft: Draft, label: str) -> str:
    """The initials by which a sentence tells a name; the name itself where it does not."""
    parts = name_of(label).tokens
    found = initials(draft.tokens, parts)
    if not found or runs(draft.tokens, parts):
        return label
    return _written(draft, found[0])


def _written(draft: Draft, span: Span) -> str:
    offset = draft.stretch.start
    return draft.stretch.text[span[0] - offset : span[1] - offset]
