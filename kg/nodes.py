"""Reads nodes of an Oxigraph store: names, classes and facts, through a vocabulary profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QuerySolutions, Store

from guardrail.core.types import Entity, Subgraph, Triple
from kg.base import holders
from kg.blank_nodes import is_named
from kg.facts import Name, Row, choose_names, fallback_label, property_fallback, triples, unknown
from kg.profiles import Profile
from kg.results import graph_read
from kg.structured import StructuredValues
from kg.traffic import keep

__all__ = ["NodeReader", "detect_profile"]

_PROPERTY_TYPE = NamedNode("http://wikiba.se/ontology#propertyType")
_EXTERNAL_ID = NamedNode("http://wikiba.se/ontology#ExternalId")
# Most triples that are read out of one node.
_READ = 10_000
# A hub such as "human" takes part in millions of triples; past this many, more say little about
# prominence. They are counted inside the store, where two thousand take half a millisecond.
_COUNTED = 2_000
# Of the facts that point at a hub, any few are as good as any others: those between the entities
# of a text are read by ``links``, and the rest of them from their own side.
_HUB_KEPT = 25
_CACHED_NODES = 50_000
_CACHED_SUBGRAPHS = 5_000
# Only small subgraphs are kept, so that the cache stays within some 250 MB.
_CACHED_TRIPLES = 150
_CLASS_DEPTH = 20
_SAMPLED = 10_000


@dataclass(frozen=True, slots=True)
class _Role:
    """What a predicate is for: facts, classes, or names (with its place in the profile)."""

    fact: bool
    type: bool
    statement: bool
    name: int | None
    description: int | None


class NodeReader:
    """Reads a store and remembers what it read; a new reader is made when the store changes."""

    def __init__(self, store: Store, profile: Profile) -> None:
        self._store = store
        self._profile = profile
        self._graph = graph_read(store)
        self._structured = StructuredValues(
            lambda node: self._quads(node, None, None), profile, self._label, self._fact_label
        )
        self._name_predicates = profile.label + profile.alias
        self._named_classes = {profile.iri(id_) for ids in profile.ner.values() for id_ in ids}
        self._roles: dict[str, _Role] = {}
        self._fact_labels: dict[str, str | None] = {}
        self._labels: dict[str, str] = {}
        self._entities: dict[str, Entity | None] = {}
        self._subgraphs: dict[tuple[str, int], Subgraph] = {}

    def entity(self, iri: str) -> Entity | None:
        """The entity of an IRI; None where no triple mentions it, or it is a property."""
        try:
            return self._entities[iri]
        except KeyError:
            return keep(self._entities, iri, self._read(iri)[0], most=_CACHED_NODES)

    def subgraph(self, iri: str, limit: int) -> Subgraph:
        """The one-hop subgraph of an IRI, at most ``limit`` triples each way."""
        cached = self._subgraphs.get((iri, limit))
        if cached is not None:
            return cached
        entity, rows, truncated, pointing = self._read(iri)
        if entity is None:
            return unknown(self._profile.short(iri), self._profile)
        outgoing = self._triples(rows)
        incoming: list[Row] = []
        most = min(limit, _HUB_KEPT) if pointing > limit else limit
        for quad in self._quads(None, None, NamedNode(iri)):
            if is_named(quad.subject) and self._is_fact(quad.predicate.value):
                if len(incoming) >= most:
                    truncated = True
                    break
                incoming.append(Row(quad.subject.value, quad.predicate.value, iri))
        subgraph = Subgraph(
            entity=entity,
            triples=tuple(outgoing[:limit]),
            incoming=tuple(self._triples(incoming)),
            truncated=truncated or len(outgoing) > limit,
        )
        if len(subgraph.triples) + len(subgraph.incoming) <= _CACHED_TRIPLES:
            keep(self._subgraphs, (iri, limit), subgraph, most=_CACHED_SUBGRAPHS)
        return subgraph

    def links(self, iris: Sequence[str]) -> list[Triple]:
        """All facts between two different nodes of the given ones, by subject in their order."""
        nodes = {iri: NamedNode(iri) for iri in iris}
        found: list[Triple] = []
        for subject, node in nodes.items():
            rows = [
                Row(subject, quad.predicate.value, value)
                for value, other in nodes.items()
                if value != subject
                for quad in self._quads(node, None, other)
                if self._is_fact(quad.predicate.value)
            ]
            found += self._triples(rows)
        return found

    def wider(self, iri: str) -> list[Entity]:
        """The places that hold a place, nearest first."""
        predicates = [NamedNode(predicate) for predicate in self._profile.within]

        def above(place: str) -> Iterator[str]:
            for predicate in predicates:
                for quad in self._quads(NamedNode(place), predicate, None):
                    if is_named(quad.object):
                        yield quad.object.value

        found = (self.entity(place) for place in holders(iri, above))
        return [entity for entity in found if entity is not None]

    def spotted_names(self, iri: str) -> Sequence[str]:
        """Names of a node that may stand for an entity in text: not those of a class."""
        node = NamedNode(iri)
        for predicate in self._profile.type:
            if self._any(None, NamedNode(predicate), node):
                return ()
        entity = self.entity(iri)
        return () if entity is None else (entity.label, *entity.aliases)

    # --- one node ------------------------------------------------------------------------

    def _read(self, iri: str) -> tuple[Entity | None, list[Row], bool, int]:
        """Read a node in one pass.

        Returns:
            The entity, its facts, whether facts were left out, and how many triples point at it.
        """
        node, profile, roles = NamedNode(iri), self._profile, self._roles
        names: list[Name] = []
        descriptions: list[tuple[int, int, str]] = []
        types: list[str] = []
        rows: list[Row] = []
        count = 0
        for quad in islice(self._quads(node, None, None), _READ + 1):
            count += 1
            predicate, value = quad.predicate.value, quad.object
            role = roles.get(predicate) or self._role(predicate)
            if is_named(value):
                if role.type:
                    types.append(value.value)
                if role.fact:
                    rows.append(Row(iri, predicate, value.value))
                elif role.statement:
                    rows += self._structured.statement(iri, predicate, value)
            elif role.fact and not role.type and isinstance(value, BlankNode | NamedNode):
                rows += self._structured.rows(iri, predicate, value)
            elif isinstance(value, Literal):
                language = value.language
                if role.fact:
                    rows.append(Row(iri, predicate, value.value, value.datatype.value, language))
                    continue
                rank = profile.language_rank(language)
                if role.name is not None and (rank is not None or role.name < len(profile.label)):
                    names.append(Name.of(profile, role.name, value.value, language))
                elif role.description is not None and rank is not None:
                    descriptions.append((rank, role.description, value.value))
        left_out = count > _READ
        pointing = self._pointing(node)
        prominence = count + pointing
        if prominence == 0 or self._is_property(node):
            return None, rows, left_out, pointing
        label, aliases = choose_names(names, len(profile.label))
        entity = Entity(
            id=profile.short(iri),
            label=label or fallback_label(iri, profile),
            types=self._classes(types),
            aliases=aliases,
            description=min(descriptions)[2] if descriptions else None,
            url=profile.url(iri),
            prominence=prominence,
        )
        return entity, rows, left_out, pointing

    def _classes(self, direct: Sequence[str]) -> tuple[str, ...]:
        """Direct classes, then the wider ones that the profile's entity types name."""
        seen, frontier = set(direct), list(direct)
        wider: set[str] = set()
        for _ in range(_CLASS_DEPTH):
            above = [
                quad.object.value
                for iri in frontier
                for predicate in self._profile.subclass
                for quad in self._quads(NamedNode(iri), NamedNode(predicate), None)
                if is_named(quad.object)
            ]
            frontier = [iri for iri in dict.fromkeys(above) if iri not in seen]
            seen.update(frontier)
            wider.update(self._named_classes.intersection(frontier))
            if not frontier:
                break
        short = self._profile.short
        return (*sorted(map(short, set(direct))), *sorted(map(short, wider)))

    def _is_property(self, node: NamedNode) -> bool:
        iri, prefix = node.value, self._profile.property_entity_prefix
        if prefix and self._profile.property_prefix:
            local = iri.removeprefix(prefix)
            return local != iri and local[:1] == "P" and local[1:].isdigit()
        return self._any(None, node, None)

    # --- labels and predicates -----------------------------------------------------------

    def _triples(self, rows: Sequence[Row]) -> list[Triple]:
        return triples(rows, self._profile, label=self._label, property_label=self._fact_label)

    def _label(self, iri: str) -> str:
        """The preferred name of a node, or a readable end of its IRI."""
        try:
            return self._labels[iri]
        except KeyError:
            label = self._read_label(iri) or fallback_label(iri, self._profile)
            return keep(self._labels, iri, label, most=_CACHED_NODES)

    def _read_label(self, iri: str) -> str | None:
        node, names = NamedNode(iri), []
        for place, predicate in enumerate(self._profile.label):
            for quad in self._quads(node, NamedNode(predicate), None):
                if isinstance(quad.object, Literal):
                    name = quad.object
                    names.append(Name.of(self._profile, place, name.value, name.language))
        return choose_names(names, len(self._profile.label))[0]

    def _is_fact(self, predicate: str) -> bool:
        return (self._roles.get(predicate) or self._role(predicate)).fact

    def _role(self, predicate: str) -> _Role:
        names, descriptions = self._name_predicates, self._profile.description
        claims = self._profile.statements
        role = self._roles[predicate] = _Role(
            fact=self._fact_label(predicate) is not None,
            type=predicate in self._profile.type,
            statement=claims is not None and predicate.startswith(f"{claims.claim}P"),
            name=names.index(predicate) if predicate in names else None,
            description=descriptions.index(predicate) if predicate in descriptions else None,
        )
        return role

    def _fact_label(self, predicate: str) -> str | None:
        """The label of a property that states facts for a reader; None for any other."""
        try:
            return self._fact_labels[predicate]
        except KeyError:
            label = None
            if self._profile.is_fact(predicate):
                node = self._profile.property_node(predicate)
                if not self._any(NamedNode(node), _PROPERTY_TYPE, _EXTERNAL_ID):
                    label = (
                        self._read_label(node)
                        or self._read_label(predicate)
                        or property_fallback(predicate)
                    )
            self._fact_labels[predicate] = label
            return label

    # --- the store -----------------------------------------------------------------------

    def _quads(
        self,
        subject: NamedNode | BlankNode | None,
        predicate: NamedNode | None,
        value: NamedNode | None,
    ) -> Iterator[Quad]:
        return self._store.quads_for_pattern(subject, predicate, value, self._graph)

    def _pointing(self, node: NamedNode) -> int:
        """How many triples point at a node, up to a bound; counted without reading them."""
        if not self._any(None, None, node):
            return 0
        found = self._store.query(
            f"SELECT (COUNT(*) AS ?n) {{ {{ SELECT * {{ ?s ?p {node} }} LIMIT {_COUNTED} }} }}",
            use_default_graph_as_union=self._graph is None,
        )
        return next(int(row[0].value) for row in cast(QuerySolutions, found))

    def _any(
        self, subject: NamedNode | None, predicate: NamedNode | None, value: NamedNode | None
    ) -> bool:
        return next(self._quads(subject, predicate, value), None) is not None


def detect_profile(store: Store) -> str:
    """Tell the vocabulary from the data: ``wikidata``, ``dbpedia`` or ``rdfs``."""
    for quad in islice(store.quads_for_pattern(None, None, None, graph_read(store)), _SAMPLED):
        predicate = quad.predicate.value
        if predicate.startswith("http://www.wikidata.org/prop/direct/"):
            return "wikidata"
        if predicate.startswith("http://dbpedia.org/ontology/"):
            return "dbpedia"
    return "rdfs"
