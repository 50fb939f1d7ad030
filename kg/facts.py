"""From rows of a graph to readable triples: labels, languages, order. Shared by all back ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from guardrail.core.types import Entity, Subgraph, Triple
from kg.profiles import Profile, local_name
from kg.terms import readable, render_literal

__all__ = [
    "Name", "Row", "choose_names", "fallback_label", "is_fallback", "order", "property_fallback",
    "triples", "unknown",
]  # fmt: skip

UNREADABLE = 1_000
"""Language rank of a name in a language that the profile does not list."""


class Row(NamedTuple):
    """One fact as read; a value without datatype is the IRI of a node.

    ``inner`` names the fact of a structured value (``kg.structured``) after its property.
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

    Args:
        rows: The facts.
        profile: The graph's vocabulary.
        label: Gives the name of a node.
        property_label: Gives the name of a predicate; None for one that states no facts.
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

    A name in a readable language beats any other; among these a label beats an alias, then
    the better language, then the better predicate, then the alphabet.

    Args:
        names: All names that were read.
        labels: Number of predicates of the profile that are labels; the rest are aliases.
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
    """Whether a label may be none of the graph's, but made from the node's id."""
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
