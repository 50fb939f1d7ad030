"""Which verbs make what they govern a value: who *hired a chemist* need be none.

What somebody is called, where they worked or studied and what they won are told by few verbs. The
object of any other one is somebody else, or something that they had to do with otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.matching import Match
from guardrail.text.values import fold, stem, tokenise, word_set
from guardrail.vocabulary import cues, is_personal, is_role, property_words

if TYPE_CHECKING:
    from spacy.tokens import Token as ParsedToken

__all__ = ["POSTS", "object_of_another"]

POSTS = word_set(
    "post role position office title rank job work career name status dignity occupation profession"
)
"""Nouns that say nothing but that what follows is what somebody is."""


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, word_set(words)))


CALLING = _stems(
    "be is was were become became becomes remained made named called elected appointed crowned "
    "created styled held assumed received got gained won earned inherited took accepted obtained "
    "resigned practised practiced pursued studied chose played include includes included combined "
    "declared proclaimed"
)
"""Verbs of which the object is what somebody is: *pursued a career*, *was elected governor*."""

JOINING = _stems(
    "attend attended attends join joined joins enter entered left leave quit served serve finished "
    "completed represented represents chose"
)
"""Verbs of which the object is where somebody studied or worked."""

WINNING = _stems(
    "receive received receives won win wins awarded award got get gets shared share shares earned "
    "gained given gave gives honoured honored accepted took collected obtained secured claimed "
    "bestowed conferred had has have holds held include includes included landed brought brings"
)
"""Verbs of which the object is an award that somebody has."""

BEING_GIVEN = _stems("presented granted decorated")
"""Verbs of who gives an award where they are active, of who has it where they are passive."""

KEPT_OUT = _stems("expelled banned barred rejected excluded")
"""Verbs of who was sent away from somewhere: what follows *from* tells no more."""

INSTITUTIONS = frozenset({"employer", "educated at", "alma mater"})

AWARDS = frozenset({"award received", "awards"})

ANOTHERS = word_set("by with against alongside beside like unlike")
"""Prepositions before somebody else: *taught by a chemist*."""


def object_of_another(value: ParsedToken, match: Match) -> bool:
    """Whether a value is the object of a verb that tells no value of the triple's property.

    Args:
        value: The value's head word.
        match: How the triple stands in the sentence.
    """
    label = match.triple.property
    words = property_words(label)
    first = _first_of_list(value)
    verb = _verb_over(first)
    if words in INSTITUTIONS:
        telling = JOINING
    elif words in AWARDS:
        telling = WINNING
    elif (is_role(label) and is_personal(label)) or _called_after(value, match):
        if any(one.lower_ in POSTS for one in value.doc[value.left_edge.i : value.i]):
            return False  # *with the title king*
        if first.dep_ == "pobj" and first.head.lower_ in ANOTHERS:
            return not _named_in(first, match)
        if first.dep_ == "nsubj" and match.subject == "explicit" and not _named_in(first, match):
            return any(child.lower_ in ("a", "an") for child in first.children)
        telling = CALLING
    else:
        return False
    if verb is None or _named_in(first, match):
        return False
    done = stem(fold(verb.text))
    if done in KEPT_OUT and first.dep_ == "pobj":
        return True
    if first.dep_ != "dobj" or done in telling | cues(label):
        return False
    passive = any(child.dep_ in ("nsubjpass", "auxpass") for child in verb.children)
    return not (words in AWARDS and passive and done in BEING_GIVEN)


def _called_after(value: ParsedToken, match: Match) -> bool:
    """Whether a noun for persons stands for their field: *mathematician* for mathematics."""
    fields = {part.folded for part in tokenise(match.triple.value)}
    return (
        property_words(match.triple.property) == "field of work"
        and value.pos_ == "NOUN"
        and fold(value.text) not in fields
    )


def _first_of_list(value: ParsedToken) -> ParsedToken:
    """The first of several nouns side by side: what governs it governs them all."""
    while value.dep_ == "conj" and value.head.i != value.i and value.head.pos_ != "VERB":
        value = value.head
    return value


def _verb_over(value: ParsedToken) -> ParsedToken | None:
    """The verb that a noun is an object of, by itself or behind a preposition."""
    head = value.head
    if value.dep_ == "pobj":
        head = head.head
    return head if head.pos_ == "VERB" else None


def _named_in(noun: ParsedToken, match: Match) -> bool:
    """Whether the triple's subject is named in a noun's own phrase: *the chemist Marie Curie*."""
    return any(start <= one.idx < end for one in noun.subtree for start, end in match.subject_spans)
