"""Relations that a question names in words, followed from an entity to its neighbours.

A question such as "Who were June Carter's parents" or "Who succeeded Bahram II" asks for
entities it does not name. The words are read with a small general table (kinship, succession,
teaching) whose entries name properties by their labels in the common vocabularies, and with the
labels of the properties that the entity itself has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from guardrail.types import Subgraph, Triple

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
    """

    name: str
    paths: tuple[tuple[Hop, ...], ...]
    gender: str | None = None
    fallback: str | None = None


class RelationWord(NamedTuple):
    """A relation named in a text, with the offsets of the naming words."""

    start: int
    end: int
    text: str
    relation: Relation


def _hop(forward: str, backward: str = "") -> Hop:
    return Hop(frozenset(forward.split("|")) - {""}, frozenset(backward.split("|")) - {""})


_FATHER = _hop("father|parent|parents", "child|children")
_MOTHER = _hop("mother|parent|parents", "child|children")
_PARENT = _hop("father|mother|parent|parents|stepparent", "child|children")
_CHILD = _hop("child|children", "father|mother|parent|parents|stepparent")
_SPOUSE = _hop(
    "spouse|cohabitant|unmarried partner|partner", "spouse|cohabitant|unmarried partner|partner"
)
_SIBLING = _hop("sibling|siblings", "sibling|siblings")
_RELATIVE = _hop("relative|relatives|relation", "relative|relatives|relation")
_TEACHER = _hop(
    "student of|doctoral advisor|academic advisor|influenced by", "student|doctoral student"
)
_STUDENT = _hop("student|doctoral student", "student of|doctoral advisor|academic advisor")
_NEXT = _hop(
    "succeeded by|followed by|replaced by|successor",
    "succeeds|follows|replaces|predecessor|preceded by",
)
_BEFORE = _hop(
    "succeeds|follows|replaces|predecessor|preceded by",
    "succeeded by|followed by|replaced by|successor",
)
_COMPANION = _hop(
    "professional or sports partner|partner in business or sport",
    "professional or sports partner|partner in business or sport",
)
_INFLUENCE = _hop("influenced by|student of|doctoral advisor", "student|doctoral student")
_FOLLOWERS = _hop("", "influenced by|student of|doctoral advisor")
_KILLER = _hop("killed by")
_GODPARENT = _hop("godparent")

_RELATIONS: Final[dict[str, Relation]] = {
    relation.name: relation
    for relation in (
        Relation("father", ((_FATHER,),), "male"),
        Relation("mother", ((_MOTHER,),), "female"),
        Relation("parent", ((_PARENT,),)),
        Relation("child", ((_CHILD,),)),
        Relation("son", ((_CHILD,),), "male"),
        Relation("daughter", ((_CHILD,),), "female"),
        Relation("spouse", ((_SPOUSE,),)),
        Relation("husband", ((_SPOUSE,),), "male"),
        Relation("wife", ((_SPOUSE,),), "female"),
        Relation("sibling", ((_SIBLING,), (_PARENT, _CHILD))),
        Relation("brother", ((_SIBLING,), (_PARENT, _CHILD)), "male"),
        Relation("sister", ((_SIBLING,), (_PARENT, _CHILD)), "female"),
        Relation("grandparent", ((_PARENT, _PARENT),)),
        Relation("grandfather", ((_PARENT, _PARENT),), "male"),
        Relation("grandmother", ((_PARENT, _PARENT),), "female"),
        Relation("grandchild", ((_CHILD, _CHILD),)),
        Relation("aunt or uncle", ((_PARENT, _SIBLING), (_PARENT, _PARENT, _CHILD), (_RELATIVE,))),
        Relation("nephew or niece", ((_SIBLING, _CHILD), (_PARENT, _CHILD, _CHILD), (_RELATIVE,))),
        Relation("relative", ((_RELATIVE,),)),
        Relation("ancestor", ((_PARENT,), (_PARENT, _PARENT), (_RELATIVE,))),
        Relation("descendant", ((_CHILD,), (_CHILD, _CHILD))),
        Relation(
            "family",
            ((_PARENT,), (_CHILD,), (_SPOUSE,), (_SIBLING,), (_RELATIVE,), (_PARENT, _CHILD)),
        ),
        # "What is known of her life?": a biography tells of a person's nearest.
        Relation("life", ((_PARENT,), (_CHILD,), (_SPOUSE,))),
        Relation("successor", ((_NEXT,),), None, "child"),
        Relation("predecessor", ((_BEFORE,),), None, "parent"),
        Relation("teacher", ((_TEACHER,),)),
        Relation("student", ((_STUDENT,),)),
        Relation("influence", ((_INFLUENCE,),)),
        Relation("follower", ((_FOLLOWERS,),)),
        Relation("companion", ((_COMPANION,),)),
        Relation("killer", ((_KILLER,),)),
        Relation("godparent", ((_GODPARENT,),)),
    )
}

_PERSONAL: Final = frozenset(
    label
    for relation in _RELATIONS.values()
    for path in relation.paths
    for hop in path
    for label in hop.forward | hop.backward
)

# Words to relations; a plural s and a possessive are allowed after each.
_WORDS: Final[dict[str, str]] = {
    word: name
    for name, words in {
        "father": "father|dad|stepfather|paternal",
        "mother": "mother|mom|mum|stepmother|maternal",
        "parent": "parent|parentage|upbringing|birth|born to|raised by",
        "child": "child|children|kid|offspring|heir",
        "son": "son|stepson",
        "daughter": "daughter|stepdaughter",
        "spouse": "spouse|marriage|married|marry|partner|lover|widow|consort|romantic|divorce",
        "husband": "husband",
        "wife": "wife|wives",
        "sibling": "sibling",
        "brother": "brother|half-brother",
        "sister": "sister|half-sister",
        "grandparent": "grandparent",
        "grandfather": "grandfather",
        "grandmother": "grandmother",
        "grandchild": "grandchild|grandchildren|grandson|granddaughter",
        "aunt or uncle": "aunt|uncle",
        "nephew or niece": "nephew|niece",
        "relative": "relative|cousin|kin",
        "ancestor": "ancestor|ancestry|ancestral|forebear|forefather|lineage|descent",
        "descendant": "descendant|progeny",
        "family": "family|families|familial|dynasty|dynastic|genealogy|household|kinship|clan"
        "|heritage",
        "life": "life|lives|biography|biographies|background|relationship|relation|related"
        "|connection",
        "successor": "succeeded|successor|succession|succeed|succeeding|inherited",
        "predecessor": "predecessor|preceded",
        "teacher": "teacher|mentor|tutor|advisor|adviser|taught|mentored|mentorship",
        "student": "student|pupil|apprentice|disciple",
        "influence": "influence|influenced|influential|inspiration|inspired",
        "follower": "legacy",
        "companion": "companion|colleague|collaborator|teammate|associate",
        "killer": "killer|killed|murdered|murderer|assassinated|assassin",
        "godparent": "godparent|godfather|godmother",
    }.items()
    for word in words.split("|")
}
_WORD: Final = re.compile(
    r"(?<![\w-])(" + "|".join(sorted(map(re.escape, _WORDS), key=len, reverse=True)) + r")"
    r"(?:['’]s|s['’]|s)?(?![\w-])",
    re.IGNORECASE,
)


def relation_words(text: str) -> list[RelationWord]:
    """Find the words of a text that name a relation of the general table.

    Args:
        text: A question or sentence.

    Returns:
        One entry per naming word, in the order of the text.
    """
    return [
        RelationWord(found.start(), found.end(), found.group(), _RELATIONS[name])
        for found in _WORD.finditer(text)
        # A letter such as the long s matches in any case and is no key.
        if (name := _WORDS.get(found.group(1).casefold())) is not None
    ]


def property_words(text: str, subgraph: Subgraph) -> list[RelationWord]:
    """Find the labels of an entity's own properties in a text, whatever the graph's vocabulary.

    Args:
        text: A question or sentence.
        subgraph: The entity with its outgoing facts.

    Returns:
        One entry per property label that stands in the text as a whole phrase; labels that the
        general table reads already are left out.
    """
    lowered = text.lower()
    found = []
    for label in dict.fromkeys(triple.property for triple in subgraph.triples):
        if label.lower() in _WORDS or label.lower() not in lowered:
            continue
        hit = re.search(rf"(?<!\w){re.escape(label)}s?(?!\w)", text, re.IGNORECASE)
        if hit is not None:
            relation = Relation(label, ((Hop(frozenset({label}), frozenset()),),))
            found.append(RelationWord(hit.start(), hit.end(), hit.group(), relation))
    return found


def fallback(relation: Relation) -> Relation | None:
    """Give the relation to follow where the given one leads nowhere, None where there is none."""
    return _RELATIONS[relation.fallback] if relation.fallback else None


def neighbours(subgraph: Subgraph, hop: Hop) -> list[str]:
    """Take one step from an entity.

    Args:
        subgraph: The entity with its facts each way.
        hop: The properties to follow.

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
    return property_label in _PERSONAL


def literal_key(value: str) -> str:
    """Key of a value that is no node; in double quotes, as in Turtle, so never an id."""
    return f'"{value}"'


def fits_gender(subgraph: Subgraph, gender: str | None) -> bool:
    """Tell whether an entity can be what a gendered word asks for; unknown genders fit."""
    if gender is None:
        return True
    known = _genders(subgraph.triples)
    return not known or gender in known


def _genders(triples: Iterable[Triple]) -> set[str]:
    return {
        triple.value.lower() for triple in triples if triple.property in ("sex or gender", "gender")
    }
