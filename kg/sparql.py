"""A knowledge graph behind any SPARQL 1.1 endpoint: Wikidata, DBpedia, Virtuoso, QLever.

A batch is one query for names or facts and one for the labels of what the facts mention;
labels are kept in memory, and results in a cache on disk that processes share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pyoxigraph import RdfFormat, Store

from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.types import Entity, Subgraph, Triple, Usage
from kg.endpoint import Endpoint, QueryRejectedError
from kg.endpoint_settings import EndpointSettings
from kg.facts import Row, unknown
from kg.profiles import Profile, load_profile
from kg.quoting import quote_iri, writable
from kg.results import GraphStats, QueryResult, read_solutions
from kg.sparql_nodes import SparqlNodes
from kg.sparql_text import QueryWriter

__all__ = ["SparqlGraph"]

FACTS_READ = 200
"""Facts each way that are read ahead of nodes that were found by name: what the linker asks for."""
_SPACE = re.compile(r"\s+")
_COMMENT = re.compile(r"(?m)^[^\S\n]*#[^\n]*$")
_PROLOGUE = re.compile(r"\s*(?:(?:BASE\s*<[^>]*>|PREFIX\s+[^\s:]*:\s*<[^>]*>)\s*)*", re.I)
_KNOWN_HOSTS = {
    "query.wikidata.org": "wikidata",
    "qlever.cs.uni-freiburg.de": "wikidata-mirror",
    "qlever.dev": "wikidata-mirror",
    "dbpedia.org": "dbpedia",
}


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
        ConfigError: If the address, the profile, the dialect or the cache cannot be used.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        profile: str | Path | Profile | None = None,
        settings: EndpointSettings | None = None,
        name: str | None = None,
    ) -> None:
        host = urlsplit(endpoint).hostname or endpoint
        self.profile = load_profile(_KNOWN_HOSTS.get(host, "rdfs") if profile is None else profile)
        settings = settings or EndpointSettings()
        self._endpoint = Endpoint(endpoint, settings, dialect=self.profile.dialect)
        self.queries = QueryWriter(
            self.profile, self._endpoint.dialect, text_search=settings.text_search
        )
        """Writes the queries to the endpoint."""
        self.name = name or host
        self._nodes = SparqlNodes(self._endpoint, self.profile, self.queries)

    # --- the protocol ------------------------------------------------------------------------

    def find(self, labels: Sequence[str]) -> list[list[Entity]]:
        """For each of n labels, the entities of that label or alias, most prominent first."""
        wanted = [_SPACE.sub(" ", label).strip() for label in labels]
        askable = [label for label in dict.fromkeys(wanted) if label and writable(label)]
        found = self._nodes.bearers(askable)
        # Whoever looks names up reads what is known of their bearers next.
        bearers = [iri for iris in found.values() for iri in iris]
        known, _ = self._nodes.nodes(bearers, FACTS_READ, places=True)
        return [
            sorted(
                (known[iri] for iri in found.get(label, ()) if iri in known),
                key=lambda entity: (-entity.prominence, entity.id),
            )
            for label in wanted
        ]

    def entities(self, ids: Sequence[str]) -> list[Entity | None]:
        """For each of n ids the entity, or None where the graph does not know it."""
        iris = [self._nodes.iri(id_) for id_ in ids]
        known = self._nodes.entities([iri for iri in iris if iri is not None])
        return [None if iri is None else known.get(iri) for iri in iris]

    def subgraphs(self, ids: Sequence[str], *, limit: int = 500) -> list[Subgraph]:
        """For each of n ids the one-hop subgraph, at most ``limit`` triples each way.

        Triples are ordered by the label of the property, then by value.
        """
        iris = [self._nodes.iri(id_) for id_ in ids]
        distinct = list(dict.fromkeys(iri for iri in iris if iri is not None))
        known, facts = self._nodes.nodes(distinct, limit)
        outgoing = {iri: facts[iri].outgoing for iri in known}
        incoming = {iri: facts[iri].incoming for iri in known}
        # Places that hold what was found by name are read along with the labels.
        places = [place for iri in distinct for place in self._nodes.known_above(iri)]
        self._nodes.learn_labels(
            [row for rows in (outgoing, incoming) for r in rows.values() for row in r], places
        )
        graphs = []
        for id_, iri in zip(ids, iris, strict=True):
            entity = None if iri is None else known.get(iri)
            if iri is None or entity is None:
                graphs.append(unknown(id_, self.profile))
                continue
            cut = len(outgoing[iri]) > limit or len(incoming[iri]) > limit
            graphs.append(
                Subgraph(
                    entity=entity,
                    triples=tuple(self._nodes.triples_of(outgoing[iri])[:limit]),
                    incoming=tuple(self._nodes.triples_of(incoming[iri][:limit])),
                    truncated=cut,
                )
            )
        return graphs

    def links(self, ids: Sequence[str]) -> list[Triple]:
        """All triples whose subject and value are both among the given entities (SCK)."""
        iris = list(dict.fromkeys(iri for id_ in ids if (iri := self._nodes.iri(id_)) is not None))
        if len(iris) < 2:
            return []
        found = self._endpoint.select(self.queries.links(iris))
        rows = [Row(row["s"].value, row["p"].value, row["o"].value) for row in found]
        self._nodes.learn_labels(rows)
        return [
            triple
            for iri in iris
            for triple in self._nodes.triples_of([row for row in rows if row.subject == iri])
        ]

    def wider(self, ids: Sequence[str]) -> list[list[Entity]]:
        """For each of n ids, the wider places that hold it, nearest first.

        One query for the steps of ten places, and one for the names of all that hold them; none
        where the profile names no ``within``.
        """
        if not self.profile.within:
            return [[] for _ in ids]
        iris = [self._nodes.iri(id_) for id_ in ids]
        found = self._nodes.places_above(list(dict.fromkeys(filter(None, iris))))
        known = self._nodes.entities([iri for places in found.values() for iri in places])
        return [
            [known[place] for place in found.get(iri or "", ()) if place in known] for iri in iris
        ]

    def in_use(self) -> Usage:
        """How often the cache had the result of a query."""
        return self._endpoint.in_use()

    def close(self) -> None:
        """Close the connections, which are kept open between queries, and the cache."""
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
            rows=tuple(tuple(map(row.get, variables)) for row in rows),
        )

    def stats(self) -> GraphStats:
        """Count triples, named nodes and properties at the endpoint; slow on large ones."""

        def count(query: str) -> int:
            rows = self._endpoint.select(query)
            return int(rows[0]["n"].value)

        label = "|".join(map(quote_iri, self.profile.label))
        return GraphStats(
            name=self.name,
            profile=self.profile.name,
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
