"""Query shapes, their extension and their evaluation (CAQA 4.1, 4.2, Table 4).

A query is a small tree. Its root is the answer variable; every edge is a fact that ties a node
to the next one, down to the entities that the question names.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from benchmarks.caqa.graph import Fact, FactGraph
from guardrail.core.types import Complexity

__all__ = ["Base", "Edge", "Extension", "Node", "Query", "extend", "sample_query"]

Base = Literal["single", "path", "tree"]
Extension = Literal["union", "subject", "answer"]


@dataclass(frozen=True, slots=True)
class Edge:
    """A fact that ties ``child`` to its parent; ``forward`` when the parent is its value."""

    property: str
    forward: bool
    child: Node

    def fact(self, parent: str) -> Fact:
        """The fact, grounded with the parent's key."""
        if self.forward:
            return Fact(self.child.key, self.property, parent)
        return Fact(parent, self.property, self.child.key)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a query, grounded in ``key``; ``named`` when the question names it."""

    key: str
    named: bool
    edges: tuple[Edge, ...] = ()

    def facts(self) -> Iterator[Fact]:
        """All facts of the tree, those nearest to this node first."""
        for edge in self.edges:
            yield edge.fact(self.key)
        for edge in self.edges:
            yield from edge.child.facts()

    def nodes(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for edge in self.edges:
            yield from edge.child.nodes()

    def holders(self, facts: Iterable[Fact]) -> set[str]:
        """Evaluate the node over facts: the keys that can replace it."""
        facts = tuple(facts)
        found: set[str] | None = {self.key} if self.named else None
        for edge in self.edges:
            below = edge.child.holders(facts)
            if edge.forward:
                hits = {
                    f.value for f in facts if f.property == edge.property and f.subject in below
                }
            else:
                hits = {
                    f.subject for f in facts if f.property == edge.property and f.value in below
                }
            found = hits if found is None else found & hits
        return found or set()


@dataclass(frozen=True, slots=True)
class Query:
    """A grounded query: one root for each answer (more than one only for a union).

    Attributes:
        roots: One tree for each answer.
        base: Shape before extension.
        extension: Rule that extended it.
        question: The question as a KGQA set words it; it stands while nothing is extended.
    """

    roots: tuple[Node, ...]
    base: Base
    extension: Extension | None = None
    question: str | None = None

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The distinct facts that support the answer."""
        return tuple(dict.fromkeys(fact for root in self.roots for fact in root.facts()))

    @property
    def seeds(self) -> tuple[str, ...]:
        """Keys of the entities that the question names."""
        named = (node.key for root in self.roots for node in root.nodes() if node.named)
        return tuple(dict.fromkeys(named))

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of all nodes."""
        return tuple(dict.fromkeys(node.key for root in self.roots for node in root.nodes()))

    @property
    def complexity(self) -> Complexity:
        """The reasoning that joins the facts (CAQA 3.3), by the form of the query."""
        if len(self.roots) > 1:
            return Complexity.UNION
        if len(self.roots[0].edges) > 1:
            return Complexity.INTERSECTION
        return Complexity.CONCATENATION if len(self.facts) > 1 else Complexity.SINGLE

    def with_answer(self, index: int, key: str) -> Query:
        """The same query with another answer in place of root ``index``."""
        roots = list(self.roots)
        roots[index] = replace(roots[index], key=key)
        return replace(self, roots=tuple(roots))


# Shares of the base shapes. CAQA takes them as the KGQA data has them, about half of the final
# rows single; these give about the shares of its Table 5 with more unions and intersections.
_BASES: tuple[tuple[Base, float], ...] = (("single", 0.40), ("path", 0.34), ("tree", 0.26))


def sample_query(graph: FactGraph, rng: random.Random) -> Query | None:
    """Draw a grounded query of one of the three shapes and extend it by the rules of Table 4.

    Single-triple queries get a union, an intersection at the subject, an intersection at the
    answer or nothing with equal probability; paths and trees one of the two intersections
    (CAQA 4.2).

    Returns:
        The query, or None where the drawn fact leads to none.
    """
    base = rng.choices([name for name, _ in _BASES], [share for _, share in _BASES])[0]
    fact = graph.draw(rng)
    edge, key = _edge(fact, rng)
    root = Node(key, named=False, edges=(edge,))
    if base == "path":
        step = _step(graph, root.edges[0].child.key, (fact.property,), root.key, rng)
        if step is None:
            return None
        middle = Node(edge.child.key, named=False, edges=(step,))
        root = replace(root, edges=(replace(edge, child=middle),))
    elif base == "tree":
        step = _step(graph, root.key, (fact.property,), edge.child.key, rng)
        if step is None:
            return None
        root = replace(root, edges=(edge, step))
    return extend(graph, Query((root,), base), rng)


def extend(graph: FactGraph, query: Query, rng: random.Random) -> Query | None:
    """Extend a grounded query by a rule of Table 4, or None where the graph offers no way."""
    if query.base == "single":
        rule = rng.choice(("union", "subject", "answer", None))
    else:
        rule = rng.choice(("subject", "answer"))
    if rule is None:
        return query
    if rule == "union":
        return _union(graph, query, rng)
    if rule == "answer":
        return _at_answer(graph, query, rng)
    return _at_subject(graph, query, rng)


def _edge(fact: Fact, rng: random.Random) -> tuple[Edge, str]:
    """A fact as an edge whose child the question names, and the key of the answer."""
    if rng.random() < 0.5:
        return Edge(fact.property, True, Node(fact.subject, named=True)), fact.value
    return Edge(fact.property, False, Node(fact.value, named=True)), fact.subject


def _step(
    graph: FactGraph, key: str, properties: tuple[str, ...], avoid: str, rng: random.Random
) -> Edge | None:
    """An edge from a named entity to ``key`` over a property not yet used."""
    for _ in range(6):
        forward = rng.random() < 0.5
        around = graph.into.get(key, ()) if forward else graph.out.get(key, ())
        if not around:
            continue
        fact = rng.choice(around)
        end = fact.subject if forward else fact.value
        if fact.property not in properties and end not in (avoid, key):
            return Edge(fact.property, forward, Node(end, named=True))
    return None


def _union(graph: FactGraph, query: Query, rng: random.Random) -> Query | None:
    """Join the answers for all entities of one name (Table 4).

    Deviation from the paper: where the graph has no second entity of that name, which leaves the
    paper's query as it is, a second answer for the same entity is joined, or the answer for
    another entity with the same property. Most graphs have too few namesakes for the union rows
    that the paper's table needs.
    """
    root = query.roots[0]
    edge = root.edges[0]
    child = edge.child.key
    more: list[Node] = []
    if edge.forward:
        for other in graph.homonyms.get(graph.labels[child].casefold(), ()):
            values = [f for f in graph.out.get(other, ()) if f.property == edge.property]
            if other != child and values:
                named = Node(other, named=True)
                more.append(Node(values[0].value, False, (replace(edge, child=named),)))
    if not more:
        around = graph.out.get(child, ()) if edge.forward else graph.into.get(child, ())
        second = [f for f in around if f.property == edge.property]
        keys = [f.value if edge.forward else f.subject for f in second]
        keys = [key for key in keys if key != root.key]
        if keys:
            more.append(Node(rng.choice(keys), False, (edge,)))
    for _ in range(0 if more else 6):
        fact = rng.choice(graph.by_property[edge.property])
        end = fact.subject if edge.forward else fact.value
        key = fact.value if edge.forward else fact.subject
        if (
            end != child
            and key not in (root.key, child)
            and graph.same_type(end, child)
            and graph.alike(end, child, edge.property)
        ):
            more.append(Node(key, False, (replace(edge, child=Node(end, named=True)),)))
            break
    if not more:
        return None
    if len({root.key, *(node.key for node in more)}) <= len(more):
        return None
    return replace(query, roots=(root, *more[:2]), extension="union")


def _at_subject(graph: FactGraph, query: Query, rng: random.Random) -> Query | None:
    """Add (e1, r, e0) at an entity that the question names."""
    root = query.roots[0]
    used = tuple(fact.property for fact in query.facts)
    index = rng.randrange(len(root.edges))
    edge = root.edges[index]
    deep = edge.child.edges[0] if edge.child.edges else None
    seed = deep.child if deep else edge.child
    above = edge.child.key if deep else root.key
    step = _step(graph, seed.key, used, above, rng)
    if step is None or step.child.key in query.keys:
        return None
    grown: Node = replace(seed, edges=(step,))
    child = replace(edge.child, edges=(replace(deep, child=grown),)) if deep else grown
    edges = (*root.edges[:index], replace(edge, child=child), *root.edges[index + 1 :])
    return replace(query, roots=(replace(root, edges=edges),), extension="subject")


def _at_answer(graph: FactGraph, query: Query, rng: random.Random) -> Query | None:
    """Add (e1, r, ?a) at the answer."""
    root = query.roots[0]
    used = tuple(fact.property for fact in query.facts)
    step = _step(graph, root.key, used, root.edges[0].child.key, rng)
    if step is None or step.child.key in query.keys:
        return None
    return replace(query, roots=(replace(root, edges=(*root.edges, step)),), extension="answer")
