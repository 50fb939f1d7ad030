"""Look-ups by a part of a name, and by values that are written out rather than linked.

Surnames ("Gacy") and people whom a graph knows only as the value of a fact need more than the
protocol offers. The embedded store has it; other graphs do without, and the linker then finds less.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from threading import Lock

from pyoxigraph import Literal, NamedNode

from guardrail.core.types import Entity, Triple
from kg.labels import graph_read, names_in
from kg.mentions import fold
from kg.nodes import ranked
from kg.store import OxigraphGraph
from kg.terms import is_blank


class NameParts:
    """Look-ups in the embedded store as it is at the first, which builds the index of words."""

    def __init__(self, graph: OxigraphGraph) -> None:
        self._graph = graph
        self._edges: dict[str, list[str]] | None = None
        self._lock = Lock()

    def named(self, parts: Sequence[str]) -> list[list[Entity]]:
        """For each of n word sequences, the entities with a name that begins or ends with it.

        Case and diacritics do not count; most prominent first. Names whose words leave out
        the middle count as well.
        """
        edges = self._index()
        found: list[list[Entity]] = []
        for part in parts:
            folded = fold(part)
            words = folded.split()
            ends = words[:1] + words[-1:]
            ids = dict.fromkeys(id_ for word in ends for id_ in edges.get(word, ()))
            if len(ids) > 2_000:  # so common a name is ambiguous
                ids = {}
            found.append(
                ranked(
                    entity
                    for entity in self._graph.entities(list(ids))
                    if entity is not None
                    and any(
                        f" {name}".endswith(f" {folded}")
                        or f"{name} ".startswith(f"{folded} ")
                        or _leaves_out_middle(folded, name)
                        for name in map(fold, (entity.label, *entity.aliases))
                    )
                )
            )
        return found

    def facts_with(self, values: Sequence[str]) -> list[list[Triple]]:
        """For each of n texts, the facts whose value is that text and not a node."""
        subjects = [self._subjects(value) for value in values]
        ids = list(dict.fromkeys(id_ for group in subjects for id_ in group))
        facts = {
            id_: subgraph.triples
            for id_, subgraph in zip(ids, self._graph.subgraphs(ids), strict=True)
        }
        return [
            [
                triple
                for id_ in group
                for triple in facts[id_]
                if triple.value == value and triple.value_id is None
            ]
            for value, group in zip(values, subjects, strict=True)
        ]

    def _subjects(self, value: str) -> list[str]:
        if not value or re.search("[\ud800-\udfff]", value):  # half a character is no literal
            return []
        graph = self._graph
        literals = [Literal(value)]
        literals += [Literal(value, language=tag) for tag in graph.profile.tags]
        ids: dict[str, None] = {}
        read = graph_read(graph.store)
        for literal in literals:
            quads = graph.store.quads_for_pattern(None, None, literal, read)
            for quad in islice(quads, 50):
                subject = quad.subject
                if not isinstance(subject, NamedNode) or is_blank(subject.value):
                    continue
                if graph.profile.is_fact(quad.predicate.value):
                    ids[graph.profile.short(subject.value)] = None
        return list(ids)

    def _index(self) -> dict[str, list[str]]:
        """Ids by the first and last word of their names; empty for more than 300,000 names."""
        with self._lock:
            if self._edges is None:
                profile, small = self._graph.profile, len(self._graph.labels) <= 300_000
                edges: dict[str, list[str]] = defaultdict(list)
                for iri, name in names_in(self._graph.store, profile) if small else ():
                    words = fold(name).split()
                    for word in {*words[:1], *words[-1:]}:
                        edges[word].append(profile.short(iri))
                self._edges = dict(edges)
            return self._edges


def without_middle(part: str, bearers: Sequence[Entity]) -> bool:
    """True if words (*Percy Shelley*) leave out the middle of the name of their only bearer."""
    return len(bearers) == 1 and any(
        _leaves_out_middle(fold(part), fold(name))
        for name in (bearers[0].label, *bearers[0].aliases)
    )


def _leaves_out_middle(part: str, name: str) -> bool:
    """True for the first and last of a longer name's words, those between in order; all folded."""
    words, whole = part.split(), name.split()
    if not 2 <= len(words) < len(whole) or (words[0], words[-1]) != (whole[0], whole[-1]):
        return False
    rest = iter(whole)
    return all(word in rest for word in words)
