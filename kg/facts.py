"""From rows of a graph to readable triples: names, languages, order, structured values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeGuard

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from guardrail.core.types import Entity, Subgraph, Triple
from kg.profiles import Profile, local_name
from kg.terms import WIKIBASE, XSD, is_blank, readable, render_literal

Node = NamedNode | BlankNode
Quads = Callable[[Node], Iterator[Quad]]
Label = Callable[[str], str]
FactLabel = Callable[[str], str | None]

MAX_PARTS: Final = 500
"""Facts of one blank node and items of one list that are read."""
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
UNREADABLE = 1_000
"""Language rank of a name in a language that the profile does not list."""


class Row(NamedTuple):
    """One fact as read; a value without datatype is the IRI of a node.

    ``inner`` names the fact of a structured value (``StructuredValues``) after its property.
    """

    subject: str
    predicate: str
    value: str
    datatype: str | None = None
    language: str | None = None
    inner: str = ""


class Name(NamedTuple):
    """One name of a node: language rank, place of its predicate in the profile, the text."""

    rank: int
    place: int
    text: str

    @classmethod
    def of(cls, profile: Profile, place: int, text: str, language: str | None) -> Name:
        """A name in any language."""
        rank = profile.language_rank(language)
        return cls(UNREADABLE if rank is None else rank, place, text)


def triples(
    rows: Iterable[Row],
    profile: Profile,
    *,
    label: Callable[[str], str],
    property_label: Callable[[str], str | None],
) -> list[Triple]:
    """Turn rows into triples, in a stable order, without repeats.

    Where a property of a subject has texts in a readable language, those in others are left out.
    A predicate without ``property_label`` states no facts.
    """
    rows = list(rows)
    rank = profile.language_rank
    in_language = {
        (row.subject, row.predicate)
        for row in rows
        if row.language is not None and rank(row.language) is not None
    }
    found: dict[tuple[str, str, str, str, str | None], Triple] = {}
    for subject, predicate, value, datatype, language, inner in rows:
        name = property_label(predicate)
        if name is None:
            continue
        if language is not None and (subject, predicate) in in_language and rank(language) is None:
            continue
        if datatype is None:
            text, value_id = label(value), profile.short(value)
        else:
            text, value_id = render_literal(value, datatype), None
        key = (subject, predicate, inner, text, value_id)
        if text and key not in found:
            found[key] = Triple(
                subject=label(subject),
                property=f"{name} {inner}".strip(),
                value=text,
                subject_id=profile.short(subject),
                property_id=profile.short_property(predicate),
                value_id=value_id,
            )
    return sorted(found.values(), key=order)


def order(triple: Triple) -> tuple[str, str, str, str, str]:
    """Sort key of triples: property, value, subject; ids last, so that it is total."""
    return (
        triple.property.casefold(),
        triple.value.casefold(),
        triple.subject.casefold(),
        triple.subject_id or "",
        triple.value_id or "",
    )


def choose_names(names: Sequence[Name], labels: int) -> tuple[str | None, tuple[str, ...]]:
    """Choose the label of a node; the other readable names are its aliases.

    A name in a readable language beats any other; among these a label (of the first ``labels``
    predicates) beats an alias, then the better language, the better predicate, the alphabet.
    """
    if not names:
        return None, ()
    ordered = sorted(names, key=lambda n: (n.rank == UNREADABLE, n.place >= labels, *n))
    label = ordered[0].text
    aliases = dict.fromkeys(name.text for name in ordered[1:] if name.rank != UNREADABLE)
    aliases.pop(label, None)
    return label, tuple(aliases)


def fallback_label(iri: str, profile: Profile) -> str:
    """Name a node that has no label: its short id, or the readable end of its IRI."""
    short = profile.short(iri)
    return local_name(iri) if short == iri else short


def is_fallback(label: str, identifier: str) -> bool:
    """True if a label may be made from the node's id rather than stated by the graph."""
    return label == identifier or (":" in identifier and label == local_name(identifier))


def unknown(identifier: str, profile: Profile) -> Subgraph:
    """The empty subgraph of an id that the graph does not know."""
    text = readable(identifier)
    label = local_name(text) if ":" in text else text
    return Subgraph(entity=Entity(id=profile.short(text), label=label))


def property_fallback(predicate: str) -> str:
    """Name a property that has no label: ``placeOfBirth`` becomes ``place of birth``."""
    name = local_name(predicate)
    if " " in name or name.isupper():
        return name
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


class StructuredValues:
    """Reads values with a structure of their own: blank nodes, RDF lists, Wikidata's statements.

    ``ex:Fjell ex:weight [ rdf:value 21.5 ; qudt:unit "kg" ]`` reads *weight: 21.5 kg*. A blank node
    with a name has its own facts in parentheses, since they are not those of the node it belongs
    to; one without a name or value gives a fact for each of its own: ``[ schema:price 2490 ]`` as
    an offer reads *offers price: 2490*. The items of a list or container are values of the
    property. A statement of Wikidata reads with its qualifiers: *position held: mayor (start
    time: 2017)*.
    """

    def __init__(self, quads: Quads, profile: Profile, label: Label, fact_label: FactLabel) -> None:
        self._quads, self._profile = quads, profile
        self._label, self._fact_label = label, fact_label

    def rows(self, subject: str, predicate: str, node: Node) -> Iterator[Row]:
        """The facts that a blank node as a value of ``predicate`` states of ``subject``."""
        for inner, value in self._parts(node, 0):
            if isinstance(value, str):
                yield Row(subject, predicate, value, f"{XSD}string", None, inner)
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
            if isinstance(found, NamedNode) and found.value == f"{WIKIBASE}DeprecatedRank":
                return
            if predicate.startswith(namespaces.value):
                value = found
            elif predicate.startswith(namespaces.qualifier) and _readable(found):
                direct = predicate.removeprefix(namespaces.qualifier)
                name = self._fact_label(f"{self._profile.property_prefix}{direct}")
                qualifiers.append((name, self._text(found)))
        if not _readable(value) or not qualifiers:
            return
        predicate = f"{self._profile.property_prefix}{claim.removeprefix(namespaces.claim)}"
        text = f"{self._text(value)} ({_details(qualifiers)})"
        yield Row(subject, predicate, text, f"{XSD}string")

    def _parts(self, node: Node, depth: int) -> Iterator[tuple[str, NamedNode | Literal | str]]:
        """Names (in words, empty for the value itself) and values of a blank node, four deep."""
        if depth == 4:
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
            if (found := re.fullmatch(re.escape(_RDF) + r"_([0-9]{1,9})", quad.predicate.value))
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
