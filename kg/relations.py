"""Entities that a text asks for: by a relation to a linked one, or by its family name.

A question such as "Who were June Carter's parents" or "Who succeeded Bahram II" asks for
entities it does not name. The words are read with a small general table (kinship, succession,
teaching) whose entries name properties by their labels in the common vocabularies, and with the
labels of the properties that the entity itself has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.types import Entity, Mention, Subgraph
from kg.base import KnowledgeGraph
from kg.mentions import fold
from kg.names import NameParts


class _Hop(NamedTuple):
    """One step from an entity: properties followed forwards and backwards, by their labels."""

    forward: frozenset[str]
    backward: frozenset[str]


class Relation(NamedTuple):
    """What a relation word means.

    Attributes:
        paths: Ways to reach the neighbours, each a sequence of hops.
        gender: ``male`` or ``female`` if the word implies it; neighbours known to be of another
            gender are left out.
        fallback: Name of the relation to follow where this one leads nowhere.
        broad: True for kinship of no certain degree: *relative*, *ancestor*.
    """

    name: str
    paths: tuple[tuple[_Hop, ...], ...]
    gender: str | None = None
    fallback: str | None = None
    kinship: bool = False
    broad: bool = False


class RelationWord(NamedTuple):
    """A relation named in a text, with the words that name it."""

    mention: Mention
    relation: Relation


class Source(NamedTuple):
    """Where a relation starts: words of the text, and a node's id or a ``literal_key``."""

    mention: Mention
    key: str


class ImpliedEntity(NamedTuple):
    """An entity that the text asks for without naming it, and how it was found."""

    mention: Mention
    entity: Entity
    matched: str


class Neighbourhoods:
    """The one-hop subgraphs read while one batch is linked, each once."""

    def __init__(self, graph: KnowledgeGraph, names: NameParts | None, limit: int) -> None:
        self._graph, self._names, self._limit = graph, names, limit
        self.known: dict[str, Subgraph] = {}

    def fetch(self, keys: Iterable[str]) -> None:
        """Read what is not known yet, in one call for nodes and one for written values."""
        missing = [key for key in dict.fromkeys(keys) if key not in self.known]
        ids = [key for key in missing if not key.startswith('"')]
        if ids:
            subgraphs = self._graph.subgraphs(ids, limit=self._limit)
            self.known.update(zip(ids, subgraphs, strict=True))
        literals = [key for key in missing if key.startswith('"')]
        if literals and self._names is not None:
            facts = self._names.facts_with([key[1:-1] for key in literals])
            for key, triples in zip(literals, facts, strict=True):
                self.known[key] = Subgraph(
                    entity=Entity(id=key, label=key[1:-1]), incoming=tuple(triples)
                )

    def get(self, key: str) -> Subgraph:
        """A subgraph that was fetched; one without facts for any other key."""
        found = self.known.get(key)
        return Subgraph(entity=Entity(id=key, label=key.strip('"'))) if found is None else found

    def written(self, key: str) -> Subgraph:
        """A subgraph with the facts that name its node as text only, by contemporaries."""
        subgraph = self.get(key)
        if not subgraph.triples:
            return subgraph
        facts = [
            fact
            for fact in self.get(literal_key(subgraph.entity.label)).incoming
            if between_persons(fact.property)
        ]
        self.fetch(fact.subject_id for fact in facts if fact.subject_id)
        fitting = [f for f in facts if _contemporary(subgraph, self.get(f.subject_id or ""))]
        return subgraph.model_copy(update={"incoming": (*subgraph.incoming, *fitting)})


def relation_words(text: str) -> list[RelationWord]:
    """Find the words of a text that name a relation of the general table, in their order."""
    return [
        _word(found, relation)
        for found in _naming_word().finditer(text)
        # A letter such as the long s matches in any case and is no key.
        if (relation := _by_word().get(found.group(1).casefold())) is not None
    ]


@dataclass
class _Walk:
    """One path of one relation, on its way from its source."""

    text: int
    word: RelationWord
    relation: Relation
    source: Source
    path: tuple[_Hop, ...]
    keys: list[str] = field(default_factory=list)


def follow_relations(
    texts: Sequence[str],
    words: Sequence[Sequence[RelationWord]],
    sources: Sequence[Sequence[Source]],
    around: Neighbourhoods,
) -> list[list[ImpliedEntity]]:
    """Follow the relations that texts name from their linked entities, all texts step by step.

    Only neighbours that the graph itself states facts about are kept: the others are described by
    the triple that leads there. Those of the most specific words come first.
    """
    walks: list[_Walk] = []
    for number, (text, named, starts) in enumerate(zip(texts, words, sources, strict=True)):
        for source in starts:
            own = _property_words(text, around.get(source.key))
            for word in _near(source, [*named, *own]):
                walks += _walks(number, word, word.relation, source)
    # What several words reach is put down to the most specific: "father" before "family".
    walks.sort(key=lambda walk: (walk.relation.name == "life", walk.relation.broad))
    _walk(walks, around)
    reached = {(walk.text, walk.word) for walk in walks if walk.keys}
    second = [
        again
        for walk in walks
        if (walk.text, walk.word) not in reached
        and walk.relation.fallback
        and walk.path is walk.relation.paths[0]
        for again in _walks(walk.text, walk.word, _by_name()[walk.relation.fallback], walk.source)
    ]
    _walk(second, around)
    results: list[list[ImpliedEntity]] = [[] for _ in texts]
    for walk in [*walks, *second]:
        name = walk.word.relation.name
        matched = f"relation: {name}"
        if walk.relation is not walk.word.relation:
            matched = f"relation: {walk.relation.name} (for {name})"
        results[walk.text] += [
            ImpliedEntity(walk.word.mention, around.get(key).entity, matched) for key in walk.keys
        ]
    return results


def family_names(
    words: Sequence[RelationWord],
    sources: Sequence[Source],
    asked: Sequence[ImpliedEntity],
    names: NameParts,
    around: Neighbourhoods,
) -> list[ImpliedEntity]:
    """Find likely kin by family name where a text asks for kin and no stated relation leads there.

    A person counts who bears the family name of a source, lived at the same time, and, where the
    graph describes the source, shares at least one of its other values.
    """
    kinship = [word for word in words if word.relation.kinship]
    broad = [word for word in kinship if word.relation.broad]
    word = next(iter(broad or kinship), None)
    if word is None or (asked and not broad):
        return []
    found: list[ImpliedEntity] = []
    surnames = lexicon_set("relations", "family_names")
    for source in sources:
        subgraph = around.get(source.key)
        family = _family_name(subgraph)
        if family is None:
            continue
        [holders], [facts] = names.named([family]), names.facts_with([family])
        ids = [entity.id for entity in holders]
        ids += [f.subject_id for f in facts if f.property in surnames and f.subject_id]
        around.fetch(ids)
        kin = [
            other.entity
            for key, other in ((key, around.get(key)) for key in dict.fromkeys(ids))
            if key != source.key
            and _family_name(other) == family
            and _fits_gender(other, word.relation.gender)
            and _contemporary(subgraph, other)
            and (not subgraph.triples or _values(subgraph) & _values(other))
        ]
        if len(kin) <= 2:  # a name of more bearers says nothing of kinship
            found += [
                ImpliedEntity(word.mention, entity, f"family name: {family}") for entity in kin
            ]
    return found


def between_persons(property_label: str) -> bool:
    """True if the general table knows the property as a relation between persons."""
    return property_label in _personal()


def literal_key(value: str) -> str:
    """Key of a value that is no node; in double quotes, as in Turtle, so never an id."""
    return f'"{value}"'


def genders(subgraph: Subgraph) -> set[str]:
    """What the graph states as the gender of an entity, in lower case."""
    properties = lexicon_set("relations", "genders")
    return {triple.value.lower() for triple in subgraph.triples if triple.property in properties}


def _word(found: re.Match[str], relation: Relation) -> RelationWord:
    return RelationWord(Mention(text=found.group(), start=found.start(), end=found.end()), relation)


def _property_words(text: str, subgraph: Subgraph) -> list[RelationWord]:
    """The labels of an entity's own properties in a text, unless the general table has them."""
    lowered = text.lower()
    found = []
    for label in dict.fromkeys(triple.property for triple in subgraph.triples):
        if label.lower() in _by_word() or label.lower() not in lowered:
            continue
        hit = re.search(rf"(?<!\w){re.escape(label)}s?(?!\w)", text, re.IGNORECASE)
        if hit is not None:
            found.append(_word(hit, Relation(label, ((_Hop(frozenset({label}), frozenset()),),))))
    return found


def _near(source: Source, words: Iterable[RelationWord]) -> Iterator[RelationWord]:
    """The words that may concern a source, at most 400 characters away, the first per relation."""
    seen = set()
    for word in words:
        near = abs(word.mention.start - source.mention.start) <= 400
        if near and word.relation.name not in seen:
            seen.add(word.relation.name)
            yield word


def _walks(text: int, word: RelationWord, relation: Relation, source: Source) -> list[_Walk]:
    return [_Walk(text, word, relation, source, path, [source.key]) for path in relation.paths]


def _walk(walks: Sequence[_Walk], around: Neighbourhoods) -> None:
    """Take all walks to their ends: the described nodes of the right gender."""
    for depth in range(max((len(walk.path) for walk in walks), default=0)):
        going = [walk for walk in walks if depth < len(walk.path)]
        keys = [key for walk in going for key in walk.keys]
        around.fetch(keys)
        around.fetch(
            literal_key(around.get(key).entity.label) for key in keys if around.get(key).triples
        )
        for walk in going:
            reached = dict.fromkeys(
                key
                for start in walk.keys
                for key in _neighbours(around.written(start), walk.path[depth])
                if key != walk.source.key
            )
            walk.keys = list(reached)[:8]  # the children of a king, not all readers
    for walk in walks:
        walk.keys = [key for key in walk.keys if not key.startswith('"')]
    around.fetch(key for walk in walks for key in walk.keys)
    for walk in walks:
        walk.keys = [
            key
            for key in walk.keys
            if around.get(key).triples and _fits_gender(around.get(key), walk.relation.gender)
        ]


def _neighbours(subgraph: Subgraph, hop: _Hop) -> list[str]:
    """Keys of the neighbours over one hop, in the graph's order, without repeats."""
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


def _fits_gender(subgraph: Subgraph, gender: str | None) -> bool:
    """True if a gendered word may ask for an entity; unknown genders fit."""
    known = genders(subgraph)
    return gender is None or not known or gender in known


def _family_name(subgraph: Subgraph) -> str | None:
    """The stated family name if the label contains it, else the label's last word."""
    label = subgraph.entity.label
    properties = lexicon_set("relations", "family_names")
    if stated := [t.value for t in subgraph.triples if t.property in properties]:
        return next((name for name in stated if fold(name) in fold(label)), None)
    last = label.split()[-1] if len(label.split()) > 1 else ""
    return last if last[:1].isupper() and not set(last) <= set("IVXLC") else None


def _contemporary(subgraph: Subgraph, other: Subgraph) -> bool:
    """True unless the years of two lives are more than a lifespan of 110 years apart."""
    years, others = _years(subgraph), _years(other)
    return not (years and others) or min(abs(a - b) for a in years for b in others) <= 110


def _years(subgraph: Subgraph) -> list[int]:
    years, dates = [], lexicon_set("relations", "life_dates")
    for triple in subgraph.triples:
        head = triple.value.lstrip("-").split("-")[0]
        if triple.property in dates and head.isdecimal() and len(head) < 10:
            years.append(int(head) * (-1 if triple.value.startswith("-") else 1))
    return years


def _values(subgraph: Subgraph) -> set[tuple[str, str]]:
    commonplace = lexicon_set("relations", "commonplace")
    return {(t.property, t.value) for t in subgraph.triples if t.property not in commonplace}


@cache
def _by_name() -> dict[str, Relation]:
    """The general table; its paths are lists of names of hops."""
    table = lexicon("relations")
    hops = {
        name: _Hop(frozenset(hop["forward"]), frozenset(hop["backward"]))
        for name, hop in table["hops"].items()
    }
    optional = ("gender", "fallback", "kinship", "broad")
    return {
        row["name"]: Relation(
            row["name"],
            tuple(tuple(hops[hop] for hop in path) for path in row["paths"]),
            **{name: row[name] for name in optional if name in row},
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
