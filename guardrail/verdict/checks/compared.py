"""Comparisons of two subjects by a property of both: *The Fjell is heavier than the Tarn*."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.dates import Date
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.units import Bound, property_name
from guardrail.core.text.values import TypedValue
from guardrail.core.text.words import MIN_STEM, Span, content_stems, property_words, stem
from guardrail.verdict.checks.base import applies

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim

NEAR_THAN = 4
"""Most words from a comparative to *than* (*more seats than*), and from there to the name."""

Facts = Sequence[tuple[int, "Statement"]]


class Comparison(NamedTuple):
    """A comparison that facts decide: the number of its subject's fact, and if it holds."""

    number: int
    subject: str
    other: str
    holds: bool
    span: Span


def compared(claim: Claim, facts: Facts, named: dict[str, list[Span]]) -> Comparison | None:
    """The comparison that a sentence makes; None where it makes none that the facts decide."""
    tokens, light = claim.tokens, lexicon_set("function_words", "stop_words")
    marks = [place for place, token in enumerate(tokens[:-1]) if token.folded == "than"]
    if len(marks) != 1 or {token.folded for token in tokens} & lexicon_set("grammar", "unsettled"):
        return None
    than = marks[0]
    starts = {tokens[than + 1].start}
    for one, following in pairwise(tokens[than + 1 : than + 1 + NEAR_THAN]):
        if one.folded not in light:
            break
        starts.add(following.start)
    behind = [(end, name) for name, spans in named.items() for a, end in spans if a in starts]
    end, other = max(behind, default=(0, ""))
    left = [name for name in named if name != other]
    if not other or len(left) != 1 or claim.plain[end:].lstrip(" ")[:1] not in ("", *".,;!)"):
        return None
    for place in range(max(0, than - NEAR_THAN), than):
        words = [token.folded for token in tokens[place:than]]
        found = [
            (number, up, _size(item.values[0]), _size(known.values[0]))
            for number, item in facts
            if _only(facts, item, left[0]) is item and (known := _only(facts, item, other))
            if applies(claim, item) and applies(claim, known)
            if (up := _claims_more(claim, words, item)) is not None
        ]
        if len(found) == 1:
            number, up, mine, theirs = found[0]
            amount = any(0 <= tokens[place].start - v.end < 2 for v in claim.values)  # *9 kg less*
            if amount or not mine or len(mine) != len(theirs):
                return None
            holds = mine > theirs if up else mine < theirs
            return Comparison(number, left[0], other, holds, (tokens[place].start, end))
    return None


def _claims_more(claim: Claim, words: Sequence[str], item: Statement) -> bool | None:
    """Whether words such as *heavier* or *fewer seats* claim more of a fact's value, or less."""
    assert item.fact is not None
    grammar, label = lexicon("grammar"), item.fact.property
    name, (first, *rest) = content_stems(property_name(label)), words
    degrees: dict[str, bool] = dict.fromkeys(grammar["degrees"]["up"], True)
    degrees |= dict.fromkeys(grammar["degrees"]["down"], False)
    if first in degrees and rest and content_stems(" ".join(rest)) == name:
        return degrees[first]
    if len(rest) == 1 and rest[0] in degrees:  # *costs less*, *weighs more*
        verb = stem(first)
        begins = len(verb) >= MIN_STEM and any(word.startswith(verb) for word in name)
        return degrees[rest[0]] if begins or verb in item.cues else None
    for entry in grammar["comparatives"]:
        # *Cheaper* speaks of a *ticket price*, and of a *parking fee* only if the sentence names it
        plain = content_stems(" ".join([*entry["of"], *grammar["measures"]])) | claim.stems
        named = name <= plain and not {*entry["of"]}.isdisjoint(property_words(label).split())
        named = named and ("born" in entry["of"]) is (item.values[0].kind == "date")
        if named or (item.values[0].kind in entry["kinds"] and name <= claim.stems):
            if not rest and first in (*entry["up"], *entry["down"]):
                return first in entry["up"]
            if first in degrees and len(rest) == 1 and rest[0] in entry["up"]:
                return degrees[first]  # *more expensive*
    return None


def _only(facts: Facts, item: Statement, subject: str) -> Statement | None:
    """The only fact of a subject with the property and kind of value of another fact."""
    if item.fact is None or not item.is_typed:
        return None
    own = [s for _, s in facts if s.subject == subject and s.fact]
    found = [s for s in own if s.fact and s.fact.property == item.fact.property]
    if len(found) != 1 or not len(found[0].values) == len(item.values) == 1:
        return None
    kinds = {found[0].values[0].kind, item.values[0].kind}  # 1150 seats are read as a year
    return found[0] if len(kinds) == 1 or kinds == {"date", "number"} else None


def _size(item: TypedValue) -> tuple[float, ...]:
    """What is compared of a value; empty for a range, a bound or a date without a year."""
    value = item.value
    if isinstance(value, Quantity) and value.bound is Bound.EXACT:
        return value.ends[:1] if value.ends[0] == value.ends[1] else ()
    plain = isinstance(value, Date) and value.bound is Bound.EXACT and value.span == 1
    if isinstance(value, Date) and value.year is not None and plain and not item.start:
        return tuple([float(part) for part in (value.year, value.month, value.day) if part])
    return ()
