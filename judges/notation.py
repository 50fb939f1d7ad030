"""Notation: values of a sentence are rewritten as its evidence writes them, before it is judged.

Given *110 km*, a small judge takes *110,000 m* for another range. Both mean the same, so the
sentence is judged with *110 km*, and the verdict holds for *110,000 m*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from guardrail.core.text.units import unit_of_label
from guardrail.core.text.values import TypedValue, find_values, is_one
from guardrail.core.text.words import fold, property_words
from guardrail.core.types import Grounding


class Notation(NamedTuple):
    """A value of a sentence and its other notation.

    Attributes:
        start: Offset of its first character in the sentence.
        end: Offset past its last.
        text: The value in the notation of the evidence.
    """

    start: int
    end: int
    text: str


def notation_of(
    stated: Sequence[TypedValue], held: Sequence[tuple[TypedValue, str]]
) -> tuple[Notation, ...]:
    """Find the values of a sentence that its evidence writes in another notation.

    Args:
        stated: The values of the sentence.
        held: The values of the evidence, the most important first, each with the label of its
            property or an empty text.
    """
    found = []
    for value in stated:
        ways = [_written(value, *item) for item in held if is_one(value, item[0])]
        if ways and fold(value.text) not in map(fold, ways):
            found.append(Notation(value.start, value.end, ways[0]))
    return tuple(found)


def _written(stated: TypedValue, held: TypedValue, label: str) -> str:
    """A held value as it is written, with the unit of its label, if any: *weight (kg)*.

    If the label names the unit by a sign or code, the value stays unchanged.
    """
    if unit_of_label(label) is None or held.kind in {item.kind for item in find_values(held.text)}:
        return held.text
    named = f"{held.text} {property_words(label).rpartition(' ')[2]}"
    return named if any(is_one(stated, item) for item in find_values(named)) else stated.text


def with_notation(sentence: str, notation: Sequence[Notation]) -> str:
    """A sentence with its values in the notation of the evidence."""
    for item in reversed(notation):
        sentence = sentence[: item.start] + item.text + sentence[item.end :]
    return sentence


def restored(grounding: Grounding, notation: Sequence[Notation]) -> Grounding:
    """The grounding of a rewritten sentence, with spans of the original one."""
    if not notation:
        return grounding
    words = [
        word.model_copy(update=dict(zip(("start", "end"), span, strict=True)))
        for word in grounding.words
        for span in [_original_span((word.start, word.end), notation)]
    ]
    unread = [_original_span(span, notation) for span in grounding.unread]
    return grounding.model_copy(update={"words": tuple(words), "unread": tuple(unread)})


def _original_span(span: tuple[int, int], notation: Sequence[Notation]) -> tuple[int, int]:
    """Map a span of the rewritten sentence to the original; a value is mapped as a whole."""
    first, last = span
    grown = 0
    for item in notation:
        start, end = item.start + grown, item.start + grown + len(item.text)
        more = len(item.text) - (item.end - item.start)
        if span[0] >= end:
            first -= more
        elif span[0] >= start:
            first = item.start
        if span[1] >= end:
            last -= more
        elif span[1] > start:
            last = item.end
        grown += more
    return first, last
