"""Question, answer and evidence of a row in English, by the template verbaliser (CAQA 4.4)."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from benchmarks.caqa.graph import Fact, FactGraph
from benchmarks.caqa.shapes import Edge, Node, Query
from benchmarks.verbalise import (
    DATE_FORMS,
    finish,
    inversions,
    phrasing,
    predicate,
    questions,
    sentence,
    surface,
)
from guardrail.core.types import Triple, linearise

__all__ = ["Wording"]

_SHORT_SHARE = 0.08
_MANY = 1 << 16


class Wording:
    """Writes one row; every choice of words comes from ``rng``.

    Args:
        graph: Gives labels.
        rng: Source of all choices.
    """

    def __init__(self, graph: FactGraph, rng: random.Random) -> None:
        self._graph = graph
        self._rng = rng

    # --- question ------------------------------------------------------------------------

    def question(self, query: Query) -> str:
        """Ask for the answers of the query; in a KGQA set's own words where nothing was added."""
        if query.question and query.extension is None:
            return query.question
        root = query.roots[0]
        if len(query.roots) > 1:
            return self._union_question(query)
        if len(root.edges) == 1 and root.edges[0].forward:
            edge = root.edges[0]
            return finish(self._pick(questions(edge.property, self._name(edge.child))))
        asked = self._asked(root)
        parts = " and ".join(self._about(root, edge) for edge in root.edges)
        return finish(f"{asked} {parts}?")

    def _union_question(self, query: Query) -> str:
        edges = [root.edges[0] for root in query.roots]
        names = list(dict.fromkeys(self._name(edge.child) for edge in edges))
        forms = phrasing(edges[0].property)
        what = "Who" if forms.value_kind == "person" else "What"
        if edges[0].forward and len(names) == 1:
            asked = self._pick(questions(edges[0].property, names[0]))
            return finish(f"{asked} Name {len(edges)}.")
        if edges[0].forward:
            if self._rng.random() < 0.4:
                return f"{what} is the {forms.noun} of {' and of '.join(names)}?"
            asked = self._pick(questions(edges[0].property, _and(names)))
            return finish(_plural(asked, _and(names)))
        who = "Who" if forms.subject_kind == "person" else "What"
        if len(names) == 1:
            verb = self._predicate(edges[0].property, names[0])
            return finish(self._pick((f"{who} {verb}? Name {len(edges)}.", f"{who} {verb}?")))
        verb = self._predicate(edges[0].property, " or ".join(names))
        return f"{who} {verb}?"

    def _asked(self, node: Node) -> str:
        kind = self._kind(node)
        if kind == "person":
            return self._pick(("Who", "Which person"))
        if kind in ("thing", "date", "number"):
            return "What"
        return f"Which {kind}"

    # --- answer --------------------------------------------------------------------------

    def answer(self, query: Query, *, linked: bool) -> str:
        """State the answers; ``linked`` names the entities between seeds and answer as well."""
        if self._rng.random() < _SHORT_SHARE and not (linked and _hidden(query)):
            return finish(_and([self._value(root.key) for root in query.roots]))
        if len(query.roots) > 1:
            return _joined(
                [self._stated(root.key, edge) for root in query.roots for edge in root.edges]
            )
        root = query.roots[0]
        if linked:
            return self._fact_by_fact(query)
        if len(root.edges) == 1:
            return finish(self._stated(root.key, root.edges[0]))
        parts = " and ".join(self._about(root, edge) for edge in root.edges)
        name = self._value(root.key)
        kind = self._kind(root)
        that = "who" if kind == "person" else "that"
        return finish(
            self._pick(
                (f"{name} {parts}", f"The {kind} {that} {parts} is {name}", f"{name} {parts}")
            )
        )

    def _fact_by_fact(self, query: Query) -> str:
        stated = [self._sentence(fact) for fact in reversed(query.facts)]
        if self._rng.random() < 0.5:
            return " ".join(stated)
        clauses = [text.removesuffix(".") for text in stated]
        for place, fact in enumerate(reversed(query.facts)):
            clauses[place] = self._uncapitalised(clauses[place], fact)
        return _joined(clauses)

    def _uncapitalised(self, clause: str, fact: Fact) -> str:
        """The clause with the capital of a sentence's start undone, where a name has none."""
        for key in (fact.subject, fact.value):
            name = self._graph.labels[key]
            if clause.startswith(finish(name).removesuffix(".")):
                return f"{name}{clause[len(name) :]}"
        return clause

    def _stated(self, key: str, edge: Edge) -> str:
        """An edge as a clause; the entity below it by name or description."""
        below = self._name(edge.child)
        value = self._value(key)
        if edge.forward:
            forms = (
                *(f"{below} {self._predicate(edge.property, value)}" for _ in range(2)),
                *inversions(edge.property, below, value),
            )
        else:
            forms = (f"{value} {self._predicate(edge.property, below)}",) * 2 + inversions(
                edge.property, value, below
            )
        return self._pick(forms)

    # --- parts of a sentence -------------------------------------------------------------

    def _about(self, node: Node, edge: Edge) -> str:
        """What an edge says of its upper node: *was born in Rome*, *is the father of Ada*."""
        if edge.forward:
            return f"is the {phrasing(edge.property).noun} of {self._name(edge.child)}"
        return self._predicate(edge.property, self._name(edge.child))

    def _name(self, node: Node) -> str:
        """A node as the question refers to it: by its name or a description."""
        if not node.edges:
            return self._value(node.key)
        edge = node.edges[0]
        below = self._name(edge.child)
        kind = self._kind(node)
        that = "who" if kind == "person" else "which"
        if node.named:
            if edge.forward:
                return f"{self._value(node.key)}, the {phrasing(edge.property).noun} of {below},"
            return f"{self._value(node.key)}, {that} {self._predicate(edge.property, below)},"
        if edge.forward:
            return f"the {phrasing(edge.property).noun} of {below}"
        that = "who" if kind == "person" else "that"
        return f"the {kind} {that} {self._predicate(edge.property, below)}"

    def _kind(self, node: Node) -> str:
        for edge in node.edges:
            forms = phrasing(edge.property)
            kind = forms.value_kind if edge.forward else forms.subject_kind
            if kind != "thing":
                return kind
        return "thing"

    def _predicate(self, label: str, value: str) -> str:
        return predicate(label, value, self._rng.randrange(_MANY))

    def _value(self, key: str) -> str:
        return surface(self._graph.labels[key], self._rng.randrange(DATE_FORMS))

    def _sentence(self, fact: Fact) -> str:
        return sentence(self._graph.triple(fact), self._rng.randrange(_MANY))

    def _pick(self, choices: Sequence[str]) -> str:
        return self._rng.choice(choices)

    # --- evidence ------------------------------------------------------------------------

    def evidence(self, facts: Sequence[Fact], *, flat: bool) -> tuple[str, ...]:
        """Write facts as one to three passages, in sentences or (``flat``) in flat form."""
        groups: dict[str, list[Fact]] = {}
        for fact in self._rng.sample(facts, len(facts)):
            groups.setdefault(fact.subject, []).append(fact)
        ordered = list(groups.values())
        count = min(len(ordered), self._rng.choice((1, 1, 2, 3)))
        passages: list[list[list[Fact]]] = [[] for _ in range(count)]
        for place, group in enumerate(ordered):
            passages[place * count // len(ordered)].append(group)
        return tuple(self._passage(passage, flat) for passage in passages)

    def _passage(self, groups: list[list[Fact]], flat: bool) -> str:
        if flat:
            return linearise(self._plain(fact) for group in groups for fact in group)
        return " ".join(part for group in groups for part in self._group(group))

    def _group(self, facts: list[Fact]) -> list[str]:
        """Facts of one subject: sentences, two of them joined now and then."""
        written: list[str] = []
        rest = list(facts)
        while rest:
            fact = rest.pop()
            if rest and self._rng.random() < 0.5:
                other = rest.pop()
                first, second = (
                    self._predicate(f.property, self._value(f.value)) for f in (fact, other)
                )
                written.append(finish(f"{self._value(fact.subject)} {first} and {second}"))
            else:
                written.append(self._sentence(fact))
        return written

    def _plain(self, fact: Fact) -> Triple:
        return self._graph.triple(fact)


def _hidden(query: Query) -> bool:
    return any(not node.named for root in query.roots for e in root.edges for node in (e.child,))


def _joined(clauses: Sequence[str]) -> str:
    """Clauses as one sentence; an article that opened a clause loses its capital."""
    lowered = [
        clauses[0],
        *(re.sub(r"^(The|It|An?) ", lambda m: m[0].lower(), c) for c in clauses[1:]),
    ]
    return finish(", and ".join(clause.removesuffix(",") for clause in lowered))


_SINGULAR = {"is": "are", "was": "were", "does": "do", "has": "have"}


def _plural(question: str, names: str) -> str:
    """The question with its verb in the plural: *Where are Ada and Ben buried?*."""
    before, found, after = question.partition(f" {names}")
    head, _, verb = before.rpartition(" ")
    if not found or verb not in _SINGULAR:
        return question
    return f"{head} {_SINGULAR[verb]}{found}{after}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
