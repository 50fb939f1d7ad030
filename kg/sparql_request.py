"""Builds requests to SPARQL endpoints by means of SPARQLWrapper, and types what they answer.

SPARQLWrapper's own transport (urllib) opens a connection a query and knows a time limit a read
alone; the request it builds is sent by httpx, which keeps connections and ends with the deadline.
"""

from __future__ import annotations

from typing import Literal, TypedDict, cast
from urllib.parse import parse_qsl, urlsplit

import httpx
from SPARQLWrapper import CONSTRUCT, JSON, SELECT, TURTLE, SPARQLWrapper

from kg.dialects import Dialect

__all__ = ["SparqlResult", "WireTerm", "build_request"]


class _Request(SPARQLWrapper):
    """A query on its way to one endpoint. What it asks for is told, not guessed from its text."""

    def __init__(self, url: str, *, graph: bool, agent: str) -> None:
        self._form = CONSTRUCT if graph else SELECT
        super().__init__(url, returnFormat=TURTLE if graph else JSON, agent=agent)
        # Servers differ in what their own parameters of the format are called.
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
    """Build the request that asks an endpoint a query.

    Args:
        client: Sends it.
        url: Address of the endpoint, with parameters of its own if it has some.
        query: A SELECT or ASK; with ``graph`` a CONSTRUCT or DESCRIBE.
        method: How it is sent.
        dialect: What the server wants told.
        timeout_s: Seconds that client and, where it can be told, server give the query.
        agent: The ``User-Agent``.
        graph: Ask for Turtle instead of SPARQL JSON.
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
    """A SPARQL 1.1 result in JSON: of a SELECT ``head`` and ``results``, of an ASK ``boolean``."""

    head: _Head
    results: _Results
    boolean: bool
