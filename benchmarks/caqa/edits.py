"""The four edits of a grounded query, and the facts around it (CAQA 4.3).

A row must not give its category away by its parts. Supportive and contradictory evidence of one
query therefore hold the same facts with answer and rival exchanged, so that only *who has what*
tells them apart; a deleted fact is replaced by an echo with its property and its value but
another subject; irrelevant evidence is a subgraph of the same structure that shares the entity
that the question names, over other properties; and about as many facts about the named entities
surround all four. Echoes and surroundings go beyond the paper: without them word overlap alone
tells 54 % of the categories.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.caqa.graph import Fact, FactGraph
from benchmarks.caqa.properties import NEAR, WIDE
from benchmarks.caqa.shapes import Edge, Node, Query
from guardrail.core.types import Category

__all__ = ["Draft", "Plan", "consistent", "edit", "plan"]

_TRIES = 8
_RIVAL_TRIES = 30
_HUB = 40
"""A value with more facts than this does not single anything out in a question of its own."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A query with all that its four rows share.

    Attributes:
        query: The query as claimed by the answer.
        index: Which root the rival competes with.
        rival: Key of the other answer of the same type.
        decoy: A fact parallel to an edge of that root, about another entity.
        slot: Which edge of the root the decoy is parallel to.
        around: Facts about the entities of the query over other properties.
        echoes: For each fact of the query a fact with its property, and where that can be its
            value, about another entity.
        similar: A subgraph of the same structure with the same named entity, over other
            properties and entities; empty where the graph has none, and then the facts around
            the query are the irrelevant evidence.
        extra: Further facts, as many as the row wants beyond the others.
        spares: Replacements of deleted facts where echoes are not wanted.
        edited: Whether the answer differs from the graph's.
    """

    query: Query
    index: int
    rival: str
    decoy: Fact
    slot: int
    around: tuple[Fact, ...]
    echoes: dict[Fact, Fact]
    similar: tuple[Fact, ...]
    extra: tuple[Fact, ...]
    spares: tuple[Fact, ...]
    edited: bool


@dataclass(frozen=True, slots=True)
class Draft:
    """The facts of one row: the edited subgraph, the facts around it and what was kept."""

    category: Category
    core: tuple[Fact, ...]
    noise: tuple[Fact, ...]
    kept: frozenset[Fact]


def plan(graph: FactGraph, query: Query, rng: random.Random, *, edited: float) -> Plan | None:
    """Find rival, decoy, echoes and surroundings of a query.

    Args:
        graph: Where to look.
        query: As sampled, true in the graph.
        rng: Source of all choices.
        edited: Share of queries whose answer and rival change places, so that the truth of a
            statement in the world says nothing about its category.

    Returns:
        None where the graph lacks what one of the four rows would need.
    """
    if _vague(graph, query) or any(fact.property in WIDE for fact in query.facts):
        return None
    index = rng.randrange(len(query.roots))
    root = query.roots[index]
    slot = rng.randrange(len(root.edges))
    found = _rival(graph, query, root, slot, rng)
    if found is None:
        return None
    rival, decoy = found
    swapped = rng.random() < edited
    if swapped:
        edge = root.edges[slot]
        query, decoy, rival = (
            query.with_answer(index, rival),
            _put(decoy, root.key, edge.forward),
            root.key,
        )
    used = _Used(query, rival)
    used.take(decoy)
    around = []
    for root_ in query.roots:
        for node in root_.nodes():
            if node.named or any(not edge.forward for edge in node.edges):
                fact = _about(graph, node.key, used, rng)
                if fact is None:
                    if node.named:
                        return None
                    continue
                around.append(used.take(fact))
    echoes: dict[Fact, Fact] = {}
    for parent, edge in _edges(query):
        echo = _echo(graph, parent, edge, used, rng)
        if echo is None:
            return None
        echoes[edge.fact(parent)] = used.take(echo)
    similar = _similar(graph, query, used, rng)
    further: list[Fact] = []
    wanted = rng.choice((0, 0, 1, 1, 2))
    for _ in range(wanted + len(query.facts)):
        fact = _about(graph, rng.choice(query.keys), used, rng)
        if fact is not None:
            further.append(used.take(fact))
    return Plan(
        query=query,
        index=index,
        rival=rival,
        decoy=decoy,
        slot=slot,
        around=tuple(around),
        echoes=echoes,
        similar=similar,
        extra=tuple(further[:wanted]),
        spares=tuple(further[wanted:]),
        edited=swapped,
    )


def edit(
    plan: Plan, category: Category, rng: random.Random, *, linked: bool, decoys: bool
) -> Draft | None:
    """Make the facts of one row.

    Args:
        plan: What the rows of the query share.
        category: The category to make.
        rng: Source of all choices.
        linked: Whether the answer names the entities between the seed and the answer; where it
            does not, the hop that names one must stay, or nothing would tell a partial row from
            an irrelevant one.
        decoys: True if the evidence contains decoy and echoes; False leaves the surroundings.

    Returns:
        None where the category is not defined for the query (partial of a single fact).
    """
    query, claimed = plan.query, plan.query.facts
    root = query.roots[plan.index]
    forward = root.edges[plan.slot].forward
    decoy = plan.decoy
    noise = [*plan.around, *plan.extra]
    core: Sequence[Fact] = claimed
    if category is Category.CONTRADICTORY:
        core = query.with_answer(plan.index, plan.rival).facts
        decoy = _put(decoy, root.key, forward)
    elif category is Category.PARTIALLY_SUPPORTIVE:
        dropped = _deletion(query, rng, linked=linked)
        if dropped is None:
            return None
        core = tuple(fact for fact in claimed if fact not in dropped)
    elif category is Category.IRRELEVANT:
        core = plan.similar or plan.around
        noise = list(plan.extra)
    kept = frozenset(core) & frozenset(claimed)
    missing = [] if category is Category.CONTRADICTORY else [f for f in claimed if f not in kept]
    if decoys:
        noise += [decoy, *(plan.echoes[fact] for fact in missing)]
    else:
        noise += plan.spares[: len(missing)]
    return Draft(category, tuple(core), tuple(dict.fromkeys(noise)), kept)


def consistent(plan: Plan, draft: Draft) -> bool:
    """Check a draft by evaluating its query over its evidence.

    Supportive evidence yields every claimed answer; contradictory evidence yields another one in
    the place of one of them; partial evidence holds some of the facts and yields neither; and
    irrelevant evidence holds none and yields nothing.
    """
    facts = (*draft.core, *draft.noise)
    found = [root.holders(facts) for root in plan.query.roots]
    claimed = {root.key for root in plan.query.roots}
    held = set(plan.query.facts) & set(facts)
    pairs = list(zip(plan.query.roots, found, strict=True))
    if draft.category is Category.SUPPORTIVE:
        return all(hits and root.key in hits and hits <= claimed for root, hits in pairs)
    if draft.category is Category.CONTRADICTORY:
        root, hits = pairs[plan.index]
        return plan.rival in hits and root.key not in hits
    if any(hits - claimed for hits in found):
        return False
    if draft.category is Category.PARTIALLY_SUPPORTIVE:
        return bool(held) and not all(root.key in hits for root, hits in pairs)
    return not held and not any(found)


# --- parts -------------------------------------------------------------------------------


class _Used:
    """What a fact around the query must not do: repeat, settle or contest what is claimed."""

    def __init__(self, query: Query, rival: str) -> None:
        asked = {fact.property for fact in query.facts}
        self.properties = asked.union(*(near for near in NEAR if not near.isdisjoint(asked)))
        self.keys = {*query.keys, rival}
        self.facts: set[Fact] = set()
        self.heads: set[tuple[str, str]] = set()
        self.tails: set[tuple[str, str]] = set()
        for parent, edge in _edges(query):
            fact = edge.fact(parent)
            self.heads.add((fact.subject, fact.property))
            if not edge.forward:
                self.tails.add((fact.property, fact.value))

    def allows(self, fact: Fact) -> bool:
        return (
            fact not in self.facts
            and fact.subject != fact.value
            and (fact.subject, fact.property) not in self.heads
            and (fact.property, fact.value) not in self.tails
        )

    def take(self, fact: Fact) -> Fact:
        self.facts.add(fact)
        self.heads.add((fact.subject, fact.property))
        return fact


def _edges(query: Query) -> list[tuple[str, Edge]]:
    """All edges with the key of their parent, each fact once."""
    seen: dict[Fact, tuple[str, Edge]] = {}
    for root in query.roots:
        for node in root.nodes():
            for edge in node.edges:
                seen.setdefault(edge.fact(node.key), (node.key, edge))
    return list(seen.values())


def _vague(graph: FactGraph, query: Query) -> bool:
    """Whether the question (*What is male?*) fits far too much to be asked."""
    for root in query.roots:
        if len(root.edges) == 1 and not root.edges[0].forward:
            child = root.edges[0].child
            if child.named and not child.edges and len(graph.into.get(child.key, ())) > _HUB:
                return True
    return False


def _put(fact: Fact, key: str, forward: bool) -> Fact:
    """The fact with ``key`` on the side where an edge has its answer."""
    return fact._replace(value=key) if forward else fact._replace(subject=key)


def _rival(
    graph: FactGraph, query: Query, root: Node, slot: int, rng: random.Random
) -> tuple[str, Fact] | None:
    """Another answer of the same type, with the fact it was found in."""
    edge = root.edges[slot]
    name = graph.labels[root.key].casefold()
    for _ in range(_RIVAL_TRIES):
        fact = rng.choice(graph.by_property[edge.property])
        key, end = (fact.value, fact.subject) if edge.forward else (fact.subject, fact.value)
        other = graph.labels[key].casefold()
        if (
            key not in query.keys
            and end not in query.keys
            and other not in name
            and name not in other
            and graph.same_type(key, root.key)
            and graph.same_kind(key, root.key)
            and all(graph.fits(key, step.property, forward=step.forward) for step in root.edges)
            and not any(step.fact(key) in graph.facts for step in root.edges)
            and _put(fact, root.key, edge.forward) not in graph.facts
        ):
            return key, fact
    return None


def _about(graph: FactGraph, key: str, used: _Used, rng: random.Random) -> Fact | None:
    """A fact about an entity over a property the query does not ask about.

    If the graph has none, one is borrowed: a fact of an entity of the same kind, stated about
    this one.
    """
    out, into = graph.out.get(key, []), graph.into.get(key, [])
    for _ in range(_TRIES if out or into else 0):
        place = rng.randrange(len(out) + len(into))
        fact = out[place] if place < len(out) else into[place - len(out)]
        end = fact.value if fact.subject == key else fact.subject
        if fact.property not in used.properties and end not in used.keys and used.allows(fact):
            return fact
    for _ in range(_TRIES if out or into else 0):
        borrowed = _borrowed(graph, key, rng)
        if (
            borrowed is not None
            and borrowed.property not in used.properties
            and used.allows(borrowed)
            and not ({borrowed.subject, borrowed.value} - {key}) & used.keys
        ):
            return borrowed
    return None


def _borrowed(graph: FactGraph, key: str, rng: random.Random) -> Fact | None:
    """A fact of a similar entity, stated about this one.

    Like is who has a fact with the same property and value, else one with the same property;
    and the borrowed property must apply to entities of this one's kind.
    """
    own = graph.out.get(key, []) + graph.into.get(key, [])
    fact = rng.choice(own)
    if fact.subject == key:
        alike = graph.into[fact.value]
        peers = [rng.choice(alike), rng.choice(graph.by_property[fact.property])]
        for peer in peers:
            if peer.property == fact.property and peer.subject != key:
                other = rng.choice(graph.out[peer.subject])
                if other.property != fact.property and _like(graph, key, other, forward=False):
                    return other._replace(subject=key)
        return None
    peer = rng.choice(graph.by_property[fact.property])
    other = rng.choice(graph.into[peer.value])
    if other.property != fact.property and _like(graph, key, other, forward=True):
        return other._replace(value=key)
    return None


def _like(graph: FactGraph, key: str, fact: Fact, *, forward: bool) -> bool:
    """Whether a node may take the value's place of a fact (``forward``), or the subject's."""
    peer = fact.value if forward else fact.subject
    return graph.suits(key, fact.property, forward=forward) and graph.same_type(key, peer)


def _echo(
    graph: FactGraph, parent: str, edge: Edge, used: _Used, rng: random.Random
) -> Fact | None:
    """A fact with the property of an edge about an entity that the query does not name.

    Where its value is exchanged, one of the same kind is looked for first.
    """
    found = None
    for _ in range(_TRIES):
        fact = rng.choice(graph.by_property[edge.property])
        if fact.subject in used.keys:
            continue
        alike = True
        if edge.forward:
            alike = graph.same_kind(fact.value, parent)
            fact = fact._replace(value=parent)
        elif fact.value in used.keys:
            continue
        if used.allows(fact):
            found = fact
            if alike:
                break
    return found


def _similar(graph: FactGraph, query: Query, used: _Used, rng: random.Random) -> tuple[Fact, ...]:
    """A subgraph of the query's structure that shares the named entity and nothing else.

    Each edge is walked again from the named entity, in the same direction, to another entity over
    a property that the query does not use. Empty where some edge has no such fact.
    """
    for _ in range(_TRIES):
        found: list[Fact] = []
        for root in query.roots:
            walked = _walked(graph, root, used, rng)
            if walked is None:
                break
            found += walked
        else:
            facts = tuple(dict.fromkeys(found))
            if len(facts) == len(query.facts) and all(map(used.allows, facts)):
                return tuple(map(used.take, facts))
    return ()


def _walked(graph: FactGraph, root: Node, used: _Used, rng: random.Random) -> list[Fact] | None:
    """A walk over edges like those of a tree: up from its first named entity, then down."""
    chain: list[Edge] = []
    node = root
    while not node.named:
        if not node.edges:
            return None
        chain.append(node.edges[0])
        node = node.edges[0].child
    found: list[Fact] = []

    def step(key: str, *, out: bool) -> str | None:
        around = graph.out.get(key, ()) if out else graph.into.get(key, ())
        fits = [
            fact
            for fact in around
            if fact.property not in used.properties
            and (fact.value if out else fact.subject) not in used.keys
        ]
        if not fits:
            return None
        fact = rng.choice(fits)
        found.append(fact)
        return fact.value if out else fact.subject

    def down(parent: Node, key: str, edges: Sequence[Edge]) -> bool:
        for edge in edges:
            end = step(key, out=not edge.forward)
            if end is None or not down(edge.child, end, edge.child.edges):
                return False
        return True

    if not down(node, node.key, node.edges):
        return None
    key = node.key
    parents = [root, *(edge.child for edge in chain[:-1])]
    for parent, edge in zip(reversed(parents), reversed(chain), strict=True):
        above = step(key, out=edge.forward)
        if above is None or not down(parent, above, parent.edges[1:]):
            return None
        key = above
    return found


def _deletion(query: Query, rng: random.Random, *, linked: bool) -> set[Fact] | None:
    """What to delete for a partial row: a triple of a path, a branch of a tree or of a union."""
    if len(query.roots) > 1:
        gone = rng.choice(query.roots)
        kept = {fact for root in query.roots if root is not gone for fact in root.facts()}
        return set(gone.facts()) - kept or None
    root = query.roots[0]
    if len(root.edges) > 1:
        edge = rng.choice(root.edges)
        return {edge.fact(root.key), *edge.child.facts()}
    facts = query.facts
    if len(facts) < 2:
        return None
    hidden = not linked and not root.edges[0].child.named
    return {facts[0] if hidden else rng.choice(facts)}
