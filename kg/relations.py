"""Relations that a question names in words, followed from an entity to its neighbours.

A question such as "Who were June Carter's parents" or "Who succeeded Bahram II" asks for
entities it does not name. The words are read with a small general table (kinship, succession,
teaching) whose entries name properties by their labels in the common vocabularies, and with the
labels of the properties that the entity itself has.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.types import Subgraph

__all__ = ["Hop", "Relation", "RelationWord", "neighbours", "property_words", "relation_words"]


class Hop(NamedTuple):
    """One step from an entity: properties followed forwards and backwards, by their labels."""

    forward: frozenset[str]
    backward: frozenset[str]


class Relation(NamedTuple):
    """What a relation word means.

    Attributes:
        name: The word a reader sees, ``father``.
        paths: Ways to reach the neighbours, each a sequence of hops.
        gender: ``male`` or ``female`` where the word tells; neighbours known to be of another
            gender are left out.
        fallback: Name of the relation to follow where this one leads nowhere.
        kinship: Whether it is one between members of a family.
        broad: Whether it is none of a certain degree: *relative*, *ancestor*.
    """

    name: str
    paths: tuple[tuple[Hop, ...], ...]
    gender: str | None = None
    fallback: str | None = None
    kinship: bool = False
    broad: bool = False


class RelationWord(NamedTuple):
    """A relation named in a text, with the offsets of the naming words."""

    start: int
    end: int
    text: str
    relation: Relation


def relation_words(text: str) -> list[RelationWord]:
    """Find the words of a text that name a relation of the general table, in their order."""
    return [
        RelationWord(found.start(), found.end(), found.group(), relation)
        for found in _naming_word().finditer(text)
        # A letter such as the long s matches in any case and is no key.
        if (relation := _by_word().get(found.group(1).casefold())) is not None
    ]


def property_words(text: str, subgraph: Subgraph) -> list[RelationWord]:
    """Find the labels of an entity's own properties in a text, whatever the graph's vocabulary.

    Returns:
        One entry per property label that the text contains as a whole phrase; labels that the
        general table reads already are left out.
    """
    lowered = text.lower()
    found = []
    for label in dict.fromkeys(triple.property for triple in subgraph.triples):
        if label.lower() in _by_word() or label.lower() not in lowered:
            continue
        hit = re.search(rf"(?<!\w){re.escape(label)}s?(?!\w)", text, re.IGNORECASE)
        if hit is not None:
            relation = Relation(label, ((Hop(frozenset({label}), frozenset()),),))
            found.append(RelationWord(hit.start(), hit.end(), hit.group(), relation))
    return found


def fallback(relation: Relation) -> Relation | None:
    """Give the relation to follow where the given one leads nowhere, None where there is none."""
    return _by_name()[relation.fallback] if relation.fallback else None


def neighbours(subgraph: Subgraph, hop: Hop) -> list[str]:
    """Take one step from an entity.

    Returns:
        Keys of the neighbours in the graph's order, without repeats: the id of a node, or
        ``literal_key`` of a value that is no node.
    """
    keys = [
        triple.value_id or literal_key(triple.value)
        for triple in subgraph.triples
        if triple.property in hop.forward
    ]
    keys += [
        triple.subject_id
        for triple in subgraph.incoming
        if triple.property in hop.backward and triple.subject_id is not None
    ]
    return [key for key in dict.fromkeys(keys) if key != subgraph.entity.id]


def between_persons(property_label: str) -> bool:
    """Tell whether the general table knows the property as a relation between persons."""
    return property_label in _personal()


def literal_key(value: str) -> str:
    """Key of a value that is no node; in double quotes, as in Turtle, so never an id."""
    return f'"{value}"'


def fits_gender(subgraph: Subgraph, gender: str | None) -> bool:
    """Tell whether an entity can be what a gendered word asks for; unknown genders fit."""
    if gender is None:
        return True
    known = genders(subgraph)
    return not known or gender in known


def genders(subgraph: Subgraph) -> set[str]:
    """What the graph states as the gender of an entity, in lower case."""
    properties = lexicon_set("relations", "genders")
    return {triple.value.lower() for triple in subgraph.triples if triple.property in properties}


@cache
def _by_name() -> dict[str, Relation]:
    """The general table; paths are named by their hops there."""
    table = lexicon("relations")
    hops = {
        name: Hop(frozenset(hop["forward"]), frozenset(hop["backward"]))
        for name, hop in table["hops"].items()
    }
    return {
        row["name"]: Relation(
            row["name"],
            tuple(tuple(hops[hop] for hop in path) for path in row["paths"]),
            row.get("gender"),
            row.get("fallback"),
            row.get("kinship", False),
            row.get("broad", False),
        )
        for row in table["relations"]
    }


@cache
def _by_word() -> dict[str, Relation]:
    """What each word of the general table means."""
    rows = lexicon("relations")["relations"]
    return {word: _by_name()[row["name"]] for row in rows for word in row["words"]}


@cache
def _naming_word() -> re.Pattern[str]:
    """A word of the general table; a plural s and a possessive are allowed after each."""
    words = "|".join(sorted(map(re.escape, _by_word()), key=len, reverse=True))
    return re.compile(rf"(?<![\w-])({words})(?:['’]s|s['’]|s)?(?![\w-])", re.IGNORECASE)


@cache
def _personal() -> frozenset[str]:
    """Labels of the properties between persons."""
    hops = [hop for item in _by_name().values() for path in item.paths for hop in path]
    return frozenset(label for hop in hops for label in hop.forward | hop.backward)
