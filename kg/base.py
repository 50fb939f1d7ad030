"""What a knowledge graph offers: the protocols of back ends, and the values that they return.

All methods are synchronous and take and return batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from pydantic import Field

from guardrail.core.types import Entity, Mention, Subgraph, Triple, Value


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
    """A graph that can also spot its labels in text, in one linear pass."""

    def spot(self, text: str) -> list[Mention]:
        """All longest spans of the text that equal a label or alias, at word boundaries."""
        ...


@runtime_checkable
class PlaceIndex(Protocol):
    """A graph that also knows which places contain which, by the ``within`` of its profile."""

    def wider(self, ids: Sequence[str]) -> list[list[Entity]]:
        """For each of n ids, the wider places that contain it, nearest first.

        They are bounded as by ``holders``; empty lists where none is known.

        Raises:
            KnowledgeGraphError: If the graph cannot answer.
        """
        ...


class Term(NamedTuple):
    """One term of a result: ``kind`` is ``iri``, ``literal``, ``blank`` or ``triple``."""

    kind: str
    value: str
    datatype: str | None = None
    language: str | None = None

    def __str__(self) -> str:
        return self.value


class QueryResult(Value):
    """The result of a SPARQL query.

    Attributes:
        variables: Column names of a SELECT; ``subject, predicate, object`` of a CONSTRUCT.
        rows: One row a solution or triple, with None where a variable is unbound.
        boolean: The answer of an ASK, else None.
    """

    variables: tuple[str, ...] = ()
    rows: tuple[tuple[Term | None, ...], ...] = ()
    boolean: bool | None = None


class GraphStats(Value):
    """Counts of a graph: triples, named nodes that are no property, properties that state facts."""

    name: str
    profile: str
    triples: int = Field(ge=0)
    entities: int = Field(ge=0)
    properties: int = Field(ge=0)


def holders(
    place: str, above: Callable[[str], Iterable[str]], *, steps: int = 8, most: int = 30
) -> list[str]:
    """The places that contain a place, nearest first, each once, without the place itself.

    A town may have belonged to several countries; ``above``, from a place to those that directly
    contain it, may have cycles.
    """
    seen = {place: None}
    frontier = [place]
    for _ in range(steps):
        found = dict.fromkeys(wider for item in frontier for wider in above(item))
        frontier = [item for item in found if item not in seen]
        seen.update(dict.fromkeys(frontier))
        if not frontier or len(seen) > most:
            break
    return list(seen)[1 : most + 1]
