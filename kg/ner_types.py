"""A tagger's entity types against the classes of a graph (KaLMA 3.1: the type as a filter).

Which classes a type can name is part of a graph's vocabulary profile (``[ner]`` in its TOML).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from guardrail.core.types import Entity

__all__ = ["NAMING_TYPES", "classes_of", "compatible", "persons"]

NAMING_TYPES: Final = frozenset(
    {
        "PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW",
        "LANGUAGE",
    }
)  # fmt: skip
"""spaCy's OntoNotes types that name things; the others (DATE, CARDINAL, …) are no mentions."""


def classes_of(graph: object) -> Mapping[str, Sequence[str]]:
    """Give the table of a graph's profile, from entity type to class ids; empty without one."""
    table: Mapping[str, Sequence[str]] = getattr(getattr(graph, "profile", None), "ner", {})
    return table


def compatible(
    candidates: Sequence[Entity], ner: str | None, classes: Mapping[str, Sequence[str]]
) -> list[Entity]:
    """Keep the candidates whose class fits the tagger's type (KaLMA 3.1).

    A small tagger takes persons for organisations or places, so the filter only chooses: where
    no candidate's class fits, or the type or the classes are unknown, all candidates stay.

    Args:
        candidates: Nodes with the mention's label.
        ner: The tagger's type, ``PERSON`` and so on; None where it saw nothing.
        classes: Class ids by entity type, from ``classes_of``.
    """
    wanted = set(classes.get(ner or "", ()))
    return [entity for entity in candidates if wanted & set(entity.types)] or list(candidates)


def persons(candidates: Sequence[Entity], classes: Mapping[str, Sequence[str]]) -> list[Entity]:
    """Keep the persons; all candidates where the vocabulary does not say what a person is."""
    wanted = set(classes.get("PERSON", ()))
    if not wanted:
        return list(candidates)
    return [entity for entity in candidates if wanted & set(entity.types)]
