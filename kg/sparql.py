"""A knowledge graph behind any SPARQL 1.1 endpoint: Wikidata, DBpedia, Virtuoso, QLever.

A batch is one query for names or facts and one for the labels of what the facts mention;
labels are kept in memory, and results in a cache on disk that processes share.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from pyoxigraph import RdfFormat, Store

from guardrail.errors import InputError, KnowledgeGraphError
from guardrail.types import Entity, Subgraph, Triple
from kg.containment import holders
from kg.endpoint import Cell, Endpoint, EndpointSettings, QueryRejectedError
from kg.facts import (
    UNREADABLE,
    Name,
    Row,
    choose_names,
    fallback_label,
    property_fallback,
    triples,
    unknown,
)
from kg.profiles import Profile, load_profile
from kg.quoting import quote_iri
from kg.results import GraphStats, QueryResult, Term, read_solutions
from kg.sparql_text import NAMESAKES, QueryWriter
from kg.traffic import TimedCache

__all__ = ["SparqlGraph"]

_XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
# Facts of one entity come in one UNION each: a few entities a query keep servers' planners fast.
_SUBGRAPHS_A_QUERY = 10
_LABELS_A_QUERY = 300
_CACHED_LABELS = 200_000
_CACHED_NODES = 50_000
_CACHED_SUBGRAPHS = 2_000
FACTS_READ = 200
"""Facts each way that are read ahead of nodes that were found by name: what the linker asks for."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_SPACE = re.compile(r"\s+")
_COMMENT = re.compile(r"(?m)^\s*#[^\n]*$")
_PROLOGUE = re.compile(r"\s*(?:(?:BASE\s*<[^>]*>|PREFIX\s+[^\s:]*:\s*<[^>]*>)\s*)*", re.I)
_KNOWN_HOSTS = {
    "query.wikidata.org": "wikidata",
    "qlever.cs.uni-freiburg.de": "wikidata-mirror",
    "qlever.dev": "wikidata-mirror",
    "dbpedia.org": "dbpedia",
}


class _Facts(NamedTuple):
    """Facts out of a node and into it."""

    outgoing: list[Row]
    incoming: list[Row]


class SparqlGraph:
    """A knowledge graph behind a SPARQL 1.1 endpoint.

    Implements ``KnowledgeGraph`` and ``PlaceIndex``.

    Names are matched as written, in lower case, with a capital first letter and with a capital
    on every word: an endpoint has no index of folded names. Prominence is the number of triples
    that start at the node, since counting those that end there stalls servers on hubs.
    Safe to use from several threads.

    Args:
        endpoint: Address of the endpoint.
        profile: Name or TOML file of the vocabulary profile; None for that of a well-known
            host (Wikidata, DBpedia), else plain RDFS and SKOS.
        settings: Time limits, retries, cache.
        name: Name for the score log; None for the host.

    Raises:
        ConfigError: If the address, the profile or the cache cannot be used.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        profile: str | Path | Profile | None = None,
        settings: EndpointSettings | None = None,
        name: str | None = None,
    ) -> None:
        self._endpoint = Endpoint(endpoint, settings or EndpointSettings())
        host = urlsplit(endpoint).hostname or endpoint
        self._profile = load_profile(_KNOWN_HOSTS.get(host, "rdfs") if profile is None else profile)
        self.queries = QueryWriter(self._profile)
        """Writes what the endpoint is asked, for whoever wants to see it."""
        self._name = name or host
        self._labels: dict[str, str | None] = {}
        keep_s = self._endpoint.settings.cache_expire_s
        self._bearing: TimedCache[str, tuple[str, ...]] = TimedCache(_CACHED_NODES, keep_s)
        self._entities: TimedCache[str, tuple[Entity | None]] = TimedCache(_CACHED_NODES, keep_s)
        self._above: TimedCache[str, tuple[str, ...]] = TimedCache(_CACHED_NODES, keep_s)
        self._facts: TimedCache[tuple[str, int], _Facts] = TimedCache(_CACHED_SUBGRAPHS, keep_s)

    # --- the protocol ------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the graph, for the score log."""
        return self._name

    @property
    def profile(self) -> Profile:
        """The vocabulary profile."""
        return self._profile

    def find(self, labels: Sequence[str]) -> list[list[Entity]]:
        """For each of n labels, the entities of that label or alias, most prominent first."""
        wanted = [_SPACE.sub(" ", label).strip() for label in labels]
        askable = [label for label in dict.fromkeys(wanted) if label and not _CONTROL.search(label)]
        found = self._all_bearers(askable)
        # Whoever looks names up reads what is known of their bearers next.
        bearers = [iri for iris in found.values() for iri in iris]
        known, _ = self._read_nodes(bearers, FACTS_READ, places=True)
        return [
            sorted(
                (known[iri] for iri in found.get(label, ()) if iri in known),
                key=lambda entity: (-entity.prominence, entity.id),
            )
            for label in wanted
        ]

    def entities(self, ids: Sequence[str]) -> list[Entity | None]:
        """For each of n ids the entity, or None where the graph does not know it."""
        iris = [self._iri(id_) for id_ in ids]
        known = self._read_entities([iri for iri in iris if iri is not None])
        return [None if iri is None else known.get(iri) for iri in iris]

    def subgraphs(self, ids: Sequence[str], *, limit: int = 500) -> list[Subgraph]:
        """For each of n ids the one-hop subgraph, at most ``limit`` triples each way.

        Triples are ordered by the label of the property, then by value.
        """
        iris = [self._iri(id_) for id_ in ids]
        distinct = list(dict.fromkeys(iri for iri in iris if iri is not None))
        known, facts = self._read_nodes(distinct, limit)
        outgoing = {iri: facts[iri].outgoing for iri in known}
        incoming = {iri: facts[iri].incoming for iri in known}
        # Places that hold what was found by name are read along with the labels.
        places = [place for iri in distinct for place in self._above.get(iri) or ()]
        self._learn_labels(
            [row for rows in (outgoing, incoming) for r in rows.values() for row in r], places
        )
        graphs = []
        for id_, iri in zip(ids, iris, strict=True):
            entity = None if iri is None else known.get(iri)
            if iri is None or entity is None:
                graphs.append(unknown(id_, self._profile))
                continue
            cut = len(outgoing[iri]) > limit or len(incoming[iri]) > limit
            graphs.append(
                Subgraph(
                    entity=entity,
                    triples=tuple(self._triples(outgoing[iri])[:limit]),
                    incoming=tuple(self._triples(incoming[iri][:limit])),
                    truncated=cut,
                )
            )
        return graphs

    def links(self, ids: Sequence[str]) -> list[Triple]:
        """All triples whose subject and value are both among the given entities (SCK)."""
        iris = list(dict.fromkeys(iri for id_ in ids if (iri := self._iri(id_)) is not None))
        if len(iris) < 2:
            return []
        found = self._endpoint.select(self.queries.links(iris))
        rows = [Row(row["s"].value, row["p"].value, row["o"].value) for row in found]
        self._learn_labels(rows)
        return [
            triple
            for iri in iris
            for triple in self._triples([row for row in rows if row.subject == iri])
        ]

    def wider(self, ids: Sequence[str]) -> list[list[Entity]]:
        """For each of n ids, the wider places that hold it, nearest first.

        One query for the steps of ten places, and one for the names of all that hold them; none
        where the profile names no ``within``.
        """
        if not self._profile.within:
            return [[] for _ in ids]
        iris = [self._iri(id_) for id_ in ids]
        found = self._places_above(list(dict.fromkeys(filter(None, iris))))
        known = self._read_entities([iri for places in found.values() for iri in places])
        return [
            [known[place] for place in found.get(iri or "", ()) if place in known] for iri in iris
        ]

    def close(self) -> None:
        """Close the cache; connections are closed after each query."""
        self._endpoint.close()

    # --- beyond the protocol -----------------------------------------------------------------

    def query(self, sparql: str) -> QueryResult:
        """Run a SPARQL SELECT, ASK, CONSTRUCT or DESCRIBE query, past the cache.

        Raises:
            InputError: If the endpoint says that it is not SPARQL.
            KnowledgeGraphError: If the endpoint gives no result.
        """
        body = _PROLOGUE.sub("", _COMMENT.sub("", sparql), count=1)
        try:
            if body[:9].upper() in ("CONSTRUCT", "DESCRIBE "):
                store = Store()
                store.load(self._endpoint.fetch(sparql, graph=True), format=RdfFormat.TURTLE)
                return read_solutions(store.query("CONSTRUCT WHERE { ?s ?p ?o }"))
            result = self._endpoint.json(sparql)
        except QueryRejectedError as error:
            raise InputError(str(error)) from error
        except SyntaxError as error:
            raise KnowledgeGraphError(
                f"{self._endpoint.url} sends malformed RDF: {error}"
            ) from error
        if "boolean" in result:
            return QueryResult(boolean=bool(result["boolean"]))
        variables = tuple(result["head"].get("vars", ()))
        rows = self._endpoint.solutions(result)
        return QueryResult(
            variables=variables,
            rows=tuple(tuple(_term(row.get(name)) for name in variables) for row in rows),
        )

    def stats(self) -> GraphStats:
        """Count triples, named nodes and properties at the endpoint; slow on large ones."""

        def count(query: str) -> int:
            rows = self._endpoint.select(query)
            return int(rows[0]["n"].value)

        label = "|".join(map(quote_iri, self._profile.label))
        return GraphStats(
            name=self._name,
            profile=self._profile.name,
            triples=count("SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }"),
            entities=count(
                f"SELECT (COUNT(DISTINCT ?e) AS ?n) WHERE {{ ?e {label} ?l . "
                f"{self.queries.not_a_property()} }}"
            ),
            properties=count(
                "SELECT (COUNT(*) AS ?n) WHERE { "
                f"{{ SELECT DISTINCT ?p WHERE {{ ?s ?p ?o }} }} {self.queries.fact_filter()} }}"
            ),
        )

    # --- reading -----------------------------------------------------------------------------

    def _iri(self, identifier: str) -> str | None:
        try:
            return self._profile.iri(identifier)
        except InputError:
            return None

    def _step(self, row: dict[str, Cell]) -> tuple[int, str]:
        """Place of a step's predicate in the profile, and where it leads."""
        return self._profile.within.index(row["p"].value), row["w"].value

    def _bearers(
        self, labels: Sequence[str], rows: Sequence[dict[str, Cell]] | None = None
    ) -> list[tuple[str, str]]:
        """Pairs of a label and a node that bears it, in some spelling.

        The query's limit holds for all its labels together. Where it is reached, the labels are
        asked for in halves, so that a common name does not crowd out the others.
        """
        if rows is None:
            rows = self._endpoint.select(self.queries.find(labels))
        if len(labels) > 1 and len(rows) >= NAMESAKES * len(labels):
            middle = len(labels) // 2
            return self._bearers(labels[:middle]) + self._bearers(labels[middle:])
        return [
            (labels[int(row["q"].value)], row["e"].value) for row in rows if row["e"].type == "uri"
        ]

    def _all_bearers(self, labels: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The nodes that bear each label, asked for at once and remembered."""
        found = {label: self._bearing.get(label) for label in labels}
        missing = [label for label, iris in found.items() if iris is None]
        batches = list(_batches(missing, self._endpoint.settings.batch))
        answers = self._endpoint.select_all([self.queries.find(batch) for batch in batches])
        for batch, rows in zip(batches, answers, strict=True):
            bearers: dict[str, dict[str, None]] = {label: {} for label in batch}
            for label, iri in self._bearers(batch, rows):
                bearers[label][iri] = None
            for label, iris in bearers.items():
                found[label] = tuple(iris)
                self._bearing.put(label, tuple(iris))
        return {label: iris or () for label, iris in found.items()}

    def _read_nodes(
        self, iris: Iterable[str], limit: int, *, places: bool = False
    ) -> tuple[dict[str, Entity], dict[str, _Facts]]:
        """Entities and the facts round them: what is not remembered is asked for at once.

        With ``places`` the steps to wider places are read along with them.
        """
        wanted = list(dict.fromkeys(iris))
        entities = {iri: self._entities.get(iri) for iri in wanted}
        facts = {iri: self._facts.get((iri, limit)) for iri in wanted}
        names = list(
            _batches([i for i in wanted if entities[i] is None], self._endpoint.settings.batch)
        )
        rows = list(_batches([i for i in wanted if facts[i] is None], _SUBGRAPHS_A_QUERY))
        ways = self._unknown_ways(wanted) if places else []
        answers = self._endpoint.select_all(
            [self.queries.entities(batch) for batch in names]
            + [self.queries.facts(batch, limit + 1) for batch in rows]
            + [self.queries.within(batch) for batch in ways]
        )
        for batch, answer in zip(names, answers, strict=False):
            entities |= self._learn_entities(batch, answer)
        self._learn_ways(ways, answers[len(names) + len(rows) :])
        for batch, answer in zip(rows, answers[len(names) :], strict=False):
            for iri, around in self._facts_in(batch, answer).items():
                facts[iri] = around
                self._facts.put((iri, limit), around)
        known = {iri: one[0] for iri, one in entities.items() if one and one[0] is not None}
        return known, {iri: around for iri, around in facts.items() if around is not None}

    def _unknown_ways(self, iris: Sequence[str]) -> list[Sequence[str]]:
        """Nodes of which it is not known what holds them, in batches."""
        if not self._profile.within:
            return []
        missing = [iri for iri in iris if self._above.get(iri) is None]
        return list(_batches(missing, _SUBGRAPHS_A_QUERY))

    def _learn_ways(
        self, ways: Sequence[Sequence[str]], answers: Sequence[Sequence[dict[str, Cell]]]
    ) -> None:
        """Remember the places that hold each node, nearest first."""
        for batch, answer in zip(ways, answers, strict=True):
            steps: dict[str, dict[str, None]] = defaultdict(dict)
            # Servers give rows in any order: the steps from one place are read best first.
            for row in sorted(answer, key=self._step):
                if row["w"].type == "uri":
                    steps[row["a"].value][row["w"].value] = None
            for iri in batch:
                above = holders(iri, lambda one, steps=steps: steps.get(one, ()))
                self._above.put(iri, tuple(above))

    def _places_above(self, iris: Sequence[str]) -> dict[str, tuple[str, ...]]:
        ways = self._unknown_ways(iris)
        self._learn_ways(
            ways, self._endpoint.select_all([self.queries.within(batch) for batch in ways])
        )
        return {iri: self._above.get(iri) or () for iri in iris}

    def _facts_in(
        self, batch: Sequence[str], answer: Sequence[dict[str, Cell]]
    ) -> dict[str, _Facts]:
        found = {iri: _Facts([], []) for iri in batch}
        for row in answer:
            centre = batch[int(row["i"].value)]
            if "o" in row and row["o"].type != "bnode":
                found[centre].outgoing.append(_row(centre, row["p"], row["o"]))
            elif "s" in row and row["s"].type == "uri":
                found[centre].incoming.append(Row(row["s"].value, row["p"].value, centre))
        return found

    def _read_entities(self, iris: Iterable[str]) -> dict[str, Entity]:
        """The entities among the nodes: those that some triple mentions and no property."""
        wanted = list(dict.fromkeys(iris))
        found = {iri: self._entities.get(iri) for iri in wanted}
        missing = [iri for iri, one in found.items() if one is None]
        batches = list(_batches(missing, self._endpoint.settings.batch))
        answers = self._endpoint.select_all([self.queries.entities(batch) for batch in batches])
        for batch, answer in zip(batches, answers, strict=True):
            found |= self._learn_entities(batch, answer)
        return {iri: one[0] for iri, one in found.items() if one and one[0] is not None}

    def _learn_entities(
        self, batch: Sequence[str], answer: Sequence[dict[str, Cell]]
    ) -> dict[str, tuple[Entity | None]]:
        """Remember what was told of nodes; what is no entity is remembered as such."""
        roles: dict[str, list[tuple[str, Cell | None]]] = defaultdict(list)
        for row in answer:
            roles[row["e"].value].append((row["r"].value, row.get("v")))
        read = {iri: (self._entity(iri, roles[iri]) if iri in roles else None,) for iri in batch}
        for iri, one in read.items():
            self._entities.put(iri, one)
        return read

    def _entity(self, iri: str, roles: list[tuple[str, Cell | None]]) -> Entity | None:
        profile = self._profile
        prefix = profile.property_entity_prefix
        if prefix and re.fullmatch(re.escape(prefix) + r"P\d+", iri):
            return None
        names: list[Name] = []
        descriptions: list[tuple[int, int, str]] = []
        types, wider, prominence = set(), set(), 0
        for role, cell in roles:
            if role == "property":
                return None
            if cell is None:
                continue
            rank = profile.language_rank(cell.language)
            rank = UNREADABLE if rank is None else rank
            if role == "count":
                prominence = int(cell.value)
            elif role == "type" and cell.type == "uri":
                types.add(profile.short(cell.value))
            elif role == "wider":
                wider.add(profile.short(cell.value))
            elif role.startswith("name"):
                names.append(Name(rank, int(role[4:]), cell.value))
            elif role.startswith("description"):
                descriptions.append((rank, int(role[11:]), cell.value))
        label, aliases = choose_names(names, len(profile.label))
        if label is not None:
            self._remember(iri, label)
        return Entity(
            id=profile.short(iri),
            label=label or fallback_label(iri, profile),
            types=(*sorted(types), *sorted(wider - types)),
            aliases=aliases,
            description=min(descriptions)[2] if descriptions else None,
            url=profile.url(iri),
            prominence=prominence,
        )

    def _learn_labels(self, rows: Sequence[Row], others: Sequence[str] = ()) -> None:
        """Ask for the labels of all nodes and properties of the rows that are not known yet.

        Args:
            rows: The rows.
            others: Nodes whose entities are asked for at the same time.
        """
        nodes: dict[str, None] = {}
        for row in rows:
            nodes[row.subject] = None
            nodes[self._profile.property_node(row.predicate)] = None
            if row.datatype is None:
                nodes[row.value] = None
        missing = [iri for iri in nodes if iri not in self._labels and self._iri(iri) is not None]
        batches = list(_batches(missing, _LABELS_A_QUERY))
        missing = [iri for iri in dict.fromkeys(others) if self._entities.get(iri) is None]
        nodes_of = list(_batches(missing, self._endpoint.settings.batch))
        answers = self._endpoint.select_all(
            [self.queries.labels(batch) for batch in batches]
            + [self.queries.entities(batch) for batch in nodes_of]
        )
        for batch, answer in zip(nodes_of, answers[len(batches) :], strict=True):
            self._learn_entities(batch, answer)
        for batch, answer in zip(batches, answers, strict=False):
            names: dict[str, list[Name]] = defaultdict(list)
            for solution in answer:
                iri, cell = solution["n"].value, solution.get("nLabel")
                # The label service answers with the bare id where there is no label.
                if cell is None or cell.value == self._profile.short(iri):
                    continue
                rank = self._profile.language_rank(cell.language)
                key = solution.get("k")
                place = 0 if key is None else self._profile.label.index(key.value)
                names[iri].append(Name(UNREADABLE if rank is None else rank, place, cell.value))
            for iri in batch:
                self._remember(iri, choose_names(names[iri], len(self._profile.label))[0])

    def _remember(self, iri: str, label: str | None) -> None:
        if len(self._labels) >= _CACHED_LABELS:
            self._labels.clear()
        self._labels[iri] = label

    def _triples(self, rows: Sequence[Row]) -> list[Triple]:
        return triples(rows, self._profile, label=self._label, property_label=self._property_label)

    def _label(self, iri: str) -> str:
        return self._labels.get(iri) or fallback_label(iri, self._profile)

    def _property_label(self, predicate: str) -> str | None:
        if not self._profile.is_fact(predicate):
            return None
        node = self._profile.property_node(predicate)
        return self._labels.get(node) or property_fallback(predicate)


def _row(subject: str, predicate: Cell, value: Cell) -> Row:
    if value.type == "uri":
        return Row(subject, predicate.value, value.value)
    datatype = value.datatype or _XSD_STRING
    return Row(subject, predicate.value, value.value, datatype, value.language)


def _term(cell: Cell | None) -> Term | None:
    if cell is None:
        return None
    kind = {"uri": "iri", "bnode": "blank"}.get(cell.type, "literal")
    datatype = cell.datatype or (_XSD_STRING if kind == "literal" and not cell.language else None)
    return Term(kind=kind, value=cell.value, datatype=datatype, language=cell.language)


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
