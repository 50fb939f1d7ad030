"""Open any graph by its location, and the settings of endpoints."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self, cast

from pydantic import Field, field_validator, model_validator

from guardrail.core.errors import KnowledgeGraphError
from guardrail.core.plugins import NOWHERE, made_part, named_part
from guardrail.core.types import Seconds, Value
from guardrail.core.types.value import SecretRef

if TYPE_CHECKING:
    from pyoxigraph import Store

    from kg.base import KnowledgeGraph
    from kg.profiles import Profile
    from kg.sparql import SparqlGraph
    from kg.store import OxigraphGraph

SEPARATOR: Final = " + "
"""Separator of the locations of graphs that are opened as one."""


class EndpointSettings(Value):
    """How to talk to an endpoint.

    Secrets are references: ``env:NAME`` is an environment variable, ``file:PATH`` a file. They are
    sent only to the endpoint's own origin.

    Attributes:
        login: Where the login for basic authentication is, as ``user:password`` (``env:NAME`` or
            ``file:PATH``).
        token: Where a bearer token is.
        headers: Additional headers, each with the place of its value.
        deadline_s: Seconds per query, including up to four attempts and the pauses between them. An
            attempt may take a third of it.
        user_agent: Wikidata requires tool name and contact.
        cache: File of the shared query cache, which keeps results for a day; ``none`` disables it,
            ``default`` is ``kg-guardrail/sparql.sqlite`` in the user's cache folder.
    """

    login: SecretRef | None = None
    token: SecretRef | None = None
    headers: Mapping[str, SecretRef] = Field(default_factory=dict)
    deadline_s: Seconds = 90.0
    user_agent: str = "kg-guardrail/0.1 (knowledge graph guardrail; SPARQLWrapper)"
    cache: Path | Literal["default"] | None = "default"

    @model_validator(mode="before")
    @classmethod
    def _without_gone(cls, values: object) -> object:
        """Settings that only tuned what is fixed now are ignored, with a warning."""
        if not isinstance(values, Mapping):
            return values
        gone = {"attempts", "backoff_s", "connections", "failures", "max_bytes", "timeout_s"}
        for name in sorted(gone & {*values}):
            said = f"graph.endpoint.{name} is gone and ignored; deadline_s bounds a query"
            warnings.warn(said, FutureWarning, stacklevel=2)
        return {name: value for name, value in values.items() if name not in gone}

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        if self.login is not None and self.token is not None:
            raise ValueError("give either login or token")
        return self

    @field_validator("cache", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        """TOML has no null."""
        return None if value == "none" else value


def open_graphs(
    location: str | Path | None = None,
    *,
    profile: str | Path | Profile | None = None,
    settings: EndpointSettings | None = None,
) -> KnowledgeGraph:
    """Open a knowledge graph, or several as one.

    Args:
        location: As for ``open_graph``, or a back end of another package: the name of an entry
            point of ``kg_guardrail.graphs``, optionally with ``:`` and its location, or
            ``module:Class``. Several joined by `` + `` are one graph.
        profile: The profile of all of them.
        settings: Of the endpoints among them.

    Raises:
        KnowledgeGraphError: One of them cannot be opened.
        ConfigError: The profile does not exist.
    """
    parts = str(location).split(SEPARATOR)
    if location is None or len(parts) == 1:
        return _from_outside(location) or open_graph(location, profile=profile, settings=settings)
    from kg.federation import FederatedGraph

    return FederatedGraph(
        [open_graphs(part.strip(), profile=profile, settings=settings) for part in parts]
    )


def _from_outside(location: str | Path | None) -> KnowledgeGraph | None:
    """A graph of another package; None where the location names none."""
    if not isinstance(location, str) or "/" in location.partition(":")[0]:
        return None
    kind, _, place = location.partition(":")
    if Path(location).exists() or place.startswith("//"):
        return None
    make = named_part("graphs", kind) if kind.isidentifier() else None
    arguments = (place,) if place else ()
    if make is None:
        make, arguments = named_part("graphs", location), ()
    if make is None:
        return None
    needed = ("name", "find", "entities", "subgraphs", "links", "close")
    return cast("KnowledgeGraph", made_part("graphs", location, partial(make, *arguments), needed))


def open_graph(
    location: str | Path | None = None,
    *,
    profile: str | Path | Profile | None = None,
    settings: EndpointSettings | None = None,
) -> OxigraphGraph | SparqlGraph:
    """Open a knowledge graph.

    Args:
        location: None (or ``people``) for the people graph that ships with the package; the
            directory of an on-disk graph; an RDF file, read into
            memory; or the ``http(s)://`` address of a SPARQL endpoint.
        profile: Name or TOML file of the vocabulary profile; None to detect it. An endpoint
            whose address does not tell (Wikidata's and DBpedia's do) is read as plain RDFS.
        settings: Time limits, retries and cache of an endpoint; other graphs take none.

    Raises:
        KnowledgeGraphError: If there is no graph there, or it cannot be read.
        ConfigError: If the profile does not exist.
    """
    if location is None or str(location) == "people":
        return open_people_graph()
    if str(location).startswith(("http://", "https://")):
        from kg.sparql import SparqlGraph

        return SparqlGraph(str(location), profile=profile, settings=settings)
    path = Path(location).expanduser()
    if path.is_dir():
        from kg.store import OxigraphGraph

        return OxigraphGraph.open(path, profile=profile)
    if path.is_file():
        from kg.load import read_graph

        return read_graph(path, profile=profile)
    own = f"; for a back end of your own, {NOWHERE}" if ":" in str(location) else ""
    raise KnowledgeGraphError(
        f"there is no graph at {location}; give a directory made by 'guardrail kg load', "
        f"an RDF file, or the address of a SPARQL endpoint{own}"
    )


def open_people_graph() -> OxigraphGraph:
    """Open the embedded graph of some 1,000 persons with Wikidata ids, in memory.

    It is made by ``training.people``. Each call returns a graph of its own over one shared store,
    so that closing one does not affect another. The store must not be changed.

    Raises:
        KnowledgeGraphError: If the package is installed without its data.
    """
    from kg.store import OxigraphGraph

    store, snapshot = _people()
    return OxigraphGraph(store, profile="wikidata", name="people", snapshot=snapshot)


@cache
def _people() -> tuple[Store, str]:
    from pyoxigraph import RdfFormat, Store

    from kg.store import snapshot_of

    source = files("kg").joinpath("data/people.nt.gz")
    try:
        packed = source.read_bytes()
        text = gzip.decompress(packed)
    except (OSError, EOFError) as error:
        raise KnowledgeGraphError(
            f"the people graph is missing or damaged ({error}); reinstall kg-guardrail"
        ) from error
    store = Store()
    # The file is written by this project's own build, so its IRIs need no second check.
    store.bulk_load(input=text, format=RdfFormat.N_TRIPLES, lenient=True)
    return store, snapshot_of(BytesIO(packed))
