"""Answers to a user's own SPARQL query, and counts of a graph."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field
from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    Store,
    Triple,
)

from guardrail.core.types import Value
from kg.blank_nodes import BLANK, is_named

__all__ = ["GraphStats", "QueryResult", "Term", "graph_read", "read_solutions"]


class Term(Value):
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
    """Counts of a graph.

    Attributes:
        name: The graph's name.
        profile: Its vocabulary profile.
        triples: Number of triples.
        entities: Number of nodes that have a name and are no property.
        properties: Number of different properties that state facts.
    """

    name: str
    profile: str
    triples: int = Field(ge=0)
    entities: int = Field(ge=0)
    properties: int = Field(ge=0)


def graph_read(store: Store) -> DefaultGraph | None:
    """The graph of a store that is read: None, for all, where it has named graphs."""
    return DefaultGraph() if next(store.named_graphs(), None) is None else None


def read_solutions(results: QuerySolutions | QueryBoolean | QueryTriples) -> QueryResult:
    """Turn Oxigraph's results into values."""
    if isinstance(results, QueryBoolean):
        return QueryResult(boolean=bool(results))
    if isinstance(results, QueryTriples):
        return QueryResult(
            variables=("subject", "predicate", "object"),
            rows=tuple(_row((t.subject, t.predicate, t.object)) for t in results),
        )
    return QueryResult(
        variables=tuple(variable.value for variable in results.variables),
        rows=tuple(_row(solution) for solution in results),
    )


def _row(
    terms: Iterable[NamedNode | BlankNode | Literal | Triple | None],
) -> tuple[Term | None, ...]:
    return tuple(None if term is None else _term(term) for term in terms)


def _term(term: NamedNode | BlankNode | Literal | Triple) -> Term:
    if isinstance(term, Literal):
        language = term.language
        return Term(
            kind="literal",
            value=term.value,
            datatype=None if language else term.datatype.value,
            language=language,
        )
    if is_named(term):
        return Term(kind="iri", value=term.value)
    if isinstance(term, BlankNode | NamedNode):
        return Term(kind="blank", value=term.value.removeprefix(BLANK))
    return Term(kind="triple", value=str(term))
