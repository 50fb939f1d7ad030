"""Reads nodes from a SPARQL endpoint: bearers of a name, facts of a node, places that contain it.

Queries run concurrently and their results are cached.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from guardrail.core.errors import InputError
from guardrail.core.types import Entity, Triple
from kg.base import holders
from kg.endpoint import XSD_STRING, Endpoint
from kg.endpoint_settings import BATCH, CACHE_S
from kg.facts import Name, Row, choose_names, fallback_label, property_fallback, triples
from kg.profiles import Profile
from kg.results import Term
from kg.sparql_text import NAMESAKES, QueryWriter
from kg.traffic import TimedCache, keep

__all__ = ["Facts", "SparqlNodes"]

# Facts of one entity come in one UNION each: a few entities a query keep servers' planners fast.
_SUBGRAPHS_A_QUERY = 10
_LABELS_A_QUERY = 300
_CACHED_LABELS = 200_000
_CACHED_NODES = 50_000
_CACHED_SUBGRAPHS = 2_000


class Facts(NamedTuple):
    """Facts out of a node and into it."""

    outgoing: list[Row]
    incoming: list[Row]


class SparqlNodes:
    """Reads nodes and caches them as long as query results."""

    def __init__(self, endpoint: Endpoint, profile: Profile, queries: QueryWriter) -> None:
        self._endpoint, self._profile, self.queries = endpoint, profile, queries
        self._labels: dict[str, str | None] = {}
        keep_s = CACHE_S
        self._bearing: TimedCache[str, tuple[str, ...]] = TimedCache(_CACHED_NODES, keep_s)
        self._nodes: TimedCache[str, tuple[Entity | None]] = TimedCache(_CACHED_NODES, keep_s)
        self._above: TimedCache[str, tuple[str, ...]] = TimedCache(_CACHED_NODES, keep_s)
        self._around: TimedCache[tuple[str, int], Facts] = TimedCache(_CACHED_SUBGRAPHS, keep_s)

    def iri(self, identifier: str) -> str | None:
        """The IRI of an id; None for what is none."""
        try:
            return self._profile.iri(identifier)
        except InputError:
            return None

    def _step(self, row: dict[str, Term]) -> tuple[int, str]:
        """Place of a step's predicate in the profile, and where it leads."""
        return self._profile.within.index(row["p"].value), row["w"].value

    def _bearers_in(
        self, labels: Sequence[str], rows: Sequence[dict[str, Term]] | None = None
    ) -> list[tuple[str, str]]:
        """Pairs of a label and a node that bears it, in some spelling.

        The query's limit holds for all its labels together. If it is reached, the labels are
        queried in halves, so that a common name does not crowd out the others.
        """
        if rows is None:
            rows = self._endpoint.select(self.queries.find(labels))
        if len(labels) > 1 and len(rows) >= NAMESAKES * len(labels):
            middle = len(labels) // 2
            return self._bearers_in(labels[:middle]) + self._bearers_in(labels[middle:])
        return [
            (labels[int(row["q"].value)], row["e"].value) for row in rows if row["e"].kind == "iri"
        ]

    def bearers(self, labels: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The nodes with each label."""
        found = {label: self._bearing.get(label) for label in labels}
        batches = _batches(_unread(found), BATCH)
        answers = self._endpoint.select_all([self.queries.find(batch) for batch in batches])
        for batch, rows in zip(batches, answers, strict=True):
            bearers: dict[str, dict[str, None]] = {label: {} for label in batch}
            for label, iri in self._bearers_in(batch, rows):
                bearers[label][iri] = None
            for label, iris in bearers.items():
                found[label] = tuple(iris)
                self._bearing.put(label, tuple(iris))
        return {label: iris or () for label, iris in found.items()}

    def nodes(
        self, iris: Iterable[str], limit: int, *, places: bool = False
    ) -> tuple[dict[str, Entity], dict[str, Facts]]:
        """Entities and their facts, from the cache or else in concurrent queries.

        With ``places``, the steps to wider places are read as well.
        """
        wanted = list(dict.fromkeys(iris))
        entities = {iri: self._nodes.get(iri) for iri in wanted}
        facts = {iri: self._around.get((iri, limit)) for iri in wanted}
        names = _batches(_unread(entities), BATCH)
        rows = _batches(_unread(facts), _SUBGRAPHS_A_QUERY)
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
                self._around.put((iri, limit), around)
        known = {iri: around for iri, around in facts.items() if around is not None}
        return _entities_in(entities), known

    def _unknown_ways(self, iris: Sequence[str]) -> list[Sequence[str]]:
        """Nodes whose containing places are not cached, in batches."""
        if not self._profile.within:
            return []
        return _batches(_unread({iri: self._above.get(iri) for iri in iris}), _SUBGRAPHS_A_QUERY)

    def _learn_ways(
        self, ways: Sequence[Sequence[str]], answers: Sequence[Sequence[dict[str, Term]]]
    ) -> None:
        """Cache the places that contain each node, nearest first."""
        for batch, answer in zip(ways, answers, strict=True):
            steps: dict[str, dict[str, None]] = defaultdict(dict)
            # Servers give rows in any order: the steps from one place are read best first.
            for row in sorted(answer, key=self._step):
                if row["w"].kind == "iri":
                    steps[row["a"].value][row["w"].value] = None
            for iri in batch:
                self._above.put(iri, tuple(holders(iri, steps.__getitem__)))

    def known_above(self, iri: str) -> tuple[str, ...]:
        """The cached places that contain a node."""
        return self._above.get(iri) or ()

    def places_above(self, iris: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The places that contain each node, nearest first."""
        ways = self._unknown_ways(iris)
        self._learn_ways(
            ways, self._endpoint.select_all([self.queries.within(batch) for batch in ways])
        )
        return {iri: self.known_above(iri) for iri in iris}

    def _facts_in(
        self, batch: Sequence[str], answer: Sequence[dict[str, Term]]
    ) -> dict[str, Facts]:
        found = {iri: Facts([], []) for iri in batch}
        for row in answer:
            centre = batch[int(row["i"].value)]
            if "o" in row and row["o"].kind != "blank":
                found[centre].outgoing.append(_row(centre, row["p"], row["o"]))
            elif "s" in row and row["s"].kind == "iri":
                found[centre].incoming.append(Row(row["s"].value, row["p"].value, centre))
        return found

    def entities(self, iris: Iterable[str]) -> dict[str, Entity]:
        """The entities among the nodes: those that some triple mentions and no property."""
        found = {iri: self._nodes.get(iri) for iri in iris}
        batches = _batches(_unread(found), BATCH)
        answers = self._endpoint.select_all([self.queries.entities(batch) for batch in batches])
        for batch, answer in zip(batches, answers, strict=True):
            found |= self._learn_entities(batch, answer)
        return _entities_in(found)

    def _learn_entities(
        self, batch: Sequence[str], answer: Sequence[dict[str, Term]]
    ) -> dict[str, tuple[Entity | None]]:
        """Cache the entities of nodes; None for a node that is no entity."""
        roles: dict[str, list[tuple[str, Term | None]]] = defaultdict(list)
        for row in answer:
            roles[row["e"].value].append((row["r"].value, row.get("v")))
        read = {iri: (self._entity(iri, roles[iri]) if iri in roles else None,) for iri in batch}
        for iri, item in read.items():
            self._nodes.put(iri, item)
        return read

    def _entity(self, iri: str, roles: list[tuple[str, Term | None]]) -> Entity | None:
        profile = self._profile
        prefix = profile.property_entity_prefix
        if prefix and re.fullmatch(re.escape(prefix) + r"P\d+", iri):
            return None
        names: list[Name] = []
        descriptions: list[Name] = []
        types, wider, prominence = set(), set(), 0
        for role, cell in roles:
            if role == "property":
                return None
            if cell is None:
                continue
            if role == "count":
                prominence = int(cell.value)
            elif role == "type" and cell.kind == "iri":
                types.add(profile.short(cell.value))
            elif role == "wider":
                wider.add(profile.short(cell.value))
            elif role.startswith("name"):
                names.append(Name.of(profile, int(role[4:]), cell.value, cell.language))
            elif role.startswith("description"):
                descriptions.append(Name.of(profile, int(role[11:]), cell.value, cell.language))
        label, aliases = choose_names(names, len(profile.label))
        if label is not None:
            keep(self._labels, iri, label, most=_CACHED_LABELS)
        return Entity(
            id=profile.short(iri),
            label=label or fallback_label(iri, profile),
            types=(*sorted(types), *sorted(wider - types)),
            aliases=aliases,
            description=min(descriptions).text if descriptions else None,
            url=profile.url(iri),
            prominence=prominence,
        )

    def learn_labels(self, rows: Sequence[Row], others: Sequence[str] = ()) -> None:
        """Query the labels of all nodes and properties of the rows that are not cached.

        Args:
            rows: The rows.
            others: Nodes whose entities are queried at the same time.
        """
        nodes: dict[str, None] = {}
        for row in rows:
            nodes[row.subject] = None
            nodes[self._profile.property_node(row.predicate)] = None
            if row.datatype is None:
                nodes[row.value] = None
        missing = [iri for iri in nodes if iri not in self._labels and self.iri(iri) is not None]
        batches = _batches(missing, _LABELS_A_QUERY)
        unread = _unread({iri: self._nodes.get(iri) for iri in others})
        nodes_of = _batches(unread, BATCH)
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
                key = solution.get("k")
                place = 0 if key is None else self._profile.label.index(key.value)
                names[iri].append(Name.of(self._profile, place, cell.value, cell.language))
            for iri in batch:
                label, _ = choose_names(names[iri], len(self._profile.label))
                keep(self._labels, iri, label, most=_CACHED_LABELS)

    def triples_of(self, rows: Sequence[Row]) -> list[Triple]:
        """The rows as triples, with the cached labels."""
        return triples(rows, self._profile, label=self._label, property_label=self._property_label)

    def _label(self, iri: str) -> str:
        return self._labels.get(iri) or fallback_label(iri, self._profile)

    def _property_label(self, predicate: str) -> str | None:
        if not self._profile.is_fact(predicate):
            return None
        node = self._profile.property_node(predicate)
        return self._labels.get(node) or property_fallback(predicate)


def _unread(found: Mapping[str, object]) -> list[str]:
    return [name for name, item in found.items() if item is None]


def _entities_in(found: Mapping[str, tuple[Entity | None] | None]) -> dict[str, Entity]:
    return {iri: item[0] for iri, item in found.items() if item and item[0] is not None}


def _row(subject: str, predicate: Term, value: Term) -> Row:
    if value.kind == "iri":
        return Row(subject, predicate.value, value.value)
    datatype = value.datatype or XSD_STRING
    return Row(subject, predicate.value, value.value, datatype, value.language)


def _batches(items: Sequence[str], size: int) -> list[Sequence[str]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
