"""Queries from KGQA sets: read to the shapes, found in the graph, counted where they cannot be."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.caqa.graph import Fact, FactGraph
from benchmarks.caqa.shapes import Base, Edge, Node, Query, extend
from benchmarks.caqa.sources import read_json_lines
from benchmarks.caqa.sparql_shapes import Pattern, Shape, UnfitQueryError, read_shape
from guardrail.core.errors import InputError

__all__ = ["KGQALog", "kgqa_entities", "kgqa_queries"]


class KGQALog:
    """Counts of a KGQA file.

    Attributes:
        read: Questions read.
        shapes: Those of each shape.
        skipped: Those that fit no shape, by reason.
        grounded: Those whose answer the graph holds, by shape.
    """

    def __init__(self) -> None:
        self.read = 0
        self.shapes: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.grounded: Counter[str] = Counter()


def kgqa_queries(
    path: Path, graph: FactGraph, *, seed: int = 0, log: KGQALog | None = None
) -> Iterator[Query]:
    """Yield the grounded queries of a KGQA file, extended by the rules of Table 4.

    Reads QALD (``query.sparql``), VQuAnDa (``query``), WikiWebQuestions (``sparql``) and Mintaka
    (``questionEntity`` and ``answer``, without a query: the facts that link them are looked up).

    Args:
        path: JSON lines, gzipped or not.
        graph: Where the queries are looked up: by id, and by label for DBpedia's names.
        seed: Seed of the choice among bindings and extensions.
        log: Receives the counts.

    Raises:
        InputError: A row has none of these forms.
    """
    log = log if log is not None else KGQALog()
    rng = random.Random(f"{seed}/kgqa")
    names = _Names(graph)
    for row in read_json_lines(path):
        log.read += 1
        question = _question(row)
        try:
            found = (
                _linked(row, graph, rng)
                if "questionEntity" in row
                else _grounded(read_shape(_sparql(row)), graph, names, rng)
            )
        except UnfitQueryError as error:
            log.skipped[str(error)] += 1
            continue
        base, root = found
        log.shapes[base] += 1
        if root is None:
            continue
        log.grounded[base] += 1
        query = Query((root,), _BASES[base], question=question)
        longer = extend(graph, query, rng)
        yield longer if longer is not None else query


def kgqa_entities(path: Path) -> tuple[str, ...]:
    """Ids of the entities that a KGQA file's queries name and of its answers, in order.

    What to fetch from a large graph before ``kgqa_queries`` looks its queries up.
    """
    found: dict[str, None] = {}
    for row in read_json_lines(path):
        if "questionEntity" in row:
            terms = [e["name"] for e in (*row["questionEntity"], *(row["answer"]["answer"] or ()))
                     if isinstance(e, dict)]  # fmt: skip
        else:
            try:
                terms = [t for p in read_shape(_sparql(row)).patterns for t in (p.subject, p.value)]
            except UnfitQueryError:
                continue
            terms += _ITEM.findall(str(row.get("results") or row.get("answers") or ""))
        found.update(dict.fromkeys(t for t in terms if isinstance(t, str) and _ITEM.fullmatch(t)))
    return tuple(found)


_ITEM = re.compile(r"\bQ\d+\b")
_BASES: dict[str, Base] = {"single": "single", "path": "path", "tree": "tree"}


def _question(row: Mapping[str, object]) -> str:
    asked = row.get("question") or row.get("utterance")
    if isinstance(asked, list):
        asked = next((q["string"] for q in asked if q.get("language") == "en"), None)
    if not isinstance(asked, str):
        raise InputError("a KGQA row needs 'question' or 'utterance'")
    return asked[:1].upper() + asked[1:]


def _sparql(row: Mapping[str, object]) -> str:
    query = row.get("sparql") or row.get("query")
    if isinstance(query, dict):
        query = query.get("sparql")
    if not isinstance(query, str):
        raise InputError("a KGQA row needs 'query', 'query.sparql', 'sparql' or 'questionEntity'")
    return query


class _Names:
    """Nodes and properties of a graph by the terms of a pattern."""

    def __init__(self, graph: FactGraph) -> None:
        self._graph = graph
        self._nodes: dict[str, list[str]] = {}
        for key, label in graph.labels.items():
            self._nodes.setdefault(label.casefold(), []).append(key)
        self._properties: dict[str, str] = {}
        for label, pid in graph.property_ids.items():
            self._properties[f"={label.casefold()}"] = label
            if pid:
                self._properties[pid] = label

    def nodes(self, term: str) -> list[str]:
        if term.startswith("="):
            return self._nodes.get(term[1:].casefold(), [])
        return [term] if term in self._graph.labels else []

    def property(self, term: str) -> str | None:
        return self._properties.get(term)


def _grounded(
    shape: Shape, graph: FactGraph, names: _Names, rng: random.Random
) -> tuple[str, Node | None]:
    """The shape with its variables bound, or None where the graph has no binding."""
    bindings: list[dict[str, str]] = [{}]
    pending = sorted(shape.patterns, key=lambda p: p.subject[0] == "?" and p.value[0] == "?")
    for pattern in pending:
        label = names.property(pattern.property)
        if label is None:
            return shape.base, None
        grown: list[dict[str, str]] = []
        for bound in bindings:
            for fact in _matches(graph, names, pattern.subject, label, pattern.value, bound):
                ends = {pattern.subject: fact.subject, pattern.value: fact.value}
                grown.append({**bound, **ends})
        bindings = grown
    if not bindings:
        return shape.base, None
    bound = rng.choice(bindings)
    labels = {p: names.property(p.property) or "" for p in shape.patterns}
    return shape.base, _tree(shape, shape.answer, bound, labels, ())


def _matches(
    graph: FactGraph, names: _Names, subject: str, label: str, value: str, bound: dict[str, str]
) -> list[Fact]:
    heads = [bound[subject]] if subject in bound else None
    tails = [bound[value]] if value in bound else None
    if heads is None and not subject.startswith("?"):
        heads = names.nodes(subject)
    if tails is None and not value.startswith("?"):
        tails = names.nodes(value)
    if heads is not None:
        facts = [fact for key in heads for fact in graph.out.get(key, ())]
    elif tails is not None:
        facts = [fact for key in tails for fact in graph.into.get(key, ())]
    else:
        facts = graph.by_property[label]
    return [f for f in facts if f.property == label and (tails is None or f.value in tails)]


def _tree(
    shape: Shape,
    term: str,
    bound: dict[str, str],
    labels: dict[Pattern, str],
    done: tuple[Pattern, ...],
) -> Node:
    edges = []
    for pattern in shape.patterns:
        if pattern in done or term not in (pattern.subject, pattern.value):
            continue
        forward = pattern.value == term
        other = pattern.subject if forward else pattern.value
        child = _tree(shape, other, bound, labels, (*done, pattern))
        edges.append(Edge(labels[pattern], forward, child))
    return Node(bound[term], not term.startswith("?"), tuple(edges))


def _linked(
    row: Mapping[str, Any], graph: FactGraph, rng: random.Random
) -> tuple[str, Node | None]:
    """Facts that link the entities of a question to its answer, directly or over one node."""
    if row.get("complexityType") not in ("generic", "multihop", "intersection", None):
        raise UnfitQueryError(str(row.get("complexityType")))
    seeds = [e["name"] for e in row["questionEntity"] if e.get("entityType") == "entity"]
    answers = row["answer"].get("answer") or ()
    keys = [a["name"] for a in answers if isinstance(a, dict) and isinstance(a.get("name"), str)]
    if not keys or not 1 <= len(seeds) <= 2:
        raise UnfitQueryError("no entity as answer" if seeds else "no entity in the question")
    key = rng.choice(keys)
    edges = [edge for seed in seeds for edge in _between(graph, seed, key)[:1]]
    if len(edges) == len(seeds):
        return ("single" if len(seeds) == 1 else "tree"), Node(key, False, tuple(edges))
    if len(seeds) == 1:
        for fact in (*graph.out.get(key, ()), *graph.into.get(key, ())):
            forward = fact.value == key
            middle = fact.subject if forward else fact.value
            below = _between(graph, seeds[0], middle)
            if below and middle != seeds[0]:
                child = Node(middle, False, (below[0],))
                return "path", Node(key, False, (Edge(fact.property, forward, child),))
    return ("single" if len(seeds) == 1 else "tree"), None


def _between(graph: FactGraph, seed: str, key: str) -> list[Edge]:
    child = Node(seed, named=True)
    return [
        *(Edge(f.property, True, child) for f in graph.out.get(seed, ()) if f.value == key),
        *(Edge(f.property, False, child) for f in graph.into.get(seed, ()) if f.subject == key),
    ]
