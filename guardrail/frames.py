"""Frames that name a property beside its value: *the capital of France is Paris*.

Where the noun is the name of another property, the value is none of the triple's, though the same
two names stand in the sentence and the judge takes them for enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from guardrail.matching import Match
from guardrail.property_nouns import names_other_property
from guardrail.syntax import COMPLEMENTS, MODIFIERS, SUBJECTS, end_of, possessors
from guardrail.text.values import fold, stem, word_set
from guardrail.vocabulary import cues, inverse_cues

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Token as ParsedToken

__all__ = ["called_otherwise"]

BE: Final = word_set("is was are were be been 's")
HAVE: Final = word_set("has had have having with")

VAGUE: Final = word_set("one name value part member example kind type case thing fact answer")
"""Nouns that name no property by themselves."""


def called_otherwise(doc: Doc, match: Match) -> bool:
    """Whether names of other properties call a match's value what it is to its subject.

    Args:
        doc: The parsed answer.
        match: A triple whose value stands in one of its sentences.
    """
    if not match.value_spans or match.asked:
        return False
    known = cues(match.triple.property) | inverse_cues(match.triple.property)
    called = []
    for span in match.value_spans:
        value = doc.char_span(*span, alignment_mode="expand")
        nouns = [] if value is None else list(_nouns(value.root, match))
        if not nouns:
            return False
        called += nouns
    return all(
        known.isdisjoint(_stems(noun)) and _names_other(noun, match.triple.property)
        for noun in called
    )


def _nouns(value: ParsedToken, match: Match) -> Iterator[ParsedToken]:
    """Yield the nouns that call a value something of the triple's subject."""
    verb = value.head
    if value.dep_ in COMPLEMENTS and verb.lower_ in BE:
        others = [one for one in verb.children if one.dep_ in SUBJECTS]
    elif value.dep_ in SUBJECTS and verb.lower_ in BE:
        others = [one for one in verb.children if one.dep_ in COMPLEMENTS]
    elif value.dep_ == "pobj" and verb.lower_ == "of" and verb.head.dep_ in ("dobj", "pobj"):
        others = [verb.head] if verb.head.head.lower_ in HAVE else []
        yield from (one for one in others if _is_common(one))
        return
    else:
        return
    yield from (one for one in others if _is_common(one) and _of_subject(one, match))


def _is_common(noun: ParsedToken) -> bool:
    """Whether a noun names a property: *name* does not, *full name* does."""
    return noun.pos_ == "NOUN" and (
        noun.lower_ not in VAGUE or any(one.dep_ in MODIFIERS for one in noun.children)
    )


def _of_subject(noun: ParsedToken, match: Match) -> bool:
    """Whether a noun is of the triple's subject: *the capital of France*, *its capital*."""
    return any(
        owner.pos_ == "PRON"
        or any(start < end_of(owner) and owner.idx < end for start, end in match.subject_spans)
        for owner in possessors(noun)
    )


def _names_other(noun: ParsedToken, label: str) -> bool:
    """Whether a noun, with or without what specifies it, is the name of another property."""
    names = [fold(one.lower_) for one in _parts(noun)]
    return any(names_other_property(name, label) for name in (" ".join(names), *names))


def _parts(noun: ParsedToken) -> list[ParsedToken]:
    """A noun behind the words that make it the noun for another property."""
    return [*(child for child in noun.lefts if child.dep_ in MODIFIERS), noun]


def _stems(noun: ParsedToken) -> frozenset[str]:
    return frozenset(stem(fold(one.lower_)) for one in _parts(noun))
