"""The embedded knowledge graph: Oxigraph in this process, in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pyoxigraph import DefaultGraph, Literal, NamedNode, RdfFormat, Store

from guardrail.errors import InputError, KnowledgeGraphError
from guardrail.types import Entity, Mention, Subgraph, Triple
from kg.labels import LabelIndex, MemoryLabelIndex, StoredLabelIndex, key_of, names_in, spot
from kg.profiles import Profile, load_profile, local_name
from kg.results import GraphStats, QueryResult, read_solutions
from kg.values import render_literal

__all__ = ["OxigraphGraph", "detect_profile"]

_DEFAULT = DefaultGraph()
_RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_PROPERTY_TYPE = NamedNode("http://wikiba.se/ontology#propertyType")
_EXTERNAL_ID = NamedNode("http://wikiba.se/ontology#ExternalId")
# A hub such as "human" takes part in millions of triples; past this many, more say nothing
# about prominence and reading them would stall the caller.
_COUNTED = 10_000
_CACHED_ENTITIES = 50_000
_CACHED_SUBGRAPHS = 5_000
_CACHED_SUBGRAPH_SIZE = 150
_SAMPLED = 10_000
_CLASS_DEPTH = 20
# Language rank of a name in a language that the profile does not list.
_UNREADABLE = 1_000


class OxigraphGraph:
    """A knowledge graph in an Oxigraph store.

    Implements ``KnowledgeGraph`` and ``MentionIndex``. Safe to read from several threads.
    An on-disk graph is opened for reading unless ``writable`` is set, so that several processes
    can use it at once.

    Args:
        store: An open store; None for an empty one in memory.
        path: Where the store lies; None for one in memory.
        profile: Name or file of the vocabulary profile; None to detect it from the data.
        name: Name for the score log; None for the file name of the path.

    Example:
        >>> graph = OxigraphGraph.from_text('''
        ...     @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        ...     <urn:ada> rdfs:label "Ada Lovelace"@en ; <urn:born> "1815-12-10" .
        ... ''')
        >>> graph.subgraphs(["urn:ada"])[0].triples[0].text
        'Ada Lovelace, born: 1815-12-10.'
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        path: str | Path | None = None,
        profile: str | Path | Profile | None = None,
        name: str | None = None,
    ) -> None:
        self._store: Store | None = Store() if store is None else store
        self._path = None if path is None else Path(path)
        self._name = name or (self._path.name if self._path else "memory")
        self._given_profile = profile
        self._profile: Profile | None = None
        self._index: LabelIndex | None = None
        self._clear()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        profile: str | Path | Profile | None = None,
        name: str | None = None,
        writable: bool = False,
    ) -> OxigraphGraph:
        """Open an on-disk graph, or create it with ``writable``.

        Raises:
            KnowledgeGraphError: If there is no such graph or it cannot be opened.
        """
        path = Path(path)
        if not writable and not (path / "CURRENT").is_file():
            raise KnowledgeGraphError(
                f"{path} is not a graph; make one with: guardrail kg load FILE --kg {path}"
            )
        try:
            store = Store(str(path)) if writable else Store.read_only(str(path))
        except (OSError, ValueError) as error:
            raise KnowledgeGraphError(f"cannot open the graph {path}: {error}") from error
        return cls(store, path=path, profile=profile, name=name)

    @classmethod
    def from_text(
        cls,
        text: str | bytes,
        *,
        format: RdfFormat = RdfFormat.TURTLE,  # noqa: A002 - the field's own word
        profile: str | Path | Profile | None = None,
        name: str | None = None,
    ) -> OxigraphGraph:
        """Make a graph in memory from RDF text, Turtle (or its subset N-Triples) by default.

        Raises:
            KnowledgeGraphError: If the text is not RDF of that format; names the line.
        """
        store = Store()
        try:
            store.bulk_load(input=text, format=format)
        except (SyntaxError, ValueError, OSError) as error:
            raise KnowledgeGraphError(f"not {format}: {error}") from error
        return cls(store, profile=profile, name=name)

    # --- the protocol ------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the graph, for the score log."""
        return self._name

    @property
    def profile(self) -> Profile:
        """The vocabulary profile, detected from the data where none was given."""
        if self._profile is None:
            given = self._given_profile
            self._profile = load_profile(detect_profile(self.store) if given is None else given)
        return self._profile

    @property
    def path(self) -> Path | None:
        """Where the graph lies; None for one in memory."""
        return self._path

    @property
    def store(self) -> Store:
        """The open store.

        Raises:
            KnowledgeGraphError: If the graph was closed.
        """
        if self._store is None:
            raise KnowledgeGraphError(f"the graph {self._name} is closed; open it again")
        return self._store

    def find(self, labels: Sequence[str]) -> list[list[Entity]]:
        """For each of n labels, the entities of that label or alias, most prominent first."""
        index = self._names()
        found = []
        for label in labels:
            nodes = (self._entity(iri) for iri in index.nodes(key_of(label)))
            known = [entity for entity in nodes if entity is not None]
            found.append(sorted(known, key=lambda entity: (-entity.prominence, entity.id)))
        return found

    def entities(self, ids: Sequence[str]) -> list[Entity | None]:
        """For each of n ids the entity, or None where the graph does not know it."""
        return [None if (iri := self._iri(id_)) is None else self._entity(iri) for id_ in ids]

    def subgraphs(self, ids: Sequence[str], *, limit: int = 500) -> list[Subgraph]:
        """For each of n ids the one-hop subgraph, at most ``limit`` triples each way.

        Triples are ordered by the label of the property, then by value.
        """
        return [self._subgraph(id_, limit) for id_ in ids]

    def links(self, ids: Sequence[str]) -> list[Triple]:
        """All triples whose subject and value are both among the given entities (SCK)."""
        iris = [iri for id_ in dict.fromkeys(ids) if (iri := self._iri(id_)) is not None]
        nodes = {iri: NamedNode(iri) for iri in iris}
        found: list[Triple] = []
        for subject in iris:
            rows: list[_Row] = []
            for other in iris:
                if other == subject:
                    continue
                for quad in self.store.quads_for_pattern(
                    nodes[subject], None, nodes[other], _DEFAULT
                ):
                    if self._fact_label(quad.predicate.value) is not None:
                        rows.append(_Row(quad.predicate.value, other, None, None))
            found += self._triples(subject, rows)
        return found

    def spot(self, text: str) -> list[Mention]:
        """All maximal stretches of the text that equal a label or alias, at word boundaries."""
        return spot(text, self._names(), self._spotted_names)

    def close(self) -> None:
        """Release the store; the graph cannot be used afterwards."""
        self._store = None
        self._index = None
        self._clear()

    # --- beyond the protocol -----------------------------------------------------------------

    def query(self, sparql: str) -> QueryResult:
        """Run a SPARQL SELECT, ASK, CONSTRUCT or DESCRIBE query.

        Raises:
            InputError: If the query is not SPARQL.
            KnowledgeGraphError: If the store cannot answer it.
        """
        try:
            return read_solutions(self.store.query(sparql))
        except SyntaxError as error:
            raise InputError(f"not a SPARQL query: {error}") from error
        except (OSError, RuntimeError, ValueError) as error:
            raise KnowledgeGraphError(f"the query failed: {error}") from error

    def stats(self) -> GraphStats:
        """Count triples, named nodes and properties; reads the whole graph once."""
        triples = 0
        predicates: set[str] = set()
        for quad in self.store.quads_for_pattern(None, None, None, _DEFAULT):
            triples += 1
            predicates.add(quad.predicate.value)
        facts = {predicate for predicate in predicates if self.profile.is_fact(predicate)}
        named: set[str] = set()
        for predicate in self.profile.label:
            for quad in self.store.quads_for_pattern(None, NamedNode(predicate), None, _DEFAULT):
                if isinstance(quad.subject, NamedNode):
                    named.add(quad.subject.value)
        properties = {self.profile.property_node(predicate) for predicate in facts}
        return GraphStats(
            name=self.name,
            profile=self.profile.name,
            triples=triples,
            entities=len(named - properties),
            properties=len(facts),
        )

    def refresh(self) -> None:
        """Forget what was read before; call after changing the store by hand."""
        self._index = None
        if self._given_profile is None:
            self._profile = None
        self._clear()

    def index_labels(self) -> None:
        """Build the label index now, in the store itself where the graph lies on disk.

        Raises:
            KnowledgeGraphError: If the on-disk graph was opened for reading only.
        """
        if self._path is None:
            self._names()
            return
        try:
            StoredLabelIndex.drop(self.store)
            self._index = StoredLabelIndex.build(self.store, self._all_names())
        except OSError as error:
            raise KnowledgeGraphError(f"cannot index {self._path}: {error}") from error

    # --- reading -----------------------------------------------------------------------------

    def _clear(self) -> None:
        self._roles: dict[str, _Role] = {}
        self._named_classes: frozenset[str] | None = None
        self._entity_cache: dict[str, Entity | None] = {}
        self._label_cache: dict[str, str] = {}
        self._fact_cache: dict[str, str | None] = {}
        self._subgraph_cache: dict[tuple[str, int], Subgraph] = {}

    def _names(self) -> LabelIndex:
        if self._index is None:
            if StoredLabelIndex.exists(self.store):
                self._index = StoredLabelIndex(self.store)
            else:
                self._index = MemoryLabelIndex(self._all_names())
        return self._index

    def _all_names(self) -> Iterator[tuple[str, str]]:
        profile = self.profile
        return names_in(
            self.store,
            profile.label + profile.alias,
            lambda tag: profile.language_rank(tag) is not None,
        )

    def _spotted_names(self, iri: str) -> Sequence[str]:
        """Names of a node that may stand for an entity: not those of a class or a property."""
        node = NamedNode(iri)
        for predicate in self.profile.type:
            if self._any(None, NamedNode(predicate), node):
                return ()
        entity = self._entity(iri)
        return () if entity is None else (entity.label, *entity.aliases)

    def _any(
        self, subject: NamedNode | None, predicate: NamedNode | None, value: NamedNode | None
    ) -> bool:
        found = self.store.quads_for_pattern(subject, predicate, value, _DEFAULT)
        return next(iter(found), None) is not None

    def _iri(self, identifier: str) -> str | None:
        try:
            return self.profile.iri(identifier)
        except InputError:
            return None

    def _is_property(self, iri: str) -> bool:
        profile = self.profile
        if profile.property_entity_prefix and profile.property_prefix:
            local = iri.removeprefix(profile.property_entity_prefix)
            return local != iri and local[:1] == "P" and local[1:].isdigit()
        return self._any(None, NamedNode(iri), None)

    def _entity(self, iri: str) -> Entity | None:
        try:
            return self._entity_cache[iri]
        except KeyError:
            entity = self._read(iri)[0]
            if len(self._entity_cache) >= _CACHED_ENTITIES:
                self._entity_cache.clear()
            self._entity_cache[iri] = entity
            return entity

    def _read(self, iri: str) -> tuple[Entity | None, list[_Row], bool]:
        """Read a node in one pass: the entity, its facts, and whether facts were left out."""
        node, profile = NamedNode(iri), self.profile
        names: list[tuple[int, int, str]] = []
        descriptions: list[tuple[int, int, str]] = []
        types: dict[str, None] = {}
        rows: list[_Row] = []
        count = 0
        roles, pattern = self._roles, self.store.quads_for_pattern
        for quad in islice(pattern(node, None, None, _DEFAULT), _COUNTED + 1):
            count += 1
            predicate, value = quad.predicate.value, quad.object
            role = roles.get(predicate) or self._role(predicate)
            if isinstance(value, Literal):
                language = value.language
                if role.fact:
                    rows.append(_Row(predicate, value.value, value.datatype.value, language))
                elif role.name is not None:
                    rank = profile.language_rank(language)
                    if rank is not None:
                        names.append((rank, role.name, value.value))
                    elif role.name < len(profile.label):
                        names.append((_UNREADABLE, role.name, value.value))
                elif role.description is not None:
                    rank = profile.language_rank(language)
                    if rank is not None:
                        descriptions.append((rank, role.description, value.value))
            elif isinstance(value, NamedNode):
                if role.type:
                    types[value.value] = None
                if role.fact:
                    rows.append(_Row(predicate, value.value, None, None))
        room = max(0, _COUNTED - count)
        prominence = min(count, _COUNTED) + sum(
            1 for _ in islice(pattern(None, None, node, _DEFAULT), room)
        )
        if prominence == 0 or self._is_property(iri):
            return None, rows, count > _COUNTED
        label, aliases = _preferred(names, len(profile.label))
        entity = Entity(
            id=profile.short(iri),
            label=label or self._fallback(iri),
            types=self._classes(types),
            aliases=aliases,
            description=min(descriptions)[2] if descriptions else None,
            url=profile.url(iri),
            prominence=prominence,
        )
        return entity, rows, count > _COUNTED

    def _subgraph(self, identifier: str, limit: int) -> Subgraph:
        iri = self._iri(identifier)
        if iri is None:
            return Subgraph(entity=Entity(id=identifier, label=identifier))
        cached = self._subgraph_cache.get((iri, limit))
        if cached is not None:
            return cached
        entity, rows, truncated = self._read(iri)
        if entity is None:
            return Subgraph(entity=Entity(id=identifier, label=self._fallback(iri)))
        triples = self._triples(iri, rows)
        incoming: list[Triple] = []
        for quad in self.store.quads_for_pattern(None, None, NamedNode(iri), _DEFAULT):
            subject, predicate = quad.subject, quad.predicate.value
            label = self._fact_label(predicate)
            if label is None or not isinstance(subject, NamedNode):
                continue
            if len(incoming) >= limit:
                truncated = True
                break
            incoming.append(self._triple(subject.value, predicate, label, entity.label, iri))
        incoming.sort(key=_order)
        subgraph = Subgraph(
            entity=entity,
            triples=tuple(triples[:limit]),
            incoming=tuple(incoming),
            truncated=truncated or len(triples) > limit,
        )
        if len(subgraph.triples) + len(subgraph.incoming) <= _CACHED_SUBGRAPH_SIZE:
            if len(self._subgraph_cache) >= _CACHED_SUBGRAPHS:
                self._subgraph_cache.clear()
            self._subgraph_cache[iri, limit] = subgraph
        return subgraph

    def _triples(self, subject: str, rows: Sequence[_Row]) -> list[Triple]:
        """Turn the facts of one node into triples: readable language, no repeats, in order."""
        rank = self.profile.language_rank
        readable = {
            row.predicate for row in rows if row.language and rank(row.language) is not None
        }
        triples: dict[Triple, None] = {}
        for row in rows:
            label = self._fact_label(row.predicate)
            if label is None:
                continue
            if row.language and row.predicate in readable and rank(row.language) is None:
                continue
            if row.datatype is None:
                value, value_iri = self._label(row.value), row.value
            else:
                value, value_iri = render_literal(row.value, row.datatype), None
            if value:
                triples[self._triple(subject, row.predicate, label, value, value_iri)] = None
        return sorted(triples, key=_order)

    def _triple(
        self, subject: str, predicate: str, label: str, value: str, value_iri: str | None
    ) -> Triple:
        return Triple(
            subject=self._label(subject),
            property=label,
            value=value,
            subject_id=self.profile.short(subject),
            property_id=self.profile.short_property(predicate),
            value_id=None if value_iri is None else self.profile.short(value_iri),
        )

    def _label(self, iri: str) -> str:
        """The preferred name of a node, or a readable end of its IRI."""
        try:
            return self._label_cache[iri]
        except KeyError:
            label = self._read_label(iri) or self._fallback(iri)
            if len(self._label_cache) >= _CACHED_ENTITIES:
                self._label_cache.clear()
            self._label_cache[iri] = label
            return label

    def _read_label(self, iri: str) -> str | None:
        node, names = NamedNode(iri), []
        for place, predicate in enumerate(self.profile.label):
            for quad in self.store.quads_for_pattern(node, NamedNode(predicate), None, _DEFAULT):
                if isinstance(quad.object, Literal):
                    rank = self.profile.language_rank(quad.object.language)
                    names.append((_UNREADABLE if rank is None else rank, place, quad.object.value))
        return _preferred(names, len(self.profile.label))[0]

    def _fact_label(self, predicate: str) -> str | None:
        """The label of a property that states facts for a reader; None for any other."""
        try:
            return self._fact_cache[predicate]
        except KeyError:
            label = None
            if self.profile.is_fact(predicate):
                node = self.profile.property_node(predicate)
                if not self._any(NamedNode(node), _PROPERTY_TYPE, _EXTERNAL_ID):
                    label = self._read_label(node) or self._read_label(predicate)
                    label = label or _spaced(local_name(predicate))
            self._fact_cache[predicate] = label
            return label

    def _role(self, predicate: str) -> _Role:
        profile = self.profile
        role = self._roles[predicate] = _Role(
            fact=self._fact_label(predicate) is not None,
            type=predicate in profile.type,
            name=_place(predicate, profile.label + profile.alias),
            description=_place(predicate, profile.description),
        )
        return role

    def _fallback(self, iri: str) -> str:
        short = self.profile.short(iri)
        return local_name(iri) if short == iri else short

    def _classes(self, direct: dict[str, None]) -> tuple[str, ...]:
        """Direct classes, then the wider ones that the profile's entity types name."""
        if self._named_classes is None:
            self._named_classes = frozenset(
                self.profile.iri(id_) for ids in self.profile.ner.values() for id_ in ids
            )
        named = self._named_classes
        seen, frontier = set(direct), list(direct)
        wider: dict[str, None] = {}
        for _ in range(_CLASS_DEPTH):
            above: list[str] = []
            for iri in frontier:
                for predicate in self.profile.subclass:
                    for quad in self.store.quads_for_pattern(
                        NamedNode(iri), NamedNode(predicate), None, _DEFAULT
                    ):
                        value = quad.object
                        if isinstance(value, NamedNode) and value.value not in seen:
                            seen.add(value.value)
                            above.append(value.value)
                            if value.value in named:
                                wider[value.value] = None
            if not above:
                break
            frontier = above
        short = self.profile.short
        return (*sorted(map(short, direct)), *sorted(map(short, wider)))


@dataclass(frozen=True, slots=True)
class _Role:
    """What a predicate is for: facts, classes, or names (with its place in the profile)."""

    fact: bool
    type: bool
    name: int | None
    description: int | None


class _Row:
    """One fact as read: predicate, and a node's IRI or a literal with datatype and language."""

    __slots__ = ("datatype", "language", "predicate", "value")

    def __init__(
        self, predicate: str, value: str, datatype: str | None, language: str | None
    ) -> None:
        self.predicate = predicate
        self.value = value
        self.datatype = datatype
        self.language = language


def detect_profile(store: Store) -> str:
    """Tell the vocabulary from the data: ``wikidata``, ``dbpedia`` or ``rdfs``."""
    quads = store.quads_for_pattern(None, None, None, _DEFAULT)
    for quad in islice(quads, _SAMPLED):
        predicate = quad.predicate.value
        if predicate.startswith("http://www.wikidata.org/prop/direct/"):
            return "wikidata"
        if predicate.startswith("http://dbpedia.org/ontology/"):
            return "dbpedia"
    return "rdfs"


def _place(predicate: str, predicates: tuple[str, ...]) -> int | None:
    return predicates.index(predicate) if predicate in predicates else None


def _preferred(
    names: list[tuple[int, int, str]], labels: int
) -> tuple[str | None, tuple[str, ...]]:
    """Choose the label among (language rank, predicate's place, name); the rest are aliases.

    A name in a readable language beats any other; among these a label beats an alias.
    """
    if not names:
        return None, ()
    ordered = sorted(names, key=lambda n: (n[0] == _UNREADABLE, n[1] >= labels, n[0], n[1], n[2]))
    label = ordered[0][2]
    aliases = dict.fromkeys(name for rank, _, name in ordered[1:] if rank != _UNREADABLE)
    aliases.pop(label, None)
    return label, tuple(aliases)


def _spaced(name: str) -> str:
    """Write ``placeOfBirth`` as ``place of birth``."""
    if " " in name or name.isupper():
        return name
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in name)
    return words.strip()


def _order(triple: Triple) -> tuple[str, str, str, str, str]:
    return (
        triple.property.casefold(),
        triple.value.casefold(),
        triple.subject.casefold(),
        triple.subject_id or "",
        triple.value_id or "",
    )
