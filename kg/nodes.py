"""Reads nodes of a graph by SPARQL: entities, facts, links, places that contain a place.

The queries are the same for all back ends, which only run them. A batch is one query for names
or facts and one for the labels of what the facts mention.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from guardrail.core.errors import InputError
from guardrail.core.types import Entity, Subgraph, Triple
from kg.base import GraphStats, Term, holders
from kg.facts import Name, Row, choose_names, fallback_label, property_fallback, triples, unknown
from kg.profiles import Profile
from kg.queries import QueryWriter
from kg.terms import XSD, is_blank

BATCH: Final = 50
"""Ids or labels per query."""

K = TypeVar("K")
V = TypeVar("V")
Solution = dict[str, Term]
"""The bound variables of one solution of a query."""


class Facts(NamedTuple):
    """Facts out of a node and into it; ``cut`` is True if the graph has more of the latter."""

    outgoing: list[Row]
    incoming: list[Row]
    cut: bool = False


class Memory(dict[K, V]):
    """A dictionary whose values have a bounded size in total, cleared when it is full.

    Safe between threads; a value that replaces another one counts as well.
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda _: 1) -> None:
        super().__init__()
        self._most, self._size, self._held = most, size, 0

    def __setitem__(self, key: K, value: V) -> None:
        size = self._size(value)
        if self._held + size > self._most:
            self.clear()
            self._held = 0
        self._held += size
        super().__setitem__(key, value)

    def known(self, keys: Iterable[K]) -> tuple[dict[K, V], list[K]]:
        """The values that it has, and the keys that it lacks, each once."""
        found: dict[K, V] = {}
        missing: dict[K, None] = {}
        for key in keys:
            try:
                found[key] = self[key]
            except KeyError:
                missing[key] = None
        return found, list(missing)

    def learn(self, values: dict[K, V]) -> dict[K, V]:
        """Store values; returns them."""
        for key, value in values.items():
            self[key] = value
        return values


class GraphReader(ABC):
    """The part of a graph that is the same for all back ends."""

    name: str
    profile: Profile
    queries: QueryWriter

    def __init__(self) -> None:
        self._forget()

    @abstractmethod
    def _select_all(self, queries: Sequence[str]) -> list[list[Solution]]:
        """Run n SELECTs, if possible at once."""

    def _structured(self, subject: str, predicate: str, value: Term) -> Iterator[Row]:
        """The facts that a blank node or statement as a value states, if the back end reads it."""
        return iter(())

    def _forget(self) -> None:
        """Clear all caches; that of subgraphs holds at most some 250 MB."""
        most = 180_000  # triples of 1.3 kB each
        self._labels: Memory[str, str | None] = Memory(200_000)
        self._entities: Memory[str, Entity | None] = Memory(50_000)
        self._above: Memory[str, tuple[str, ...]] = Memory(50_000)
        self._facts: Memory[tuple[str, int], Facts] = Memory(most, _size)
        self._subgraphs: Memory[tuple[str, int], Subgraph] = Memory(most, _size)

    # --- the protocol ------------------------------------------------------------------------

    def entities(self, ids: Sequence[str]) -> list[Entity | None]:
        """For each of n ids the entity, or None where the graph does not know it."""
        iris = [self._iri(id_) for id_ in ids]
        known, _ = self._read(filter(None, iris))
        return [None if iri is None else known[iri] for iri in iris]

    def subgraphs(self, ids: Sequence[str], *, limit: int = 500) -> list[Subgraph]:
        """One-hop subgraphs, ordered by property and value; of facts into a hub a few are read."""
        iris = [self._iri(id_) for id_ in ids]
        found, missing = self._subgraphs.known([(iri, limit) for iri in iris if iri is not None])
        new = [iri for iri, _ in missing]
        entities, facts = self._read(new, limit)
        rows = [row for around in facts.values() for row in (*around.outgoing, *around.incoming)]
        places, _ = self._above.known(new)
        labels = self._labels_of(rows, [place for above in places.values() for place in above])
        for iri, (outgoing, incoming, cut) in facts.items():
            if (entity := entities[iri]) is None:
                continue
            found[iri, limit] = self._subgraphs[iri, limit] = Subgraph(
                entity=entity,
                triples=tuple(self._triples(outgoing, labels)[:limit]),
                incoming=tuple(self._triples(incoming, labels)),
                truncated=cut or len(outgoing) > limit,
            )
        return [
            found.get((iri or "", limit)) or unknown(id_, self.profile)
            for id_, iri in zip(ids, iris, strict=True)
        ]

    def links(self, ids: Sequence[str]) -> list[Triple]:
        """All triples whose subject and value are both among the given entities (SCK)."""
        iris = list(dict.fromkeys(iri for id_ in ids if (iri := self._iri(id_)) is not None))
        if len(iris) < 2:
            return []
        [answer] = self._select_all([self.queries.links(iris)])
        rows = [Row(row["s"].value, row["p"].value, row["o"].value) for row in answer]
        labels = self._labels_of(rows)
        return [
            triple
            for iri in iris
            for triple in self._triples([row for row in rows if row.subject == iri], labels)
        ]

    def wider(self, ids: Sequence[str]) -> list[list[Entity]]:
        """The wider places; one query for ten places, none where the profile has no ``within``."""
        iris = [self._iri(id_) for id_ in ids]
        above, unread = self._above.known(iri for iri in iris if iri is not None)
        groups = batches(unread if self.profile.within else [])
        answers = self._select_all([self.queries.within(batch) for batch in groups])
        for batch, answer in zip(groups, answers, strict=True):
            above |= self._learn_places(batch, answer)
        known, _ = self._read(place for places in above.values() for place in places)
        return [
            [entity for place in above.get(iri or "", ()) if (entity := known[place]) is not None]
            for iri in iris
        ]

    def stats(self) -> GraphStats:
        """Count triples, named nodes and properties; slow on large graphs."""
        answers = self._select_all(self.queries.counts())
        triples_, entities, properties = (int(rows[0]["n"].value) for rows in answers)
        return GraphStats(
            name=self.name,
            profile=self.profile.name,
            triples=triples_,
            entities=entities,
            properties=properties,
        )

    # --- nodes -------------------------------------------------------------------------------

    def _iri(self, identifier: str) -> str | None:
        """The IRI of an id; None for what is none, and for a blank node."""
        try:
            iri = self.profile.iri(identifier)
        except InputError:
            return None
        return None if is_blank(iri) else iri

    def _read(
        self, iris: Iterable[str], limit: int | None = None, *, ahead: bool = False
    ) -> tuple[dict[str, Entity | None], dict[str, Facts]]:
        """Entities and, with a limit, their facts, from the cache or else in concurrent queries.

        An entity is None for a node that no triple mentions, and for a property. ``ahead`` also
        fills the cache of wider places.
        """
        wanted = list(dict.fromkeys(iris))
        entities, unread = self._entities.known(wanted)
        names = batches(unread, BATCH)
        around, new = self._facts.known([] if limit is None else [(iri, limit) for iri in wanted])
        rows = batches([iri for iri, _ in new])
        _, lost = self._above.known(wanted if ahead and self.profile.within else [])
        ways = batches(lost)
        most = (limit or 0) + 1
        answers = self._select_all(
            [self.queries.entities(batch) for batch in names]
            + [self.queries.facts(batch, most) for batch in rows]
            + [self.queries.within(batch) for batch in ways]
        )
        for batch, answer in zip(names, answers, strict=False):
            entities |= self._learn_entities(batch, answer)
        facts = {iri: facts for (iri, _), facts in around.items()}
        for batch, answer in zip(rows, answers[len(names) :], strict=False):
            facts |= self._learn_facts(batch, answer, most - 1)
        for batch, answer in zip(ways, answers[len(names) + len(rows) :], strict=True):
            self._learn_places(batch, answer)
        return entities, facts

    def _learn_facts(
        self, batch: Sequence[str], answer: Sequence[Solution], limit: int
    ) -> dict[str, Facts]:
        found = {iri: Facts([], []) for iri in batch}
        for row in answer:
            centre, predicate = batch[int(row["i"].value)], row["p"].value
            value, subject = row.get("o"), row.get("s")
            if value is None:
                if subject is not None and subject.kind == "iri":
                    found[centre].incoming.append(Row(subject.value, predicate, centre))
            else:
                found[centre].outgoing.extend(self._rows(centre, predicate, value))
        return self._learn_around(found, limit)

    def _rows(self, subject: str, predicate: str, value: Term) -> Iterable[Row]:
        """The facts that one triple states."""
        statements = self.profile.statements
        if value.kind == "literal":
            datatype = value.datatype or f"{XSD}string"
            return [Row(subject, predicate, value.value, datatype, value.language)]
        if value.kind == "blank" or (
            statements is not None and predicate.startswith(f"{statements.claim}P")
        ):
            return self._structured(subject, predicate, value)
        return [Row(subject, predicate, value.value)]

    def _learn_around(self, found: dict[str, Facts], limit: int) -> dict[str, Facts]:
        """Store facts; of those that point at a hub a few, which are as good as any others.

        Facts between the entities of a text are read by ``links``, the rest from their own side.
        """
        for iri, (outgoing, incoming, _) in found.items():
            if len(incoming) > limit:
                found[iri] = Facts(outgoing, incoming[: min(limit, 25)], cut=True)
        self._facts.learn({(iri, limit): facts for iri, facts in found.items()})
        return found

    def _learn_places(
        self, batch: Sequence[str], answer: Sequence[Solution]
    ) -> dict[str, tuple[str, ...]]:
        """The places that contain each node, nearest first."""
        steps: dict[str, dict[str, None]] = defaultdict(dict)
        # Servers give rows in any order: the steps from one place are read best first.
        best = self.profile.within.index
        for row in sorted(answer, key=lambda row: (best(row["p"].value), row["w"].value)):
            if row["w"].kind == "iri":
                steps[row["a"].value][row["w"].value] = None
        found = {iri: tuple(holders(iri, steps.__getitem__)) for iri in batch}
        return self._above.learn(found)

    def _learn_entities(
        self, batch: Sequence[str], answer: Sequence[Solution]
    ) -> dict[str, Entity | None]:
        roles: dict[str, list[tuple[str, Term | None]]] = defaultdict(list)
        for row in answer:
            roles[row["e"].value].append((row["r"].value, row.get("v")))
        return self._entities.learn({iri: self._entity(iri, roles[iri]) for iri in batch})

    def _entity(self, iri: str, roles: list[tuple[str, Term | None]]) -> Entity | None:
        profile = self.profile
        prefix = profile.property_entity_prefix
        if not roles or (prefix and re.fullmatch(re.escape(prefix) + r"P\d+", iri)):
            return None
        named_by = profile.label + profile.alias
        names: list[Name] = []
        descriptions: list[Name] = []
        types, wider, prominence = set(), set(), 0
        for role, term in roles:
            if role == "property":
                return None
            if term is None:
                continue
            if role == "count":
                prominence += int(term.value)
            elif role == "wider":
                wider.add(profile.short(term.value))
            elif role in profile.type and term.kind == "iri":
                types.add(profile.short(term.value))
            elif term.kind == "literal":
                readable = profile.language_rank(term.language) is not None
                if role in named_by and (readable or role in profile.label):
                    place = named_by.index(role)
                    names.append(Name.of(profile, place, term.value, term.language))
                if role in profile.description and readable:
                    place = profile.description.index(role)
                    descriptions.append(Name.of(profile, place, term.value, term.language))
        label, aliases = choose_names(names, len(profile.label))
        if label is not None:
            self._labels[iri] = label
        return Entity(
            id=profile.short(iri),
            label=label or fallback_label(iri, profile),
            types=(*sorted(types), *sorted(wider - types)),
            aliases=aliases,
            description=min(descriptions).text if descriptions else None,
            url=profile.url(iri),
            prominence=prominence,
        )

    # --- labels ------------------------------------------------------------------------------

    def _labels_of(self, rows: Iterable[Row], others: Sequence[str] = ()) -> dict[str, str | None]:
        """Labels, or None, of the nodes and properties of rows; reads others at the same time."""
        nodes: dict[str, None] = {}
        for row in rows:
            nodes[row.subject] = nodes[self.profile.property_node(row.predicate)] = None
            if row.datatype is None:
                nodes[row.value] = None
        found, missing = self._labels.known(nodes)
        names = self._names_of([iri for iri in missing if self._iri(iri)], others)
        labels = len(self.profile.label)
        return found | self._labels.learn(
            {iri: choose_names(own, labels)[0] for iri, own in names.items()}
        )

    def _names_of(self, iris: Sequence[str], others: Sequence[str]) -> dict[str, list[Name]]:
        """The labels of nodes; reads the entities of others at the same time."""
        groups = batches(iris, 300)
        unread = batches(self._entities.known(others)[1], BATCH)
        answers = self._select_all(
            [self.queries.labels(batch) for batch in groups]
            + [self.queries.entities(batch) for batch in unread]
        )
        for batch, answer in zip(unread, answers[len(groups) :], strict=True):
            self._learn_entities(batch, answer)
        names: dict[str, list[Name]] = {iri: [] for iri in iris}
        for solution in chain.from_iterable(answers[: len(groups)]):
            iri, cell, key = solution["n"].value, solution.get("nLabel"), solution.get("k")
            # The label service answers with the bare id where there is no label.
            if cell is not None and cell.value != self.profile.short(iri):
                place = 0 if key is None else int(key.value)
                names[iri].append(Name.of(self.profile, place, cell.value, cell.language))
        return names

    def _label(self, iri: str) -> str:
        """The label of one node."""
        return self._labels_of([Row(iri, iri, iri)]).get(iri) or fallback_label(iri, self.profile)

    def _property_label(self, predicate: str, labels: Mapping[str, str | None]) -> str | None:
        if not self.profile.is_fact(predicate):
            return None
        return labels.get(self.profile.property_node(predicate)) or property_fallback(predicate)

    def _triples(self, rows: Sequence[Row], labels: Mapping[str, str | None]) -> list[Triple]:
        return triples(
            rows,
            self.profile,
            label=lambda iri: labels.get(iri) or fallback_label(iri, self.profile),
            property_label=lambda predicate: self._property_label(predicate, labels),
        )


def _size(found: Facts | Subgraph) -> int:
    """How many facts a cache holds; one more, for a node without any."""
    outgoing = found.outgoing if isinstance(found, Facts) else found.triples
    return len(outgoing) + len(found.incoming) + 1


def ranked(entities: Iterable[Entity | None]) -> list[Entity]:
    """The entities, most prominent first."""
    return sorted(filter(None, entities), key=lambda entity: (-entity.prominence, entity.id))


def batches(items: Sequence[str], size: int = 10) -> list[Sequence[str]]:
    """Consecutive parts of at most ``size`` items.

    Queries with a UNION for each node take ten, which keeps the planners of servers fast.
    """
    return [items[start : start + size] for start in range(0, len(items), size)]
