"""Entities that a text asks for: over a named relation, or by the family name of a linked one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.types import Entity, Mention, Subgraph
from kg.base import KnowledgeGraph
from kg.mentions import fold
from kg.names import NameParts
from kg.relations import (
    Relation,
    RelationWord,
    between_persons,
    fallback,
    fits_gender,
    literal_key,
    neighbours,
    property_words,
)

__all__ = ["Asked", "Neighbourhoods", "Source", "family_names", "follow_relations"]

MAX_NEIGHBOURS: Final = 8
"""Most neighbours taken over one relation of one entity: "children" of a king, not all readers."""

REACH: Final = 400
"""Characters between a name and a relation word that may concern it; a long question's length."""

MAX_KIN: Final = 2
"""A family name that more persons bear says nothing of kinship."""

_LIFESPAN: Final = 110
_YEAR_DIGITS: Final = 9


class Source(NamedTuple):
    """Where a relation starts.

    Attributes:
        mention: The words of the text.
        key: The id of the node, or ``literal_key`` of a name that only stands as a value.
    """

    mention: Mention
    key: str


class Asked(NamedTuple):
    """An entity that the text asks for without naming it."""

    mention: Mention
    entity: Entity
    matched: str


class Neighbourhoods:
    """The one-hop subgraphs met while linking one batch, each read once.

    Args:
        graph: The graph.
        names: Its look-up by written values, where it has one.
        limit: Most triples each way of one node.
    """

    def __init__(self, graph: KnowledgeGraph, names: NameParts | None, limit: int) -> None:
        self._graph = graph
        self._names = names
        self._limit = limit
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
        """Give a subgraph that was fetched; one without facts for any other key."""
        found = self.known.get(key)
        return Subgraph(entity=Entity(id=key, label=key.strip('"'))) if found is None else found

    def fetch_written(self, keys: Iterable[str]) -> None:
        """Read the facts that write the labels of known nodes as text, for ``written``."""
        self.fetch(literal_key(self.get(key).entity.label) for key in keys if self.get(key).triples)

    def written(self, key: str) -> Subgraph:
        """Give a subgraph with the facts that name its node as text only, by contemporaries."""
        subgraph = self.get(key)
        if not subgraph.triples:
            return subgraph
        facts = [
            fact
            for fact in self.get(literal_key(subgraph.entity.label)).incoming
            if between_persons(fact.property)
        ]
        if not facts:
            return subgraph
        self.fetch(fact.subject_id for fact in facts if fact.subject_id)
        fitting = [f for f in facts if _contemporary(subgraph, self.get(f.subject_id or ""))]
        return subgraph.model_copy(update={"incoming": (*subgraph.incoming, *fitting)})


@dataclass
class _Walk:
    """One path of one relation, on its way from its source."""

    text: int
    word: RelationWord
    relation: Relation
    source: Source
    path: int
    keys: list[str] = field(default_factory=list)


def follow_relations(
    texts: Sequence[str],
    words: Sequence[Sequence[RelationWord]],
    sources: Sequence[Sequence[Source]],
    around: Neighbourhoods,
) -> list[list[Asked]]:
    """Follow the relations that texts name from their linked entities, all texts step by step.

    Only neighbours that the graph itself states facts about are kept: the others are described by
    the triple that leads there.

    Args:
        texts: Questions or sentences.
        words: For each text its ``relation_words``.
        sources: For each text where relations may start.
        around: The subgraphs; those of the sources are fetched already.

    Returns:
        For each text the entities reached, those of the most telling words first.
    """
    walks: list[_Walk] = []
    for number, (text, named, starts) in enumerate(zip(texts, words, sources, strict=True)):
        for source in starts:
            own = property_words(text, around.get(source.key))
            for word in _near(source, [*named, *own]):
                walks += _walks(number, word, word.relation, source)
    # What several words reach is put down to the one that says most: "father" before "family".
    walks.sort(key=lambda walk: (walk.relation.name == "life", walk.relation.broad))
    found = _walk(walks, around)
    reached = {(walk.text, walk.word) for walk, keys in found if keys}
    second = [
        again
        for walk in walks
        if walk.path == 0 and (walk.text, walk.word) not in reached
        for again in _walks(walk.text, walk.word, fallback(walk.relation), walk.source)
    ]
    results: list[list[Asked]] = [[] for _ in texts]
    for walk, keys in [*found, *_walk(second, around)]:
        name = walk.word.relation.name
        matched = f"relation: {name}"
        if walk.relation is not walk.word.relation:
            matched = f"relation: {walk.relation.name} (for {name})"
        mention = Mention(text=walk.word.text, start=walk.word.start, end=walk.word.end)
        results[walk.text] += [Asked(mention, around.get(key).entity, matched) for key in keys]
    return results


def _near(source: Source, words: Iterable[RelationWord]) -> Iterator[RelationWord]:
    """Yield the words that may concern a source, the first for each relation."""
    seen = set()
    for word in words:
        near = abs(word.start - source.mention.start) <= REACH
        if near and word.relation.name not in seen:
            seen.add(word.relation.name)
            yield word


def _walks(
    text: int, word: RelationWord, relation: Relation | None, source: Source
) -> Iterator[_Walk]:
    if relation is not None:
        for path in range(len(relation.paths)):
            yield _Walk(text, word, relation, source, path, [source.key])


def _walk(walks: Sequence[_Walk], around: Neighbourhoods) -> list[tuple[_Walk, list[str]]]:
    """Take all walks to their ends; give for each the described nodes of the asked gender."""
    for depth in range(max((len(w.relation.paths[w.path]) for w in walks), default=0)):
        going = [walk for walk in walks if depth < len(walk.relation.paths[walk.path])]
        around.fetch(key for walk in going for key in walk.keys)
        around.fetch_written(key for walk in going for key in walk.keys)
        for walk in going:
            hop = walk.relation.paths[walk.path][depth]
            reached = dict.fromkeys(
                key
                for start in walk.keys
                for key in neighbours(around.written(start), hop)
                if key != walk.source.key
            )
            walk.keys = list(reached)[:MAX_NEIGHBOURS]
    around.fetch(key for walk in walks for key in walk.keys if not key.startswith('"'))
    return [
        (
            walk,
            [
                key
                for key in walk.keys
                if not key.startswith('"')
                and around.get(key).triples
                and fits_gender(around.get(key), walk.relation.gender)
            ],
        )
        for walk in walks
    ]


def family_names(
    words: Sequence[RelationWord],
    sources: Sequence[Source],
    asked: Sequence[Asked],
    names: NameParts,
    around: Neighbourhoods,
) -> list[Asked]:
    """Find likely kin by family name where a text asks for kin and no stated relation leads there.

    A person counts who bears the family name of a source, lived at the same time, and, where the
    graph describes the source, shares at least one of its other values.

    Args:
        words: The relation words of the question.
        sources: Its linked entities, and names that only stand as values.
        asked: What was reached over stated relations.
        names: The graph's look-up by parts of names.
        around: The subgraphs.

    Returns:
        The persons found, each with ``family name: …`` as its way.
    """
    kinship = [word for word in words if word.relation.kinship]
    broad = [word for word in kinship if word.relation.broad]
    word = next(iter(broad or kinship), None)
    if word is None or (asked and not broad):
        return []
    found: list[Asked] = []
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
            around.get(key)
            for key in dict.fromkeys(ids)
            if key != source.key
            and _family_name(around.get(key)) == family
            and fits_gender(around.get(key), word.relation.gender)
            and _contemporary(subgraph, around.get(key))
            and (not subgraph.triples or _values(subgraph) & _values(around.get(key)))
        ]
        if len(kin) <= MAX_KIN:
            mention = Mention(text=word.text, start=word.start, end=word.end)
            found += [Asked(mention, each.entity, f"family name: {family}") for each in kin]
    return found


def _family_name(subgraph: Subgraph) -> str | None:
    """The stated family name if the label contains it, else the label's last word."""
    words = subgraph.entity.label.split()
    stated = [
        t.value for t in subgraph.triples if t.property in lexicon_set("relations", "family_names")
    ]
    if stated:
        return next((name for name in stated if fold(name) in fold(" ".join(words))), None)
    last = words[-1] if len(words) > 1 else ""
    return last if last[:1].isupper() and not set(last) <= set("IVXLC") else None


def _contemporary(subgraph: Subgraph, other: Subgraph) -> bool:
    years, others = _years(subgraph), _years(other)
    return not (years and others) or min(abs(a - b) for a in years for b in others) <= _LIFESPAN


def _years(subgraph: Subgraph) -> list[int]:
    years, dates = [], lexicon_set("relations", "life_dates")
    for triple in subgraph.triples:
        head = triple.value.lstrip("-").split("-")[0]
        if triple.property in dates and head.isdecimal() and len(head) <= _YEAR_DIGITS:
            years.append(int(head) * (-1 if triple.value.startswith("-") else 1))
    return years


def _values(subgraph: Subgraph) -> set[tuple[str, str]]:
    commonplace = lexicon_set("relations", "commonplace")
    return {(t.property, t.value) for t in subgraph.triples if t.property not in commonplace}
