"""Vocabulary profiles: which predicates of a graph are names, classes and facts.

A profile is a TOML file; ``wikidata``, ``wikidata-mirror``, ``dbpedia`` and ``rdfs`` ship with
the package. A user's own file may say ``extends = "wikidata"`` and change single keys::

    extends = "rdfs"
    name = "museum"
    label = ["crm:P1_is_identified_by"]
    entity_prefix = "https://museum.example/object/"
    [prefixes]
    crm = "http://www.cidoc-crm.org/cidoc-crm/"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, unquote

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo

from guardrail.core.errors import ConfigError
from guardrail.core.fields import field_problems, read_toml
from guardrail.core.types import Value
from kg.terms import check_iri

_SHIPPED = Path(__file__).parent / "data" / "profiles"
_SHORT_ID = re.compile(r"[\w.,()'!*~&=+$@%\-]+")


def _expanded(terms: object, info: ValidationInfo) -> object:
    """Expand the prefixes of a file's terms; short ids of classes stay as they are."""
    prefixes = info.context
    if prefixes is None or not isinstance(terms, list | tuple):
        return terms
    expanded = []
    for term in map(str, terms):
        prefix, colon, rest = term.partition(":")
        if colon and prefix in prefixes:
            term = f"{prefixes[prefix]}{rest}"
        elif (colon or info.field_name != "ner") and prefix != "urn" and rest[:2] != "//":
            raise ValueError(f"{term!r} is no IRI and its prefix is not in [prefixes]")
        expanded.append(check_iri(term) if colon else term)
    return tuple(expanded)


Iris = Annotated[tuple[str, ...], BeforeValidator(_expanded)]
"""IRIs, which a file may abbreviate by its prefixes."""


class Statements(Value):
    """Namespaces of Wikidata's statements: of predicates to one, to its value and qualifiers."""

    claim: str
    value: str
    qualifier: str


class Profile(Value):
    """How to read a graph's vocabulary. All predicates are full IRIs, best first.

    Attributes:
        name: Name of the profile.
        label: Predicates of the preferred name.
        alias: Predicates of other names.
        description: Predicates of the one-line description.
        type: Predicates from a node to its class.
        subclass: Predicates from a class to a wider one.
        within: Predicates from a place to a wider one that holds it; empty: none is known.
        fact_prefixes: Namespaces whose predicates state facts; empty: all that name nothing.
        value: Predicates from a blank node to the value that it describes.
        unit: Predicates from a blank node to the unit or currency of its numbers.
        statements: How statements with qualifiers are written; None where there are none.
        skip: Predicates that state no fact for a reader; a trailing ``*`` matches any ending.
        entity_prefix: Namespace that is cut off to make short ids (``Q212657``).
        property_prefix: Namespace that is cut off to make short property ids (``P19``).
        property_entity_prefix: Namespace of the nodes that carry the labels of properties,
            where these are not the predicates themselves (Wikidata: ``wd:P19`` for ``wdt:P19``).
        page: Address of an entity's page, with ``{id}``; None: the IRI itself.
        languages: Language tags that count as readable, best first; untagged text and ``mul``
            always do.
        prefixes: Namespaces by the prefixes that queries of an embedded graph need not declare.
        label_service: Whether Wikidata's label service is used, where the server has it.
        dialect: SPARQL dialect of the server (``kg.queries``); None for what its address tells.
        text_search: Also find names in other capitalisation, through the server's text index.
        ner: Tagger's entity type to the ids of the classes it may be an instance of.
    """

    name: str
    label: Iris = Field(min_length=1)
    alias: Iris = ()
    description: Iris = ()
    type: Iris = ()
    subclass: Iris = ()
    within: Iris = ()
    fact_prefixes: tuple[str, ...] = ()
    value: Iris = ()
    unit: Iris = ()
    statements: Statements | None = None
    skip: Iris = ()
    entity_prefix: str | None = None
    property_prefix: str | None = None
    property_entity_prefix: str | None = None
    page: str | None = None
    languages: tuple[str, ...] = Field(default=("en",), min_length=1)
    prefixes: Mapping[str, str] = Field(default_factory=dict)
    label_service: bool = False
    dialect: str | None = None
    text_search: bool = False
    ner: Mapping[str, Iris] = Field(default_factory=dict)

    def iri(self, identifier: str) -> str:
        """The full IRI of an entity's id.

        Raises:
            InputError: If the id is neither a short id of this profile nor a valid IRI.
        """
        if self.entity_prefix and _SHORT_ID.fullmatch(identifier):
            return check_iri(self.entity_prefix + identifier)
        return check_iri(identifier)

    def short(self, iri: str) -> str:
        """The id of an entity: its IRI without ``entity_prefix``."""
        prefix = self.entity_prefix
        if prefix and iri.startswith(prefix) and _SHORT_ID.fullmatch(iri, len(prefix)):
            return iri[len(prefix) :]
        return iri

    def short_property(self, iri: str) -> str:
        """The id of a property: its IRI without ``property_prefix``."""
        return iri.removeprefix(self.property_prefix) if self.property_prefix else iri

    def property_node(self, iri: str) -> str:
        """The IRI of the node that carries the property's labels."""
        if self.property_prefix and self.property_entity_prefix:
            return self.property_entity_prefix + iri.removeprefix(self.property_prefix)
        return iri

    def url(self, iri: str) -> str | None:
        """A page that a reader can open, or None for a node without one."""
        if self.page is not None:
            short = self.short(iri)
            return self.page.format(id=quote(short, safe="/:")) if short != iri else None
        return iri if iri.startswith(("http://", "https://")) else None

    def is_fact(self, predicate: str) -> bool:
        """Whether triples with this predicate are facts for a reader."""
        if predicate in self.names:
            return False
        if self.fact_prefixes and not predicate.startswith(self.fact_prefixes):
            return False
        return not any(
            predicate.startswith(skip[:-1]) if skip.endswith("*") else predicate == skip
            for skip in self.skip
        )

    @property
    def tags(self) -> tuple[str, ...]:
        """Language tags of readable text, best first.

        Names in ``mul`` hold in all languages: https://www.wikidata.org/wiki/Help:Default_values
        """
        return tuple(dict.fromkeys((*self.languages, "mul")))

    @property
    def names(self) -> tuple[str, ...]:
        """All predicates that carry labels, aliases and descriptions."""
        return self.label + self.alias + self.description

    def language_rank(self, tag: str | None) -> int | None:
        """Place of a language tag in ``languages`` (``en-GB`` counts as ``en``).

        Text for all languages (``mul``) ranks after the listed ones, and untagged text after that;
        None for any other language.
        """
        tags = self.tags
        if not tag:
            return len(tags)
        tag = tag.lower()
        for rank, language in enumerate(tags):
            if tag == language or tag.startswith(language + "-"):
                return rank
        return None


def local_name(iri: str) -> str:
    """The readable end of an IRI, for a node without a label."""
    end = re.split(r"[/#]", iri.rstrip("/#"))[-1] or iri
    if not iri.startswith(("http://", "https://")):
        end = iri.rsplit(":", 1)[-1] or iri
    return unquote(end).replace("_", " ").strip() or iri


def load_profile(source: str | Path | Profile) -> Profile:
    """Return a profile by its shipped name or from a TOML file.

    Args:
        source: ``wikidata``, ``wikidata-mirror``, ``dbpedia``, ``rdfs``, the path of a TOML
            file, or a profile, which is returned as it is.

    Raises:
        ConfigError: If there is no such profile, or the file does not describe one.
    """
    if isinstance(source, Profile):
        return source
    return _load(str(source))


STORED_PROFILE = "profile.json"
"""File next to a store with the profile that it was loaded with."""


def store_profile(graph: Path, profile: Profile) -> None:
    """Keep a profile in the directory of a graph, which is then opened with it."""
    new = graph / f"{STORED_PROFILE}.new"
    new.write_text(profile.model_dump_json(), encoding="utf-8")
    new.replace(graph / STORED_PROFILE)


def stored_profile(graph: Path) -> Profile | None:
    """The profile that a graph was loaded with; None where none was named."""
    path = graph / STORED_PROFILE
    if not path.is_file():
        return None
    try:
        return Profile.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{path} is no profile: {error}; load the graph anew") from error


@cache
def _load(source: str) -> Profile:
    path = Path(source)
    if path.suffix != ".toml":
        path = _SHIPPED / f"{source}.toml"
        if not path.is_file():
            known = ", ".join(sorted(file.stem for file in _SHIPPED.glob("*.toml")))
            raise ConfigError(
                f"no profile {source!r}; choose one of {known}, or the path of a .toml file"
            )
    try:
        return _read(path, seen=())
    except OSError as error:
        raise ConfigError(f"cannot read the profile {path}: {error}") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {field_problems(Profile, error)}") from error


def _read(path: Path, seen: tuple[Path, ...]) -> Profile:
    """Read a profile file on top of the profile that it extends."""
    if path in seen:
        raise ConfigError(f"{path} extends itself")
    table = read_toml(path.read_bytes(), path)
    base: Profile | None = None
    if (parent := table.pop("extends", None)) is not None:
        sibling = path.parent / f"{str(parent).removesuffix('.toml')}.toml"
        shipped = _SHIPPED / f"{parent}.toml"
        found = sibling if sibling.is_file() and sibling != path else shipped
        if not found.is_file():
            raise ConfigError(f"{path} extends {parent!r}, which does not exist")
        base = _read(found, (*seen, path))
    prefixes = table.get("prefixes", {})
    if isinstance(prefixes, dict):
        table["prefixes"] = prefixes = {**(base.prefixes if base else {}), **prefixes}
    return Profile.model_validate((base.model_dump() if base else {}) | table, context=prefixes)
