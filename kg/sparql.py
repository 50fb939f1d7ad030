"""A knowledge graph behind any SPARQL 1.1 endpoint: Wikidata, DBpedia, Virtuoso, QLever.

Results are kept in memory, and in a cache on disk that processes share.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pyoxigraph import RdfFormat, Store

from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.types import Entity, Usage
from kg.base import QueryResult
from kg.cache import CACHE_S
from kg.endpoint import Endpoint, QueryRejectedError
from kg.nodes import BATCH, GraphReader, Memory, Solution, batches, ranked
from kg.opening import EndpointSettings
from kg.profiles import Profile, load_profile
from kg.queries import NAMESAKES, QueryWriter
from kg.store import read_solutions
from kg.terms import writable


class SparqlGraph(GraphReader):
    """A knowledge graph behind a SPARQL 1.1 endpoint. Safe to use from several threads.

    Implements ``KnowledgeGraph`` and ``PlaceIndex``. Names are matched as written, in lower case,
    with a capital first letter and with a capital on every word: an endpoint has no index of folded
    names. Prominence is the number of triples that start at the node, since counting those that end
    there stalls servers on hubs.

    Args:
        endpoint: Address of the endpoint.
        profile: Name or TOML file of the vocabulary profile; None for that of a well-known
            host (Wikidata, DBpedia), else plain RDFS and SKOS.
        settings: Time limits, login, cache.
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
        super().__init__()
        host = urlsplit(endpoint).hostname or endpoint
        known_hosts = {
            "query.wikidata.org": "wikidata",
            "qlever.cs.uni-freiburg.de": "wikidata-mirror",
            "qlever.dev": "wikidata-mirror",
            "dbpedia.org": "dbpedia",
        }
        self.profile = load_profile(known_hosts.get(host, "rdfs") if profile is None else profile)
        settings = settings or EndpointSettings()
        self._endpoint = Endpoint(endpoint, settings, dialect=self.profile.dialect)
        self.queries = QueryWriter(self.profile, self._endpoint.dialect)
        self.name = name or host

    def find(self, labels: Sequence[str]) -> list[list[Entity]]:
        """For each of n labels, the entities of that label or alias, most prominent first."""
        wanted = [" ".join(label.split()) for label in labels]
        found = self._bearers([label for label in wanted if label and writable(label)])
        # Whoever looks names up reads what is known of their bearers next; the linker 200 facts.
        known, _ = self._read((iri for iris in found.values() for iri in iris), 200, ahead=True)
        return [ranked(known[iri] for iri in found.get(label, ())) for label in wanted]

    def in_use(self) -> Usage:
        """How often the cache had the result of a query."""
        return self._endpoint.in_use()

    def close(self) -> None:
        """Close the connections, which are kept open between queries, and the cache."""
        self._endpoint.close()

    def query(self, sparql: str) -> QueryResult:
        """Run a SPARQL SELECT, ASK, CONSTRUCT or DESCRIBE query, past the cache.

        Raises:
            InputError: If the endpoint says that it is not SPARQL.
            KnowledgeGraphError: If the endpoint gives no result.
        """
        body = re.sub(r"(?m)^[^\S\n]*#[^\n]*$", "", sparql)
        prologue = r"\s*(?:(?:BASE\s*<[^>]*>|PREFIX\s+[^\s:]*:\s*<[^>]*>)\s*)*"
        body = re.sub(prologue, "", body, count=1, flags=re.I)
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
            variables=variables, rows=tuple(tuple(map(row.get, variables)) for row in rows)
        )

    def _select_all(self, queries: Sequence[str]) -> list[list[Solution]]:
        if time.monotonic() > self._stale:
            self._forget()
        return self._endpoint.select_all(queries)

    def _forget(self) -> None:
        super()._forget()
        self._named: Memory[str, tuple[str, ...]] = Memory(50_000)
        self._stale = time.monotonic() + CACHE_S

    def _bearers(self, labels: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The nodes with each label."""
        found, unread = self._named.known(labels)
        groups = batches(unread, BATCH)
        answers = self._select_all([self.queries.find(batch) for batch in groups])
        for batch, rows in zip(groups, answers, strict=True):
            bearers: dict[str, dict[str, None]] = {label: {} for label in batch}
            for label, iri in self._bearers_in(batch, rows):
                bearers[label][iri] = None
            found |= self._named.learn({label: tuple(iris) for label, iris in bearers.items()})
        return found

    def _bearers_in(self, labels: Sequence[str], rows: Sequence[Solution]) -> list[tuple[str, str]]:
        """Pairs of a label and a node that bears it, in some spelling.

        If the query's limit for all labels is reached, they are queried in halves, so that a common
        name does not crowd out the others.
        """
        if len(labels) > 1 and len(rows) >= NAMESAKES * len(labels):
            middle = len(labels) // 2
            halves = (labels[:middle], labels[middle:])
            answers = self._select_all([self.queries.find(half) for half in halves])
            return [
                pair
                for half, answer in zip(halves, answers, strict=True)
                for pair in self._bearers_in(half, answer)
            ]
        return [
            (labels[int(row["q"].value)], row["e"].value) for row in rows if row["e"].kind == "iri"
        ]
