"""Who else a sentence tells of: persons that a later *he* or *she* may stand for as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from guardrail.descriptions import Description
from guardrail.naming import Span
from guardrail.syntax import SUBJECTS, possessors
from guardrail.types import Triple
from guardrail.vocabulary import is_personal, is_related, is_tie
from kg.relations import relation_words

if TYPE_CHECKING:
    from spacy.tokens import Span as ParsedSpan
    from spacy.tokens import Token as ParsedToken

__all__ = ["kin_gender", "persons_of", "unnamed_in"]

SPOKEN_OF = SUBJECTS | {"dobj", "pobj", "poss"}
"""How a noun hangs in a sentence that tells of somebody; *was the daughter of* tells of herself."""


def kin_gender(noun: str) -> str | None:
    """The gender that a noun for a tie tells, ``male`` or ``female``: *daughter*, not *cousin*."""
    named = relation_words(noun)
    return named[0].relation.gender if named else None


def persons_of(triples: Sequence[Triple]) -> list[str]:
    """The persons that triples are about, or tell as somebody's relations."""
    found = []
    for triple in triples:
        tie = is_tie(triple.property)
        if tie or is_personal(triple.property):
            found.append(triple.subject)
        if tie:
            found.append(triple.value)
    return list(dict.fromkeys(found))


def unnamed_in(
    sentence: ParsedSpan, persons: Mapping[str, tuple[Span, ...]], told: Sequence[Description]
) -> frozenset[str]:
    """The genders, or ``unknown``, of persons in a sentence whom the evidence does not know.

    Args:
        sentence: The parsed sentence.
        persons: Where it names which persons of the evidence.
        told: Whom it tells by their relation, so that the evidence knows them.
    """
    known = [span for spans in persons.values() for span in spans]
    found = {
        kin_gender(noun.lower_) or "unknown"
        for noun in sentence
        if noun.pos_ == "NOUN"
        and is_related(noun.lower_)
        and noun.dep_ in SPOKEN_OF
        and not (noun.dep_ == "pobj" and noun.head.lower_ == "as")
        and not any(one.noun[0] == noun.idx for one in told)
        and not _named_beside(noun, known)
    }
    for name in sentence.ents:
        start, end = name.start_char, name.end_char
        if name.label_ == "PERSON" and not any(a < end and start < b for a, b in known):
            found.add("unknown")
    return frozenset(found)


def _named_beside(noun: ParsedToken, known: Sequence[Span]) -> bool:
    """Whether a known name tells who is meant by a noun: *her husband, Carl* or *was Carl*."""
    owners = {part.i for owner in possessors(noun) for part in owner.subtree}
    beside = [*noun.subtree]
    if noun.dep_ in SUBJECTS:
        beside += [
            part for child in noun.head.children if child.dep_ == "attr" for part in child.subtree
        ]
    return any(
        start <= one.idx < end for one in beside if one.i not in owners for start, end in known
    )
