"""Knowledge graphs: one protocol, an embedded store, any SPARQL endpoint, linking, re-ranking.

>>> from kg import open_graph
>>> graph = open_graph()                      # the people graph of the package
>>> graph.find(["Mary Shelley"])[0][0].id
'Q47152'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kg.base import KnowledgeGraph, MentionIndex, PlaceIndex
    from kg.endpoint_settings import EndpointSettings
    from kg.federation import FederatedGraph
    from kg.linking import EntityLinker
    from kg.load import LoadReport, load_graph
    from kg.opening import open_graph, open_graphs
    from kg.people import open_people_graph
    from kg.profiles import Profile, load_profile
    from kg.results import GraphStats, QueryResult
    from kg.selection import Selection
    from kg.sparql import SparqlGraph
    from kg.store import OxigraphGraph
    from kg.tables import TableColumns

__all__ = [
    "EndpointSettings",
    "EntityLinker",
    "FederatedGraph",
    "GraphStats",
    "KnowledgeGraph",
    "LoadReport",
    "MentionIndex",
    "OxigraphGraph",
    "PlaceIndex",
    "Profile",
    "QueryResult",
    "Selection",
    "SparqlGraph",
    "TableColumns",
    "load_graph",
    "load_profile",
    "open_graph",
    "open_graphs",
    "open_people_graph",
]

_HOME = {
    "EndpointSettings": "kg.endpoint_settings",
    "EntityLinker": "kg.linking",
    "FederatedGraph": "kg.federation",
    "GraphStats": "kg.results",
    "KnowledgeGraph": "kg.base",
    "LoadReport": "kg.load",
    "MentionIndex": "kg.base",
    "OxigraphGraph": "kg.store",
    "PlaceIndex": "kg.base",
    "Profile": "kg.profiles",
    "QueryResult": "kg.results",
    "Selection": "kg.selection",
    "SparqlGraph": "kg.sparql",
    "TableColumns": "kg.tables",
    "load_graph": "kg.load",
    "load_profile": "kg.profiles",
    "open_graph": "kg.opening",
    "open_graphs": "kg.opening",
    "open_people_graph": "kg.people",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
