"""Who is meant by *her father*: relations of somebody, traced over the evidence.

What is said of *her father* is said of him whom a triple names as the father of whoever *her*
stands for, and of nobody where no triple does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.naming import Span
from guardrail.syntax import possessors
from guardrail.text.values import word_set
from guardrail.types import Triple
from guardrail.vocabulary import is_related, property_words
from kg.relations import relation_words

if TYPE_CHECKING:
    from spacy.tokens import Span as ParsedSpan
    from spacy.tokens import Token as ParsedToken

__all__ = ["Description", "Kin", "described", "other_than_subject"]

ONLY = word_set("father mother husband wife spouse dad mom")
"""Relations of which somebody has one at a time; *her brother* may be any of several."""

ARGUMENTS = frozenset({"nsubj", "nsubjpass", "dobj", "pobj"})

TOLD = frozenset({"attr", "appos"})

PRONOUNS = word_set("his her him")

OF_OTHERS = word_set("by to under")
"""Words before a pronoun that stands for somebody else than the subject: *was taught by him*."""


class Description(NamedTuple):
    """A person told by a relation.

    Attributes:
        label: Who that is.
        owner: Whose relation it is.
        noun: Where the noun stands.
        start: Where the whole description begins, offset in the answer.
    """

    label: str
    owner: str
    noun: Span
    start: int


class Kin:
    """Whom the evidence names as somebody's father, mother or spouse.

    Args:
        triples: The evidence.
        sexes: Gender by label.
    """

    def __init__(self, triples: Sequence[Triple], sexes: Mapping[str, str]) -> None:
        self._sexes = sexes
        self._told: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self._told_by: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for triple in triples:
            words = property_words(triple.property)
            self._told[triple.subject].append((words, triple.value))
            self._told_by[triple.value].append((words, triple.subject))

    def of(self, owner: str, noun: str) -> str | None:
        """The one person who is an owner's relation by a noun; None for nobody or for several."""
        named = relation_words(noun)
        if not named:
            return None
        relation = named[0].relation
        hops = [path[0] for path in relation.paths if len(path) == 1]
        found = {
            label
            for hop in hops
            for table, properties in ((self._told, hop.forward), (self._told_by, hop.backward))
            for words, label in table.get(owner, ())
            if words in properties
            and (relation.gender is None or self._sexes.get(label) in (None, relation.gender))
        }
        return found.pop() if len(found) == 1 else None


def described(
    sentence: ParsedSpan,
    kin: Kin,
    named: Mapping[str, tuple[Span, ...]],
    whom: Callable[[str], str | None],
) -> list[Description]:
    """The persons that a sentence tells by their relation to another instead of by name.

    Args:
        sentence: The parsed sentence.
        kin: The relations of the evidence.
        named: Where the sentence names which entities.
        whom: Tells whom *his* or *her* stands for, None where that is open.
    """
    found = []
    for noun in sentence:
        if noun.lower_ not in ONLY or noun.dep_ not in ARGUMENTS or _told_by_name(noun):
            continue
        for possessor in possessors(noun):
            if possessor.lower_ in PRONOUNS:
                owner = whom(possessor.lower_)
            else:
                owner = next((one for one, spans in named.items() if _at(possessor, spans)), None)
            label = kin.of(owner, noun.lower_) if owner is not None else None
            if owner is not None and label is not None and label not in named:
                end = noun.idx + len(noun.text)
                found.append(Description(label, owner, (noun.idx, end), noun.left_edge.idx))
    return found


def _told_by_name(noun: ParsedToken) -> bool:
    """Whether a name or a further word tells which relation it is: *her father Bruno*."""
    beside = [*noun.children, *(one for one in noun.head.children if one.dep_ == "attr")]
    following = noun.nbor(1) if noun.i + 1 < len(noun.doc) else noun
    return following.pos_ == "PROPN" or any(
        one.dep_ in ("amod", "nummod", "compound") or (one.dep_ in TOLD and one.pos_ == "PROPN")
        for one in beside
    )


def _at(token: ParsedToken, spans: Sequence[Span]) -> bool:
    return any(start <= token.idx < end for start, end in spans)


def other_than_subject(sentence: ParsedSpan) -> ParsedToken | None:
    """The pronoun that cannot stand for the name that is the subject: *Bruno was her father*."""
    for one in sentence:
        if one.lower_ not in PRONOUNS:
            continue
        if one.dep_ == "poss":
            noun = one.head
            beside = noun.head if noun.dep_ == "appos" else _subject(noun.head)
            told = is_related(noun.lower_) and noun.dep_ in TOLD
        else:
            verb = next((up for up in one.ancestors if up.pos_ in ("VERB", "AUX")), None)
            beside = _subject(verb) if verb is not None else None
            told = one.dep_ in ("dobj", "dative") or (
                one.dep_ == "pobj" and one.head.lower_ in OF_OTHERS
            )
        if told and beside is not None and beside.pos_ == "PROPN":
            return one
    return None


def _subject(verb: ParsedToken) -> ParsedToken | None:
    return next((one for one in verb.children if one.dep_ in ("nsubj", "nsubjpass")), None)
