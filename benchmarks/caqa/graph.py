"""The graph that CAQA rows are built from: typed triples in memory, indexed three ways."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

from benchmarks.verbalise import phrasing
from guardrail.core.types import Triple

__all__ = ["Fact", "FactGraph", "node_of"]

_KINDS = {
    name: kind
    for kind, names in {
        "person": "person artist",
        "place": "place country continent",
        "water": "water river reservoir basin",
        "work": "work film song album piece book publication programme",
        "organisation": "organisation company group team party school broadcaster",
    }.items()
    for name in names.split()
}
"""Nouns of the verbaliser's data that may stand for one another, by their kind."""
_LOOSE = frozenset(
    {
        "archives at", "award received", "ethnic group", "field of work", "genre", "league",
        "headquarters location", "member of", "movement", "named after", "nominated for",
        "owned by", "participated in", "performer", "publication date", "record label", "religion",
        "significant event", "sport",
    }
)  # fmt: skip
"""Properties that apply to persons and to other things, whatever their noun suggests."""


class Fact(NamedTuple):
    """A triple by node keys: ids where the graph has them, labels where it has not."""

    subject: str
    property: str
    value: str


def node_of(label: str, known_id: str | None) -> str:
    """The key of a node: its id, else its label behind a mark that no id carries."""
    return known_id if known_id else f"={label}"


class FactGraph:
    """Facts with their labels and types, indexed by subject, by value and by property.

    Args:
        triples: The facts; a fact seen twice counts once. Any iterable will do, it is read once.
        types: Ids of the classes of a node, by node key, where they are known; a replacement for
            an answer must share one of them.
    """

    def __init__(
        self, triples: Iterable[Triple], types: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        self.types = dict(types or {})
        self.labels: dict[str, str] = {}
        self.property_ids: dict[str, str | None] = {}
        self.out: dict[str, list[Fact]] = {}
        self.into: dict[str, list[Fact]] = {}
        self.by_property: dict[str, list[Fact]] = {}
        self.facts: set[Fact] = set()
        for triple in triples:
            self._add(triple)
        self.homonyms: dict[str, list[str]] = {}
        for node in self.out:
            self.homonyms.setdefault(self.labels[node].casefold(), []).append(node)
        self._domains = {p: {f.subject for f in fs} for p, fs in self.by_property.items()}
        self._ranges = {p: {f.value for f in fs} for p, fs in self.by_property.items()}
        self._kinds: dict[str, frozenset[str]] = {}
        self._properties = sorted(self.by_property)
        # The square root keeps rare properties in sight without letting them rule.
        self._weights = list(accumulate(len(self.by_property[p]) ** 0.5 for p in self._properties))

    def _add(self, triple: Triple) -> None:
        subject = node_of(triple.subject, triple.subject_id)
        value = node_of(triple.value, triple.value_id)
        fact = Fact(subject, triple.property, value)
        if fact in self.facts or subject == value:
            return
        self.facts.add(fact)
        self.labels.setdefault(subject, triple.subject)
        self.labels.setdefault(value, triple.value)
        self.property_ids.setdefault(triple.property, triple.property_id)
        self.out.setdefault(subject, []).append(fact)
        self.into.setdefault(value, []).append(fact)
        self.by_property.setdefault(triple.property, []).append(fact)

    def __len__(self) -> int:
        return len(self.facts)

    def triple(self, fact: Fact) -> Triple:
        """The fact with labels and ids."""
        return Triple(
            subject=self.labels[fact.subject],
            property=fact.property,
            value=self.labels[fact.value],
            subject_id=None if fact.subject.startswith("=") else fact.subject,
            property_id=self.property_ids[fact.property],
            value_id=None if fact.value.startswith("=") else fact.value,
        )

    def draw(self, rng: random.Random) -> Fact:
        """A random fact; properties are drawn by the square root of their frequency."""
        point = rng.random() * self._weights[-1]
        name = self._properties[bisect_left(self._weights, point)]
        return rng.choice(self.by_property[name])

    def fits(self, key: str, label: str, *, forward: bool) -> bool:
        """Whether a node is the value (``forward``) or subject of some fact of the property."""
        return key in (self._ranges if forward else self._domains).get(label, ())

    def alike(self, text: str, other: str, label: str) -> bool:
        """True if two nodes also share another property, or one of them has no other."""
        first, second = (
            {f.property for f in self.out.get(key, ())} - {label} for key in (text, other)
        )
        return not first or not second or not first.isdisjoint(second)

    def same_type(self, text: str, other: str) -> bool:
        """Whether two nodes share a class; True where the classes of either are unknown."""
        first, second = self.types.get(text), self.types.get(other)
        return not first or not second or not set(first).isdisjoint(second)

    def kinds(self, key: str) -> frozenset[str]:
        """What a node is (*person*, *place*, *work*), by its facts; empty if unclear."""
        if key not in self._kinds:
            kinds = [kind_of(f.property, forward=False) for f in self.out.get(key, ())]
            kinds += [kind_of(f.property, forward=True) for f in self.into.get(key, ())]
            self._kinds[key] = frozenset(kind for kind in kinds if kind)
        return self._kinds[key]

    def suits(self, key: str, label: str, *, forward: bool) -> bool:
        """True if a property applies to nodes of this kind.

        Args:
            key: The node.
            label: The property.
            forward: The node would be the value; otherwise the subject.
        """
        kind = kind_of(label, forward=forward)
        return kind is not None and kind in self.kinds(key)

    def same_kind(self, text: str, other: str) -> bool:
        """Whether two nodes share a kind; True where that of either is open."""
        first, second = self.kinds(text), self.kinds(other)
        return not first or not second or not first.isdisjoint(second)


def kind_of(label: str, *, forward: bool) -> str | None:
    """The kind of the subjects of a property, or (``forward``) of its values; None where open."""
    forms = phrasing(label)
    kind = forms.value_kind if forward else forms.subject_kind
    if kind in ("thing", "namesake", "owner", "employer", "topic") or (
        not forward and label in _LOOSE
    ):
        return None
    return _KINDS.get(kind, kind)
