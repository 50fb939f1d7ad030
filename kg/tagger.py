"""The entity tagger of the linker, and its types compared with the classes of a graph (KaLMA 3.1).

The vocabulary profile of a graph (``[ner]`` in its TOML) lists the classes that a type can name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from guardrail.core.text.tagging import load_english
from guardrail.core.types import Entity

if TYPE_CHECKING:
    from spacy.language import Language

__all__ = [
    "MAX_TAGGED", "NAMING_TYPES", "classes_of", "compatible", "load_tagger", "persons", "taggable",
]  # fmt: skip

NAMING_TYPES: Final = frozenset(
    {
        "PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW",
        "LANGUAGE",
    }
)  # fmt: skip
"""spaCy's OntoNotes types that name things; the others (DATE, CARDINAL, …) are no mentions."""

MAX_TAGGED: Final = 100_000
"""Longest stretch of one text that is tagged, in characters, some 3 s on one core; what follows
is still read by the label index of the graph."""

# spaCy's tokenizer takes time quadratic in a stretch without white space; no name is this long.
_LONG_RUN: Final = re.compile(r"\S{200,}")

_NOT_NEEDED: Final = ("tagger", "parser", "attribute_ruler", "lemmatizer")


def load_tagger() -> Language:
    """Load the first installed pipeline with its entity recogniser only.

    Raises:
        ConfigError: If no pipeline is installed.
    """
    return load_english(*_NOT_NEEDED)


def taggable(text: str) -> str:
    """The first ``MAX_TAGGED`` characters of a text, stretches without white space blanked out."""
    return _LONG_RUN.sub(lambda run: " " * len(run.group()), text[:MAX_TAGGED])


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
