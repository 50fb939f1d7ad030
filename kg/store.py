"""The embedded knowledge graph: Oxigraph in this process, in memory or on disk."""

from __future__ import annotations

import hashlib
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Final

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    RdfFormat,
    Store,
)
from pyoxigraph import Triple as RdfTriple

from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.types import Entity, Mention
from kg.base import QueryResult, Term
from kg.facts import Name, Row, StructuredValues
from kg.labels import LabelIndex, graph_read, key_of, names_in, spot
from kg.nodes import Facts, GraphReader, Memory, Solution, ranked
from kg.profiles import Profile, load_profile, stored_profile
from kg.queries import QueryWriter
from kg.terms import WIKIBASE, is_blank

SNAPSHOT = "snapshot"
"""File next to the store that names its state."""
VOCABULARIES: Final = {
    "http://www.wikidata.org/prop/direct/": "wikidata",
    "http://dbpedia.org/ontology/": "dbpedia",
}


class OxigraphGraph(GraphReader):
    """A knowledge graph in an Oxigraph store.

    Implements ``KnowledgeGraph``, ``MentionIndex`` and ``PlaceIndex``. Safe to read from several
    threads. An on-disk graph is opened for reading unless ``writable`` is set, so that several
    processes can use it at once.

    Args:
        store: An open store; None for an empty one in memory.
        path: Where the store lies; None for one in memory.
        profile: Name or file of the vocabulary profile; None to detect it from the data.
        name: Name for the score log; None for the file name of the path.
        snapshot: Identifies this state of the graph, for the score log; None for the one that a
            load has written next to the store.

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
        super().__init__()
        self._store: Store | None = Store() if store is None else store
        self._path = None if path is None else Path(path)
        self.name = name or (self._path.name if self._path else "memory")
        self._given_profile = profile
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

    @cached_property
    def profile(self) -> Profile:  # type: ignore[override]
        """The vocabulary profile, detected from the data where none was given."""
        given = self._given_profile
        if given is None and self._path is not None:
            given = stored_profile(self._path)
        return load_profile(_detect_profile(self.store) if given is None else given)

    @cached_property
    def queries(self) -> QueryWriter:  # type: ignore[override]
        """Writes the queries."""
        return QueryWriter(self.profile)

    @cached_property
    def labels(self) -> LabelIndex:
        """The index of labels and aliases; built at its first use where there is none on disk."""
        index = LabelIndex.open(self._path, self.profile) if self._path else None
        if index is None:
            index = LabelIndex.build(names_in(self.store, self.profile), self.profile)
        return index

    @property
    def snapshot(self) -> str | None:
        """Identifies this state of the graph; changed by every load into it.

        For a graph that was read from a file or a text, a hash of its bytes. None for a store that
        was filled or changed by hand.
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
        # A title such as "Untitled" has tens of thousands of bearers.
        bearers = [self.labels.nodes(key_of(label))[:500] for label in labels]
        known, _ = self._read(iri for iris in bearers for iri in iris)
        return [ranked(known[iri] for iri in iris) for iris in bearers]

    def spot(self, text: str) -> list[Mention]:
        """All maximal spans of the text that equal a label or alias, at word boundaries."""
        return spot(text, self.labels, self._spotted_names)

    def close(self) -> None:
        """Release the store; the graph cannot be used afterwards."""
        self._store = None
        self.refresh()

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
            union = self._graph is None
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

    def refresh(self) -> None:
        """Forget what was read before; call after changing the store by hand."""
        self._forget()
        self._snapshot = None
        for name in ("profile", "queries", "labels", "_graph"):
            self.__dict__.pop(name, None)

    # --- parts -------------------------------------------------------------------------------

    # Reading one node takes a fraction of the time in which a query about it is planned.

    def _read(
        self, iris: Iterable[str], limit: int | None = None, *, ahead: bool = False
    ) -> tuple[dict[str, Entity | None], dict[str, Facts]]:
        wanted = list(dict.fromkeys(iris))
        entities, unread = self._entities.known(wanted)
        entities |= self._entities.learn(
            {iri: self._entity(iri, self._roles(iri)) for iri in unread}
        )
        if limit is None:
            return entities, {}
        around, new = self._facts.known((iri, limit) for iri in wanted)
        facts = {iri: facts for (iri, _), facts in around.items()}
        return entities, facts | self._learn_around(
            {iri: self._around(iri, limit + 1) for iri, _ in new}, limit
        )

    def _names_of(self, iris: Sequence[str], others: Sequence[str]) -> dict[str, list[Name]]:
        self._read(others)
        return {
            iri: [
                Name.of(self.profile, place, quad.object.value, quad.object.language)
                for place, label in enumerate(self.profile.label)
                for quad in self._quads(NamedNode(iri), NamedNode(label), None)
                if isinstance(quad.object, Literal)
            ]
            for iri in iris
        }

    def _roles(self, iri: str) -> list[tuple[str, Term | None]]:
        """What ``QueryWriter.entities`` reads, texts in all languages, and what points there."""
        node, profile = NamedNode(iri), self.profile
        quads, predicates = list(self._quads(node, None, None)), {*profile.names, *profile.type}
        found: list[tuple[str, Term | None]] = []
        for quad in quads:
            if (predicate := quad.predicate.value) not in predicates:
                continue
            value = _term(quad.object)
            found.append((predicate, value))
            if predicate in profile.type and value.kind == "iri":
                found += (("wider", above) for above in self._wider(value.value))
        if count := len(quads) + self._pointing(node):
            found.append(("count", Term("literal", str(count))))
        if not profile.property_entity_prefix and any(self._quads(None, node, None)):
            found.append(("property", None))
        return found

    def _pointing(self, node: NamedNode) -> int:
        """How many triples point at a node, up to 2,000: more say little about prominence."""
        few = sum(1 for _ in islice(self._quads(None, None, node), 50))
        if few < 50:
            return few
        # The store counts without reading them.
        pattern = f"{{ SELECT * {{ ?s ?p {node} }} LIMIT 2000 }}"
        [[row]] = self._select_all([f"SELECT (COUNT(*) AS ?n) {{ {pattern} }}"])
        return int(row["n"].value)

    def _wider(self, iri: str) -> list[Term]:
        """The classes above a class that the profile's entity types name."""
        if iri not in self._classes:
            rows = self._select_all(self.queries.classes(iri))
            self._classes[iri] = [row["v"] for row in chain.from_iterable(rows)]
        return self._classes[iri]

    def _around(self, iri: str, most: int) -> Facts:
        node, statements = NamedNode(iri), self.profile.statements
        claims = () if statements is None else (f"{statements.claim}P",)
        read = 10_000  # facts of the node
        outgoing = [
            row
            for quad in islice(self._quads(node, None, None), read)
            if self._is_fact(name := quad.predicate.value) or name.startswith(claims)
            for row in self._rows(iri, name, _term(quad.object))
        ]
        incoming = (
            Row(subject.value, quad.predicate.value, iri)
            for quad in islice(self._quads(None, None, node), read)
            if (subject := _term(quad.subject)).kind == "iri"
            and self._is_fact(quad.predicate.value)
        )
        return Facts(outgoing, list(islice(incoming, most)))

    def _forget(self) -> None:
        super()._forget()
        self._classes: Memory[str, list[Term]] = Memory(50_000)
        self._fact: Memory[str, bool] = Memory(50_000)

    def _is_fact(self, predicate: str) -> bool:
        """True if a property states facts for a reader and is no external identifier."""
        if predicate not in self._fact:
            node = NamedNode(self.profile.property_node(predicate))
            kind, external_id = (
                NamedNode(f"{WIKIBASE}{n}") for n in ("propertyType", "ExternalId")
            )
            external = any(self._quads(node, kind, external_id))
            self._fact[predicate] = self.profile.is_fact(predicate) and not external
        return self._fact[predicate]

    def _select_all(self, queries: Sequence[str]) -> list[list[Solution]]:
        union = self._graph is None
        results = (self.store.query(q, use_default_graph_as_union=union) for q in queries)
        return [
            [
                {name: t for name, t in zip(found.variables, row, strict=True) if t is not None}
                for row in found.rows
            ]
            for found in map(read_solutions, results)
        ]

    def _spotted_names(self, iris: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Names of nodes that may stand for an entity in text: not those of a class."""
        types = [NamedNode(predicate) for predicate in self.profile.type]
        named = [
            iri
            for iri in iris
            if not any(next(self._quads(None, type_, NamedNode(iri)), None) for type_ in types)
        ]
        known, _ = self._read(named)
        return {iri: (e.label, *e.aliases) for iri, e in known.items() if e is not None}

    def _structured(self, subject: str, predicate: str, value: Term) -> Iterator[Row]:
        if predicate in self.profile.type:
            return
        reader = StructuredValues(
            lambda node: self._quads(node, None, None), self.profile, self._label, self._fact_label
        )
        if value.kind == "iri":
            yield from reader.statement(subject, predicate, NamedNode(value.value))
        else:
            iri = is_blank(value.value)
            node = NamedNode(value.value) if iri else BlankNode(value.value)
            yield from reader.rows(subject, predicate, node)

    def _fact_label(self, predicate: str) -> str | None:
        """The label of a property that states facts for a reader; None for any other."""
        if not self._is_fact(predicate):
            return None
        node = self.profile.property_node(predicate)
        return self._property_label(predicate, self._labels_of([Row(node, node, node)]))

    @cached_property
    def _graph(self) -> DefaultGraph | None:
        return graph_read(self.store)

    def _quads(
        self,
        subject: NamedNode | BlankNode | None,
        predicate: NamedNode | None,
        value: NamedNode | None,
    ) -> Iterator[Quad]:
        return self.store.quads_for_pattern(subject, predicate, value, self._graph)


def read_solutions(results: QuerySolutions | QueryBoolean | QueryTriples) -> QueryResult:
    """Turn Oxigraph's results into values."""
    if isinstance(results, QueryBoolean):
        return QueryResult(boolean=bool(results))
    if isinstance(results, QueryTriples):
        return QueryResult(
            variables=("subject", "predicate", "object"),
            rows=tuple(
                tuple(_term(term) for term in (t.subject, t.predicate, t.object)) for t in results
            ),
        )
    return QueryResult(
        variables=tuple(variable.value for variable in results.variables),
        rows=tuple(tuple(None if t is None else _term(t) for t in row) for row in results),
    )


def snapshot_of(data: BinaryIO) -> str:
    """Identifies the data of one file or text: a hash of its bytes."""
    return hashlib.file_digest(data, "sha256").hexdigest()[:16]  # type: ignore[arg-type]


def _term(term: NamedNode | BlankNode | Literal | RdfTriple) -> Term:
    if isinstance(term, NamedNode):
        value = term.value
        return Term("blank" if is_blank(value) else "iri", value)
    if isinstance(term, Literal):
        language = term.language
        return Term("literal", term.value, None if language else term.datatype.value, language)
    if isinstance(term, BlankNode):
        return Term("blank", term.value)
    return Term("triple", str(term))


def _detect_profile(store: Store) -> str:
    """Detect the vocabulary from the data: ``wikidata``, ``dbpedia`` or ``rdfs``."""
    for quad in islice(store.quads_for_pattern(None, None, None, graph_read(store)), 10_000):
        for start, name in VOCABULARIES.items():
            if quad.predicate.value.startswith(start):
                return name
    return "rdfs"


def _prefixes_of(sparql: str) -> set[str]:
    """The prefixes that a query uses and does not declare."""
    # IRIs, strings, comments and other words are passed over.
    prefix = r"""<[^<>\s]*>|"[^"]*"|'[^']*'|#.*|(PREFIX\s+)?\b([A-Za-z][\w-]*):|\b[A-Za-z][\w-]*"""
    found = [(bool(item[1]), item[2]) for item in re.finditer(prefix, sparql, re.I) if item[2]]
    return {name for _, name in found} - {name for declared, name in found if declared}
