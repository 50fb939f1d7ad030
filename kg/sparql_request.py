"""Requests to SPARQL endpoints, built with SPARQLWrapper, and types of their results.

SPARQLWrapper's own transport (urllib) opens a connection per query and limits only single reads. So
httpx sends the requests, which reuses connections and observes deadlines.
"""

from __future__ import annotations

from typing import Literal, TypedDict, cast
from urllib.parse import parse_qsl, urlsplit

import httpx
from SPARQLWrapper import CONSTRUCT, JSON, SELECT, TURTLE, SPARQLWrapper

from kg.dialects import Dialect

__all__ = ["SparqlResult", "WireTerm", "build_request"]


class _Request(SPARQLWrapper):
    """A query to one endpoint; its kind is given, not guessed from its text."""

    def __init__(self, url: str, *, graph: bool, agent: str) -> None:
        self._form = CONSTRUCT if graph else SELECT
        super().__init__(url, returnFormat=TURTLE if graph else JSON, agent=agent)
        # Servers have different names for format parameters.
        self.setOnlyConneg(True)

    def _parseQueryType(self, query: str) -> str:  # noqa: N802
        return self._form

    def http(self, client: httpx.Client, timeout_s: float) -> httpx.Request:
        request = self._createRequest()
        return client.build_request(
            request.get_method(),
            request.full_url,
            content=cast("bytes | None", request.data),
            headers=dict(request.header_items()),
            timeout=timeout_s,
        )


def build_request(
    client: httpx.Client,
    url: str,
    query: str,
    *,
    method: Literal["POST", "GET"],
    dialect: Dialect,
    timeout_s: float,
    agent: str,
    graph: bool = False,
) -> httpx.Request:
    """Build the request of a query.

    Args:
        client: Sends it.
        url: Address of the endpoint, which may have parameters.
        query: A SELECT or ASK; with ``graph`` a CONSTRUCT or DESCRIBE.
        method: HTTP method.
        dialect: Dialect of the server.
        timeout_s: Time limit in seconds of the client and, if supported, of the server.
        agent: The ``User-Agent``.
        graph: Request Turtle instead of SPARQL JSON.
    """
    parts = urlsplit(url)
    bare = parts._replace(query="").geturl() if method == "GET" else url
    request = _Request(bare, graph=graph, agent=agent)
    if method == "GET":
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            request.addParameter(name, value)
    request.setMethod(method)
    request.setQuery(query)
    for name, value in dialect.headers(timeout_s, graph=graph).items():
        request.addCustomHttpHeader(name, value)
    for name, value in dialect.parameters(timeout_s).items():
        request.addParameter(name, value)
    return request.http(client, timeout_s)


WireTerm = TypedDict(
    "WireTerm", {"type": str, "value": str, "datatype": str, "xml:lang": str}, total=False
)
"""An RDF term of a SPARQL JSON result."""


class _Head(TypedDict, total=False):
    vars: list[str]


class _Results(TypedDict):
    bindings: list[dict[str, WireTerm]]


class SparqlResult(TypedDict, total=False):
    """A SPARQL 1.1 JSON result: ``head`` and ``results`` of a SELECT, ``boolean`` of an ASK."""

    head: _Head
    results: _Results
    boolean: bool
