"""Values with a structure of their own: blank nodes, RDF lists, and Wikidata's statements.

``ex:Fjell ex:weight [ rdf:value 21.5 ; qudt:unit "kg" ]`` reads *weight: 21.5 kg*. A blank node
with a name has its own facts in parentheses, since they are not those of the node it belongs to;
one without a name or value gives a fact for each of its own: ``[ schema:price 2490 ]`` as an offer
reads *offers price: 2490*. The items of a list or container are values of the property. A statement
of Wikidata reads with its qualifiers: *position held: mayor (start time: 2017)*.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeGuard

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from kg.facts import Row
from kg.profiles import Profile
from kg.terms import XSD, is_blank, render_literal

__all__ = ["StructuredValues"]

Node = NamedNode | BlankNode
Quads = Callable[[Node], Iterator[Quad]]
Label = Callable[[str], str]
FactLabel = Callable[[str], str | None]

MAX_DEPTH: Final = 4
"""Blank nodes within each other that are read."""
MAX_PARTS: Final = 500
"""Facts of one blank node and items of one list that are read."""
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ITEM: Final = re.compile(re.escape(_RDF) + r"_([0-9]{1,9})")
_TEXT: Final = f"{XSD}string"
_DEPRECATED: Final = "http://wikiba.se/ontology#DeprecatedRank"


class StructuredValues:
    """Reads the facts that a structured value states of the node it belongs to.

    Args:
        quads: The quads of a node.
        profile: The graph's vocabulary.
        label: The name of a node.
        fact_label: The name of a property; None for one that states no facts.
    """

    def __init__(self, quads: Quads, profile: Profile, label: Label, fact_label: FactLabel) -> None:
        self._quads, self._profile = quads, profile
        self._label, self._fact_label = label, fact_label

    def rows(self, subject: str, predicate: str, node: Node) -> Iterator[Row]:
        """The facts that a blank node as a value of ``predicate`` states of ``subject``."""
        for inner, value in self._parts(node, 0):
            if isinstance(value, str):
                yield Row(subject, predicate, value, _TEXT, None, inner)
            elif isinstance(value, Literal):
                datatype, language = value.datatype.value, value.language
                yield Row(subject, predicate, value.value, datatype, language, inner)
            else:
                yield Row(subject, predicate, value.value, inner=inner)

    def statement(self, subject: str, claim: str, node: NamedNode) -> Iterator[Row]:
        """The fact of a Wikidata statement that has qualifiers; one without is a fact anyway."""
        namespaces = self._profile.statements
        assert namespaces is not None
        value: object = None
        qualifiers = []
        for quad in islice(self._quads(node), MAX_PARTS):
            predicate, found = quad.predicate.value, quad.object
            if isinstance(found, NamedNode) and found.value == _DEPRECATED:
                return
            if predicate.startswith(namespaces.value):
                value = found
            elif predicate.startswith(namespaces.qualifier) and _readable(found):
                name = self._direct(predicate.removeprefix(namespaces.qualifier))
                qualifiers.append((name, self._text(found)))
        if not _readable(value) or not qualifiers:
            return
        predicate = f"{self._profile.property_prefix}{claim.removeprefix(namespaces.claim)}"
        text = f"{self._text(value)} ({_details(qualifiers)})"
        yield Row(subject, predicate, text, _TEXT)

    def _direct(self, property_id: str) -> str | None:
        return self._fact_label(f"{self._profile.property_prefix}{property_id}")

    def _parts(self, node: Node, depth: int) -> Iterator[tuple[str, NamedNode | Literal | str]]:
        """Names (in words, empty for the value itself) and values that a blank node holds."""
        if depth == MAX_DEPTH:
            return
        quads = list(islice(self._quads(node), MAX_PARTS))
        if items := self._items(quads):
            for item in items:
                if _anonymous(item):
                    yield from self._parts(item, depth + 1)
                elif _readable(item):
                    yield "", item
            return
        profile = self._profile
        named = profile.value + profile.label
        unit, values, rest = "", [], []
        for quad in quads:
            predicate, value = quad.predicate.value, quad.object
            if predicate in profile.unit and _readable(value):
                unit = f" {self._text(value)}"
            elif predicate in named and _readable(value):
                values.append(value)
            elif predicate not in profile.type and (name := self._fact_label(predicate)):
                rest.append((name, value))
        if values:
            details = _details([(n, self._text(v)) for n, v in rest if _readable(v)])
            for value in values:
                plain = not (unit or details)
                text = self._text(value)
                yield "", value if plain else f"{text}{unit}{f' ({details})' if details else ''}"
            return
        for name, value in rest:
            if _anonymous(value):
                for inner, part in self._parts(value, depth + 1):
                    yield f"{name} {inner}".strip(), part
            elif unit and isinstance(value, Literal) and value.value[-1:].isdigit():
                yield name, f"{self._text(value)}{unit}"
            elif _readable(value):
                yield name, value

    def _items(self, quads: Sequence[Quad]) -> list[object]:
        """The items of an RDF list or container, in order; empty for any other node."""
        numbered = [
            (int(found[1]), place, quad.object)
            for place, quad in enumerate(quads)
            if (found := _ITEM.fullmatch(quad.predicate.value))
        ]
        items: list[object] = [item for *_, item in sorted(numbered, key=lambda one: one[:2])]
        links = {quad.predicate.value: quad.object for quad in quads}
        while _RDF + "first" in links and len(items) < MAX_PARTS:
            items.append(links[_RDF + "first"])
            rest = links.get(_RDF + "rest")
            links = {}
            if isinstance(rest, NamedNode | BlankNode):
                links = {q.predicate.value: q.object for q in islice(self._quads(rest), MAX_PARTS)}
        return items

    def _text(self, value: NamedNode | Literal) -> str:
        if isinstance(value, Literal):
            return render_literal(value.value, value.datatype.value)
        return self._label(value.value)


def _anonymous(term: object) -> TypeGuard[Node]:
    return isinstance(term, BlankNode) or (isinstance(term, NamedNode) and is_blank(term.value))


def _readable(term: object) -> TypeGuard[NamedNode | Literal]:
    return isinstance(term, Literal) or (isinstance(term, NamedNode) and not is_blank(term.value))


def _details(named: Sequence[tuple[str | None, str]]) -> str:
    """Named values in parentheses, in an order of their own: a store has none."""
    return "; ".join(sorted(f"{name}: {text}" for name, text in named if name and text))
