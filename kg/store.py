"""The embedded knowledge graph: Oxigraph in this process, in memory or on disk."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from codecs import BOM_UTF8
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from pyoxigraph import NamedNode, RdfFormat, Store

from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.types import Entity, Mention, Subgraph, Triple
from kg.blank_nodes import is_blank, is_named
from kg.facts import unknown
from kg.label_file import FileLabelIndex, LabelFileWriter
from kg.labels import LabelIndex, MemoryLabelIndex, key_of, names_in, spot
from kg.nodes import NodeReader, detect_profile
from kg.profiles import Profile, load_profile, stored_profile
from kg.results import GraphStats, QueryResult, graph_read, read_solutions

__all__ = ["OxigraphGraph", "snapshot_of"]

SNAPSHOT = "snapshot"
"""File next to the store that names its state."""
_DIGITS = 16
"""Hexadecimal digits of a hash."""
_NAMESAKES = 500
"""Most bearers of one name that are read; a title such as "Untitled" has tens of thousands."""

_PREFIX = re.compile(
    r"""<[^<>\s]*>|"[^"]*"|'[^']*'|#.*|(PREFIX\s+)?\b([A-Za-z][\w-]*):|\b[A-Za-z][\w-]*""", re.I
)
"""A prefix, declared or used; IRIs, strings, comments and other words are passed over."""


class OxigraphGraph:
    """A knowledge graph in an Oxigraph store.

    Implements ``KnowledgeGraph``, ``MentionIndex`` and ``PlaceIndex``. Safe to read from several
    threads. An on-disk graph is opened for reading unless ``writable`` is set, so that several
    processes can use it at once.

    Args:
        store: An open store; None for an empty one in memory.
        path: Where the store lies; None for one in memory.
        profile: Name or file of the vocabulary profile; None to detect it from the data.
        name: Name for the score log; None for the file name of the path.
        snapshot: What tells this state of the graph from others, for the score log; None for the
            one that a load has written next to the store.

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
        snapshot: str | None = None,
    ) -> None:
        self._store: Store | None = Store() if store is None else store
        self._path = None if path is None else Path(path)
        self.name = name or (self._path.name if self._path else "memory")
        self._given_profile = profile
        self._profile: Profile | None = None
        self._index: LabelIndex | None = None
        self._reader: NodeReader | None = None
        self._snapshot = snapshot

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
        format: RdfFormat = RdfFormat.TURTLE,
        profile: str | Path | Profile | None = None,
        name: str | None = None,
    ) -> OxigraphGraph:
        """Make a graph in memory from RDF text, Turtle (or its subset N-Triples) by default.

        Raises:
            KnowledgeGraphError: If the text is not RDF of that format; names the line.
        """
        store = Store()
        data = text.encode() if isinstance(text, str) else text
        try:
            store.bulk_load(input=data.removeprefix(BOM_UTF8), format=format)
        except (SyntaxError, ValueError, OSError) as error:
            raise KnowledgeGraphError(f"not {format}: {error}") from error
        return cls(store, profile=profile, name=name, snapshot=snapshot_of(BytesIO(data)))

    # --- the protocol ------------------------------------------------------------------------

    @property
    def profile(self) -> Profile:
        """The vocabulary profile, detected from the data where none was given."""
        if self._profile is None:
            given = self._given_profile
            if given is None and self._path is not None:
                given = stored_profile(self._path)
            self._profile = load_profile(detect_profile(self.store) if given is None else given)
        return self._profile

    @property
    def snapshot(self) -> str | None:
        """What tells this state of the graph from others: changed by every load into it.

        Of a graph that was read from a file or a text, a hash of that. None for a store that was
        filled or changed by hand, whose state nobody has noted.
        """
        note = None if self._path is None else self._path / SNAPSHOT
        if self._snapshot is None and note is not None and note.is_file():
            self._snapshot = note.read_text(encoding="utf-8").strip()
        return self._snapshot

    @property
    def store(self) -> Store:
        """The open store.

        Raises:
            KnowledgeGraphError: If the graph was closed.
        """
        if self._store is None:
            raise KnowledgeGraphError(f"the graph {self.name} is closed; open it again")
        return self._store

    def find(self, labels: Sequence[str]) -> list[list[Entity]]:
        """For each of n labels, the entities of that label or alias, most prominent first."""
        index, reader = self._names(), self._nodes()
        found = []
        for label in labels:
            nodes = (reader.entity(iri) for iri in index.nodes(key_of(label))[:_NAMESAKES])
            known = [entity for entity in nodes if entity is not None]
            found.append(sorted(known, key=lambda entity: (-entity.prominence, entity.id)))
        return found

    def entities(self, ids: Sequence[str]) -> list[Entity | None]:
        """For each of n ids the entity, or None where the graph does not know it."""
        reader = self._nodes()
        return [None if (iri := self._iri(id_)) is None else reader.entity(iri) for id_ in ids]

    def subgraphs(self, ids: Sequence[str], *, limit: int = 500) -> list[Subgraph]:
        """For each of n ids the one-hop subgraph, at most ``limit`` triples each way.

        Triples are ordered by the label of the property, then by value.
        """
        reader = self._nodes()
        return [
            unknown(id_, self.profile)
            if (iri := self._iri(id_)) is None
            else reader.subgraph(iri, limit)
            for id_ in ids
        ]

    def links(self, ids: Sequence[str]) -> list[Triple]:
        """All triples whose subject and value are both among the given entities (SCK)."""
        iris = [iri for id_ in ids if (iri := self._iri(id_)) is not None]
        return self._nodes().links(iris)

    def wider(self, ids: Sequence[str]) -> list[list[Entity]]:
        """For each of n ids, the wider places that hold it, nearest first."""
        reader = self._nodes()
        return [[] if (iri := self._iri(id_)) is None else reader.wider(iri) for id_ in ids]

    def spot(self, text: str) -> list[Mention]:
        """All maximal stretches of the text that equal a label or alias, at word boundaries."""
        return spot(text, self._names(), self._nodes().spotted_names)

    def close(self) -> None:
        """Release the store; the graph cannot be used afterwards."""
        self._store = None
        self._index = None
        self._reader = None

    # --- beyond the protocol -----------------------------------------------------------------

    def query(self, sparql: str) -> QueryResult:
        """Run a SPARQL SELECT, ASK, CONSTRUCT or DESCRIBE query.

        The prefixes of the profile need not be declared in it. Patterns outside ``GRAPH`` match
        all graphs; a statement of several graphs gives a row for each.

        Raises:
            InputError: If the query is not SPARQL.
            KnowledgeGraphError: If the store cannot answer it.
        """
        prefixes = dict(self.profile.prefixes)
        try:
            union = graph_read(self.store) is None
            return read_solutions(
                self.store.query(sparql, prefixes=prefixes, use_default_graph_as_union=union)
            )
        except SyntaxError as error:
            unknown_prefixes = _prefixes_of(sparql) - prefixes.keys()
            message = (
                f"{', '.join(sorted(unknown_prefixes))} is declared nowhere as a prefix; known "
                f"without: {', '.join(prefixes)}"
                if unknown_prefixes
                else str(error)
            )
            raise InputError(f"not a SPARQL query: {message}") from error
        except (OSError, RuntimeError, ValueError) as error:
            raise KnowledgeGraphError(f"the query failed: {error}") from error

    def stats(self) -> GraphStats:
        """Count triples, named nodes and properties; reads the whole graph once."""
        triples, graph = 0, graph_read(self.store)
        predicates: set[str] = set()
        for quad in self.store.quads_for_pattern(None, None, None, graph):
            triples += 1
            predicates.add(quad.predicate.value)
        facts = {predicate for predicate in predicates if self.profile.is_fact(predicate)}
        named: set[str] = set()
        for predicate in self.profile.label:
            for quad in self.store.quads_for_pattern(None, NamedNode(predicate), None, graph):
                if is_named(quad.subject):
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
        self._reader = None
        self._snapshot = None
        if self._given_profile is None:
            self._profile = None

    @property
    def indexed_names(self) -> int | None:
        """Names in the index next to the store, or None without an index."""
        index = self._names()
        return len(index) if isinstance(index, FileLabelIndex) else None

    def index_labels(self) -> None:
        """Build the label index now, in the store itself where the graph lies on disk.

        Raises:
            KnowledgeGraphError: If the on-disk graph was opened for reading only.
        """
        if self._path is None:
            self._names()
            return
        try:
            writer = LabelFileWriter(self._path, self.profile, keep=False)
            writer.add(names_in(self.store, self.profile))
            writer.finish()
            self._index = None
            # Merges what loading left in many files: look-ups take half the time afterwards.
            self.store.optimize()
        except (OSError, sqlite3.Error) as error:
            raise KnowledgeGraphError(f"cannot index {self._path}: {error}") from error

    # --- parts -------------------------------------------------------------------------------

    def _nodes(self) -> NodeReader:
        reader = self._reader
        if reader is None:
            reader = self._reader = NodeReader(self.store, self.profile)
        return reader

    def _names(self) -> LabelIndex:
        index = self._index
        if index is None:
            if self._path is not None and FileLabelIndex.exists(self._path, self.profile):
                index = FileLabelIndex(self._path)
            else:
                index = MemoryLabelIndex(names_in(self.store, self.profile))
            self._index = index
        return index

    def _iri(self, identifier: str) -> str | None:
        try:
            iri = self.profile.iri(identifier)
        except InputError:
            return None
        return None if is_blank(iri) else iri


def snapshot_of(data: BinaryIO) -> str:
    """What tells the data of one file or text from others: a hash of its bytes."""
    return hashlib.file_digest(data, "sha256").hexdigest()[:_DIGITS]  # type: ignore[arg-type]


def _prefixes_of(sparql: str) -> set[str]:
    """The prefixes that a query uses and does not declare."""
    found = [(bool(item[1]), item[2]) for item in _PREFIX.finditer(sparql) if item[2]]
    return {name for _, name in found} - {name for declared, name in found if declared}
