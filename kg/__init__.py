"""Knowledge graphs: one protocol, an embedded store, any SPARQL endpoint, linking, re-ranking.

>>> from kg import open_graph
>>> graph = open_graph()                      # the people graph of the package
>>> graph.find(["Mary Shelley"])[0][0].id
'Q47152'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.core.lazy import loaded_on_use

if TYPE_CHECKING:
    from kg.base import GraphStats, KnowledgeGraph, MentionIndex, PlaceIndex, QueryResult
    from kg.federation import FederatedGraph
    from kg.linking import EntityLinker
    from kg.load import LoadReport, load_graph
    from kg.opening import EndpointSettings, open_graph, open_graphs, open_people_graph
    from kg.profiles import Profile, load_profile
    from kg.reading import Selection
    from kg.sparql import SparqlGraph
    from kg.store import OxigraphGraph
    from kg.tables import TableColumns

__all__ = [
    "EndpointSettings", "EntityLinker", "FederatedGraph", "GraphStats", "KnowledgeGraph",
    "LoadReport", "MentionIndex", "OxigraphGraph", "PlaceIndex", "Profile", "QueryResult",
    "Selection", "SparqlGraph", "TableColumns", "load_graph", "load_profile", "open_graph",
    "open_graphs", "open_people_graph",
]  # fmt: skip

__getattr__, __dir__ = loaded_on_use(
    __name__,
    {
        "kg.linking": "EntityLinker",
        "kg.federation": "FederatedGraph",
        "kg.base": "GraphStats KnowledgeGraph MentionIndex PlaceIndex QueryResult",
        "kg.load": "LoadReport load_graph",
        "kg.store": "OxigraphGraph",
        "kg.profiles": "Profile load_profile",
        "kg.reading": "Selection",
        "kg.sparql": "SparqlGraph",
        "kg.tables": "TableColumns",
        "kg.opening": "EndpointSettings open_graph open_graphs open_people_graph",
    },
)
