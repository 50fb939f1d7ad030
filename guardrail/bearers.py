"""Who a noun for a relation is said of: *the wife of Anna* is no man, *his mother* no father."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from guardrail.matching import Match
from guardrail.mentions import kin_gender
from guardrail.naming import Span
from guardrail.syntax import SUBJECTS
from guardrail.vocabulary import is_related, is_tie

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Token as ParsedToken

__all__ = ["is_of_whose", "is_titled_otherwise", "of_other_gender"]

NO_PERSON = frozenset({"DATE", "TIME", "GPE", "LOC", "ORG", "NORP", "EVENT"})
"""Kinds of names that no title stands before."""


def of_other_gender(doc: Doc, match: Match, sexes: Mapping[str, str]) -> bool:
    """Whether a sentence tells a tie by a noun for the other gender than its bearer has.

    Args:
        doc: The parsed answer.
        match: How the triple of a tie stands in a sentence; any other one is never so told.
        sexes: Gender by label.
    """
    triple = match.triple
    if not is_tie(triple.property):
        return False
    known = [
        (sexes.get(label), spans)
        for label, spans in (
            (triple.value, match.value_spans),
            (triple.subject, match.subject_spans),
        )
    ]
    for start, end in match.cue_spans:
        found = doc.char_span(start, end, alignment_mode="expand")
        if found is None or not len(found):
            continue
        noun = found.root
        gender = kin_gender(noun.lower_) if noun.pos_ in ("NOUN", "PROPN") else None
        if gender is None:
            continue
        bearers = list(_bearers(noun))
        for sex, spans in known:
            if {sex, gender} == {"male", "female"} and _any_at(bearers, spans):
                return True
    return False


def _bearers(noun: ParsedToken) -> Iterator[ParsedToken]:
    """Yield the names of whom a noun is said: *her mother was V*, *her mother V*, *V, the wife*."""
    if noun.dep_ == "attr":
        yield from (child for child in noun.head.children if child.dep_ in SUBJECTS)
    if noun.dep_ in SUBJECTS:
        yield from (child for child in noun.head.children if child.dep_ == "attr")
    if noun.dep_ in ("appos", "compound", "nmod"):
        yield noun.head
    yield from (child for child in noun.children if child.dep_ == "appos")


def is_of_whose(value: ParsedToken, match: Match) -> bool:
    """Whether a value is told of a relation in a clause with *whose*: *whose father was a poet*."""
    for one in value.ancestors:
        if one.dep_ != "relcl":
            continue
        return any(
            child.dep_ in SUBJECTS
            and is_related(child.lower_)
            and any(owner.tag_ == "WP$" or owner.lower_ == "whose" for owner in child.children)
            and not _any_at(child.subtree, match.subject_spans)
            for child in one.children
        )
    return False


def is_titled_otherwise(value: ParsedToken, match: Match) -> bool:
    """Whether what somebody is stands right before another one's name: *the poet Anna*."""
    place = value.i + 1
    name = []
    while place < len(value.doc) and value.doc[place].pos_ == "PROPN":
        name.append(value.doc[place])
        place += 1
    return (
        value.pos_ == "NOUN"
        and bool(name)
        and name[0].ent_type_ not in NO_PERSON
        and not _any_at(name, match.subject_spans)
    )


def _any_at(tokens: Iterable[ParsedToken], spans: tuple[Span, ...]) -> bool:
    return any(start <= one.idx < end for one in tokens for start, end in spans)
