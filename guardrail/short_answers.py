"""Answers without a verb, as *Lord Byron* to the question who Ada Lovelace's father was.

The question says what such words tell. They state the property that it asks for, of the entity
that it asks about, and no other one that happens to have the same value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from guardrail.matching import Match
from guardrail.text.sentences import Stretch
from guardrail.text.values import tokenise
from guardrail.types import Triple
from guardrail.vocabulary import cues, is_related

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = ["Asked", "as_asked", "asked_for"]

MOST_WORDS = 8
"""Words of the longest answer that counts as one without a sentence round it."""

FINITE = frozenset({"VBD", "VBZ", "VBP", "MD"})
"""Tags of verbs that make a sentence of it."""


class Asked(NamedTuple):
    """What a question asks of an entity.

    Attributes:
        label: The entity.
        properties: Those of its properties in the evidence whose words stand in the question;
            empty where it asks for a relation that the evidence lacks.
    """

    label: str
    properties: frozenset[str]


def asked_for(question: str, label: str | None, triples: Iterable[Triple]) -> Asked | None:
    """What a question asks of the entity that it is about; None where it asks for no property.

    Args:
        question: The question.
        label: Label of that entity, where it is known.
        triples: The evidence.
    """
    if label is None:
        return None
    about = {token.folded for token in tokenise(label)}
    tokens = [token for token in tokenise(question) if token.folded not in about]
    words = {token.stem for token in tokens}
    held = {triple.property for triple in triples if triple.subject == label}
    found = frozenset(name for name in held if not words.isdisjoint(cues(name)))
    if not found and not any(is_related(token.folded) for token in tokens):
        return None
    return Asked(label, found)


def as_asked(
    found: tuple[Match, ...], doc: Doc, stretch: Stretch, asked: Asked | None
) -> tuple[Match, ...]:
    """Read a short answer as its question asks.

    Args:
        found: The n triples found in the answer's first sentence.
        doc: The parsed answer.
        stretch: That sentence.
        asked: What the question asks for.

    Returns:
        n matches in order: those of an asked property are ``asked``, others are told of nobody.
        No change in a sentence with a verb, or with the words of a property.
    """
    if asked is None or any(match.cue_spans for match in found):
        return found
    sentence = doc.char_span(stretch.start, stretch.end, alignment_mode="expand")
    if (
        sentence is None
        or len(sentence) > MOST_WORDS
        or any(one.tag_ in FINITE for one in sentence)
    ):
        return found
    return tuple(
        match._replace(subject="antecedent", asked=match.value_share >= 1.0)
        if match.triple.subject == asked.label and match.triple.property in asked.properties
        else match.told_of("other")
        for match in found
    )
