"""What the engine asks of a knowledge graph: one synchronous protocol, batches in, batches out.

What only some graphs can do beside it has a protocol of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from guardrail.core.types import Entity, Mention, Subgraph, Triple

__all__ = ["KnowledgeGraph", "MentionIndex", "PlaceIndex"]


@runtime_checkable
class KnowledgeGraph(Protocol):
    """A graph of entities and facts.

    Every method takes and returns batches and raises ``KnowledgeGraphError`` when the graph
    cannot answer.
    """

    @property
    def name(self) -> str:
        """Name of the graph, for the score log."""
        ...

    def find(self, labels: Sequence[str]) -> list[list[Entity]]:
        """For each of n labels, the entities whose label or alias equals it.

        Case is folded and white space normalised. Most prominent first; empty lists where
        there is none.
        """
        ...

    def entities(self, ids: Sequence[str]) -> list[Entity | None]:
        """For each of n ids the entity, or None where the graph does not know it."""
        ...

    def subgraphs(self, ids: Sequence[str], *, limit: int = 500) -> list[Subgraph]:
        """For each of n ids the one-hop subgraph, at most ``limit`` triples each way.

        An unknown id yields a subgraph without triples.
        """
        ...

    def links(self, ids: Sequence[str]) -> list[Triple]:
        """All triples whose subject and value are both among the given entities (SCK)."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


@runtime_checkable
class MentionIndex(Protocol):
    """A graph that can also spot its own labels in running text, in one linear pass."""

    def spot(self, text: str) -> list[Mention]:
        """All maximal stretches of the text that equal a label or alias, at word boundaries."""
        ...


@runtime_checkable
class PlaceIndex(Protocol):
    """A graph that also knows which places lie in which, by the ``within`` of its profile."""

    def wider(self, ids: Sequence[str]) -> list[list[Entity]]:
        """For each of n ids, the wider places that hold it, nearest first.

        At most ``kg.containment.STEPS`` steps away and ``kg.containment.MOST`` in number; empty
        lists where none is known.

        Raises:
            KnowledgeGraphError: If the graph cannot answer.
        """
        ...
