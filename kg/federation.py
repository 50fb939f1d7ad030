"""Several graphs as one: the two halves of Wikidata, or a company's graph and a public one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from guardrail.core.errors import ConfigError
from guardrail.core.types import Entity, Mention, Subgraph, Triple, Usage, Used
from kg.base import KnowledgeGraph, MentionIndex, PlaceIndex
from kg.facts import is_fallback, order
from kg.nodes import ranked

T = TypeVar("T")


class FederatedGraph:
    """Graphs with common ids, queried concurrently.

    Implements ``KnowledgeGraph``, ``MentionIndex`` and ``PlaceIndex``. Facts of all graphs about an
    entity are merged; if names differ, that of the first graph is used.

    Args:
        graphs: The graphs, the one whose names are best first.

    Raises:
        ConfigError: There are none.
    """

    def __init__(self, graphs: Sequence[KnowledgeGraph]) -> None:
        if not graphs:
            raise ConfigError("a federation needs a graph")
        self.graphs = tuple(graphs)
        self._pool = ThreadPoolExecutor(4 * len(graphs), thread_name_prefix="federation")

    @property
    def name(self) -> str:
        """Names of the graphs."""
        return " + ".join(graph.name for graph in self.graphs)

    @property
    def snapshot(self) -> str | None:
        """The states of the graphs; None if none of them reports its own."""
        states = [getattr(graph, "snapshot", None) for graph in self.graphs]
        return " + ".join(state or "?" for state in states) if any(states) else None

    @property
    def profile(self) -> object:
        """The vocabulary profile of the first graph that has one."""
        found = (getattr(graph, "profile", None) for graph in self.graphs)
        return next(filter(None, found), None)

    def find(self, labels: Sequence[str]) -> list[list[Entity]]:
        """For each of n labels, the entities of any graph, most prominent first."""
        return [ranked(_merged(group)) for group in self._each(lambda graph: graph.find(labels))]

    def entities(self, ids: Sequence[str]) -> list[Entity | None]:
        """For each of n ids the entity, or None where no graph knows it."""
        answers = self._each(lambda graph: [[entity] for entity in graph.entities(ids)])
        return [next(iter(_merged(filter(None, group))), None) for group in answers]

    def subgraphs(self, ids: Sequence[str], *, limit: int = 500) -> list[Subgraph]:
        """The one-hop subgraphs of all graphs; what one mentions without a name has another's."""
        answers = self._each(lambda graph: [[s] for s in graph.subgraphs(ids, limit=limit)])
        joined = [_joined(group, limit) for group in answers]
        labels = self._labels(t for part in joined for t in (*part.triples, *part.incoming))
        return [
            part.model_copy(
                update={
                    "triples": tuple(_named(part.triples, labels)),
                    "incoming": tuple(_named(part.incoming, labels)),
                }
            )
            for part in joined
        ]

    def links(self, ids: Sequence[str]) -> list[Triple]:
        """All triples of any graph between the given entities."""
        [triples] = self._each(lambda graph: [graph.links(ids)])
        return list(_named(triples, self._labels(triples)))

    def wider(self, ids: Sequence[str]) -> list[list[Entity]]:
        """For each of n ids, the wider places that contain it, nearest first."""

        def wider(graph: KnowledgeGraph) -> list[list[Entity]]:
            return graph.wider(ids) if isinstance(graph, PlaceIndex) else [[] for _ in ids]

        return [_merged(group) for group in self._each(wider)]

    def spot(self, text: str) -> list[Mention]:
        """What any graph spots in a text; the longer of two overlapping spans."""
        found = {
            (mention.start - mention.end, mention.start): mention
            for graph in self.graphs
            if isinstance(graph, MentionIndex)
            for mention in graph.spot(text)
        }
        kept: list[Mention] = []
        for _, mention in sorted(found.items()):
            if all(mention.end <= other.start or mention.start >= other.end for other in kept):
                kept.append(mention)
        return sorted(kept, key=lambda mention: mention.start)

    def in_use(self) -> Usage:
        """What the graphs use, added up."""
        return Usage.together(graph.in_use() for graph in self.graphs if isinstance(graph, Used))

    def close(self) -> None:
        """Close all graphs."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for graph in self.graphs:
            graph.close()

    def _labels(self, triples: Iterable[Triple]) -> dict[str, str]:
        """Labels by id of the nodes that some triple names by its id only."""
        ends = ((t.subject_id, t.subject, t.value_id, t.value) for t in triples)
        pairs = {pair for end in ends for pair in (end[:2], end[2:])}
        bare = sorted({id_ for id_, name in pairs if id_ is not None and is_fallback(name, id_)})
        known = zip(bare, self.entities(bare), strict=True) if bare else ()
        return {id_: entity.label for id_, entity in known if entity is not None}

    def _each(self, question: Callable[[KnowledgeGraph], Sequence[Sequence[T]]]) -> list[list[T]]:
        """The answers of all graphs, those of each place in their batches joined."""
        answers = self._pool.map(question, self.graphs)
        return [
            [item for group in groups for item in group] for groups in zip(*answers, strict=True)
        ]


def _merged(entities: Iterable[Entity]) -> list[Entity]:
    """One entity for each id, with the names and classes of all."""
    found: dict[str, Entity] = {}
    for entity in entities:
        found[entity.id] = _one(found[entity.id], entity) if entity.id in found else entity
    return list(found.values())


def _one(first: Entity, second: Entity) -> Entity:
    named, other = (second, first) if is_fallback(first.label, first.id) else (first, second)
    names = dict.fromkeys((*named.aliases, other.label, *other.aliases))
    for name in (named.label, named.id):
        names.pop(name, None)
    return named.model_copy(
        update={
            "types": tuple(dict.fromkeys((*named.types, *other.types))),
            "aliases": tuple(names),
            "description": named.description or other.description,
            "url": named.url or other.url,
            "prominence": named.prominence + other.prominence,
        }
    )


def _joined(parts: Sequence[Subgraph], limit: int) -> Subgraph:
    entity = parts[0].entity
    for part in parts[1:]:
        entity = _one(entity, part.entity)
    triples = sorted({t for part in parts for t in part.triples}, key=order)
    incoming = sorted({t for part in parts for t in part.incoming}, key=order)
    cut = len(triples) > limit or len(incoming) > limit
    return Subgraph(
        entity=entity,
        triples=tuple(triples[:limit]),
        incoming=tuple(incoming[:limit]),
        truncated=cut or any(part.truncated for part in parts),
    )


def _named(triples: Iterable[Triple], labels: Mapping[str, str]) -> dict[Triple, None]:
    """The triples with the names that nodes have in any graph, each once, in order."""

    def name(id_: str | None, written: str) -> str:
        return labels.get(id_, written) if id_ and is_fallback(written, id_) else written

    return dict.fromkeys(
        triple.model_copy(
            update={
                "subject": name(triple.subject_id, triple.subject),
                "value": name(triple.value_id, triple.value),
            }
        )
        for triple in triples
    )
