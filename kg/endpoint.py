"""Sends queries to a SPARQL 1.1 endpoint: login, retries, deadlines, typed errors, cache."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit
from urllib.request import Request

import httpx
from httpx import codes
from SPARQLWrapper import CONSTRUCT, POST, SELECT, SPARQLWrapper
from tenacity import RetryCallState, Retrying, retry_if_exception_type

from guardrail.core.errors import ConfigError, GraphUnavailableError, KnowledgeGraphError
from guardrail.core.http_clients import by_proxy, reading_environment
from guardrail.core.secrets import get_logger, register_secret, resolve_secret
from guardrail.core.types import CacheUse, Usage
from kg.base import Term
from kg.cache import QueryCache
from kg.opening import EndpointSettings
from kg.queries import dialect_of
from kg.terms import XSD, is_blank

BACKOFF_S = 0.5
"""Seconds before the second attempt, doubled for each further one; ``Retry-After`` overrides it."""
CONNECTIONS = 4
"""Concurrent queries; Wikidata allows five."""
MAX_BYTES = 256 * 2**20
"""Maximum size of a response."""
REDIRECTS = 3
"""Redirects in a row that are followed."""
ATTEMPTS = 4
"""Most attempts per query."""
FAILURES = 10
"""Consecutive failed queries after which the endpoint is left alone for ten seconds."""
_LOG = get_logger(__name__)


class QueryRejectedError(KnowledgeGraphError):
    """The endpoint cannot read the query (400)."""


class _TransientError(Exception):
    """A temporary failure that is worth another attempt."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


SparqlResult = dict[str, Any]
"""A SPARQL 1.1 JSON result: ``head`` and ``results`` of a SELECT, ``boolean`` of an ASK."""


class Endpoint:
    """A SPARQL endpoint. Safe to use from several threads.

    After ``FAILURES`` queries in a row that failed in all their attempts, none is sent for ten
    seconds.

    Raises:
        ConfigError: If the address, the dialect or the cache cannot be used.
    """

    def __init__(self, url: str, settings: EndpointSettings, *, dialect: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is not the address of an endpoint; it starts with https://")
        # The login goes into a header, and the address is then free of it.
        self.url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self.settings = settings
        self.dialect = dialect_of(url, dialect)
        self._credentials = _credentials(settings, parts.username, parts.password)
        # What one login may read is no answer for another.
        login = repr(self._credentials).encode() if self._credentials else b""
        self._cached_as = self.url + (hashlib.sha256(login).hexdigest() if login else "")
        self._cache = _open_cache(settings)
        self._lock = threading.Lock()
        self._failed, self._paused_until = 0, 0.0
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        with reading_environment():
            self._client = httpx.Client(limits=limits)
        # Graphs are often dropped without being closed.
        weakref.finalize(self, self._client.close)
        self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="sparql")

    def select_all(self, queries: Sequence[str]) -> list[list[dict[str, Term]]]:
        """Run n SELECTs at once, as many as there are connections; see ``select``."""
        if len(queries) < 2:
            return [self.select(query) for query in queries]
        return list(self._pool.map(self.select, queries))

    def select(self, query: str) -> list[dict[str, Term]]:
        """Run a SELECT and return its solutions, from the cache if it is fresh.

        Raises:
            KnowledgeGraphError: If the endpoint gives no SPARQL result in the time allowed.
        """
        cached = None if self._cache is None else self._cache.get(self._cached_as, query)
        body = self.fetch(query) if cached is None else cached
        solutions = self.solutions(self._parse(body))
        if self._cache is not None and cached is None:
            self._cache.put(self._cached_as, query, body)
        return solutions

    def in_use(self) -> Usage:
        """How often the cache had the result of a query."""
        if self._cache is None:
            return Usage()
        use = CacheUse(hits=self._cache.hits, misses=self._cache.misses)
        return Usage(caches={"queries": use})

    def json(self, query: str) -> SparqlResult:
        """Run a SELECT or ASK, past the cache, and return the SPARQL JSON result."""
        return self._parse(self.fetch(query))

    def solutions(self, result: SparqlResult) -> list[dict[str, Term]]:
        """Read the solutions of a SPARQL JSON result."""
        try:
            return [
                {name: _term(term) for name, term in solution.items()}
                for solution in result["results"]["bindings"]
            ]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise KnowledgeGraphError(
                f"{self.url} sends a malformed SPARQL result: {error!r}"
            ) from error

    def fetch(self, query: str, *, graph: bool = False) -> bytes:
        """Run a query, past the cache; return SPARQL JSON, or Turtle for ``graph``, as UTF-8.

        Raises:
            GraphUnavailableError: If the endpoint does not answer in the time allowed, or has
                failed too often.
            KnowledgeGraphError: If it refuses the query.
        """
        end = time.monotonic() + self.settings.deadline_s
        if (wait := self._paused_until - time.monotonic()) > 0:
            raise GraphUnavailableError(
                f"{self.url} failed {FAILURES} queries in a row; the next is sent in {wait:.3g} s"
            )

        def stop(state: RetryCallState) -> bool:
            late = time.monotonic() + state.upcoming_sleep >= end
            return late or state.attempt_number >= ATTEMPTS

        retrying = Retrying(
            retry=retry_if_exception_type(_TransientError), wait=_pause, stop=stop, reraise=True
        )
        try:
            body: bytes = retrying(self._attempt, query, graph=graph, end=end)
        except _TransientError as error:
            with self._lock:
                self._failed += 1
                if self._failed >= FAILURES:
                    self._paused_until = time.monotonic() + 10
            tries = retrying.statistics.get("attempt_number", 1)
            times = "once" if tries == 1 else f"{tries} times"
            raise GraphUnavailableError(f"{self.url}: {error}; tried {times}") from error
        self._failed = 0
        return body

    def close(self) -> None:
        """Close connections and cache."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()
        if self._cache is not None:
            self._cache.close()

    def _attempt(self, query: str, *, graph: bool, end: float) -> bytes:
        timeout = min(self.settings.deadline_s / 3, max(0.01, end - time.monotonic()))
        try:
            return self._read(self._encode(query, timeout, graph=graph), timeout)
        except httpx.PoolTimeout as error:
            raise GraphUnavailableError(f"our {CONNECTIONS} connections to it are busy") from error
        except (httpx.TimeoutException, TimeoutError) as error:
            raise _TransientError(f"no answer within {timeout:.3g} s") from error
        except httpx.TransportError as error:
            where = by_proxy(self.url)
            raise _TransientError(f"cannot be reached{where} ({error})") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise KnowledgeGraphError(f"{self.url!r} cannot be queried: {error}") from error

    def _encode(self, query: str, timeout: float, *, graph: bool) -> Request:
        """The query as SPARQLWrapper encodes it, with the time limit of the dialect.

        httpx sends it: SPARQLWrapper opens a connection for each query, and limits single reads.
        """
        dialect = self.dialect
        form = SPARQLWrapper(self.url, agent=self.settings.user_agent)
        form.setOnlyConneg(True)  # servers disagree on the name of a format parameter
        form.setMethod(POST)
        form.queryString, form.queryType = query, CONSTRUCT if graph else SELECT
        if dialect.timeout is not None:
            form.addParameter(dialect.timeout, dialect.units(timeout))
        request = form._createRequest()
        request.add_header("Accept", dialect.accept_graph if graph else dialect.accept)
        if dialect.timeout_header is not None:
            request.add_header(dialect.timeout_header, dialect.units(timeout))
        return request

    def _read(self, request: Request, timeout: float) -> bytes:
        """Send the query and read the answer, giving up when the time is over.

        The socket's own timeout restarts with every byte: a server that drips would never end.
        """
        end = time.monotonic() + timeout
        response = self._send(request, timeout)
        try:
            self._check(response)
            parts: list[bytes] = []
            size = 0
            for chunk in response.iter_bytes():
                parts.append(chunk)
                size += len(chunk)
                if size > MAX_BYTES:
                    raise KnowledgeGraphError(
                        f"{self.url}: the answer is longer than {MAX_BYTES} bytes; set a LIMIT"
                    )
                if time.monotonic() > end:
                    raise TimeoutError
        finally:
            response.close()
        return _as_utf8(b"".join(parts), response.charset_encoding)

    def _send(self, request: Request, timeout: float) -> httpx.Response:
        """Send a request; follow redirects within the origin, which keep method and query."""
        origin = url = httpx.URL(request.full_url)
        headers = dict(request.header_items()) | self._credentials
        for _ in range(REDIRECTS + 1):
            sent = self._client.build_request(
                "POST",
                url,
                content=cast("bytes", request.data),
                headers=headers,
                timeout=timeout,
            )
            response = self._client.send(sent, stream=True)
            if not response.has_redirect_location or response.status_code == codes.SEE_OTHER:
                break
            url = url.join(response.headers["Location"])
            if (url.scheme, url.host, url.port) != (origin.scheme, origin.host, origin.port):
                break
            response.close()
        return response

    def _check(self, response: httpx.Response) -> None:
        """Refuse errors, redirects and truncated results, whose missing rows would be cached."""
        code, reason = response.status_code, response.reason_phrase
        advice = {
            401: "asks for a login (401); set login or token of graph.endpoint",
            404: "not found (404); give the address of the SPARQL endpoint itself",
            206: "sends only a part of the result (206), because it limits rows",
        }
        if response.headers.get("X-SQL-State") == "S1TAT":  # Virtuoso; see kg.queries
            raise _TransientError("its time limit cut the answer short")
        if code in (408, 425, 429, 500, 502, 503, 504):
            raise _TransientError(f"{reason} ({code})", _retry_after(response))
        if code == 400:
            detail = _cut(response.read().decode("utf-8", "replace"))
            raise QueryRejectedError(f"{self.url} rejects the query: {detail}")
        if code in advice:
            raise KnowledgeGraphError(f"{self.url} {advice[code]}")
        if response.has_redirect_location:
            place = httpx.URL(self.url).join(response.headers["Location"])
            shown = place.copy_with(userinfo=b"", query=None, fragment=None)
            raise KnowledgeGraphError(
                f"{self.url} redirects to {shown}; if that is the endpoint, give its address"
            )
        if not response.is_success:
            raise KnowledgeGraphError(f"{self.url} refuses the query: {reason} ({code})")

    def _parse(self, body: bytes) -> SparqlResult:
        try:
            # Some servers write line ends and tabs in literals unescaped.
            result = json.loads(body.decode(), strict=False)
        except (ValueError, RecursionError) as error:
            raise KnowledgeGraphError(
                f"{self.url} does not answer with SPARQL results ({error}); give the address of "
                f"the SPARQL endpoint itself. It begins: {_cut(body.decode('utf-8', 'replace'))!r}"
            ) from error
        if isinstance(result, dict) and ("results" in result or "boolean" in result):
            return result
        raise KnowledgeGraphError(f"{self.url} answers with JSON that is no SPARQL result")


def _credentials(
    settings: EndpointSettings, user: str | None, password: str | None
) -> dict[str, str]:
    """Headers of the login in the settings, else of the login in the address."""
    headers = {name: resolve_secret(value) for name, value in settings.headers.items()}
    if settings.token is not None:
        return headers | {"Authorization": f"Bearer {resolve_secret(settings.token)}"}
    if settings.login is not None:
        login = resolve_secret(settings.login)
        register_secret(login.partition(":")[2])  # the password alone, too
    elif user is not None:
        login = f"{unquote(user)}:{register_secret(unquote(password or ''))}"
    else:
        return headers
    return headers | {
        "Authorization": f"Basic {register_secret(base64.b64encode(login.encode()).decode())}"
    }


def _as_utf8(body: bytes, charset: str | None) -> bytes:
    """The body as UTF-8, tried first: many servers announce a charset that they do not use."""
    for encoding in ("utf-8-sig", charset or "utf-8"):
        try:
            return body.decode(encoding).encode()
        except (UnicodeDecodeError, LookupError):
            continue
    return body


def _open_cache(settings: EndpointSettings) -> QueryCache | None:
    if settings.cache is None:
        return None
    if settings.cache != "default":
        return QueryCache(settings.cache)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        return QueryCache(base / "kg-guardrail" / "sparql.sqlite")
    except ConfigError as error:
        # The user did not name this file: a read-only home is no reason to fail.
        _LOG.warning("%s; going on without", error)
        return None


def _pause(state: RetryCallState) -> float:
    """Seconds until the next attempt."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, _TransientError) and error.retry_after_s is not None:
        return error.retry_after_s
    return BACKOFF_S * 2.0 ** (state.attempt_number - 1) * random.uniform(0.75, 1.25)


def _term(term: dict[str, Any]) -> Term:
    """Convert a term of SPARQL JSON; an IRI that represents a blank node becomes one."""
    value, language = str(term["value"]), term.get("xml:lang")
    kind = {"uri": "iri", "bnode": "blank"}.get(str(term["type"]), "literal")
    datatype = term.get("datatype")
    if kind == "literal" and not language:
        datatype = datatype or f"{XSD}string"
    elif kind == "iri" and is_blank(value):
        kind = "blank"
    return Term(kind, value, datatype, language)


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds that the server asks to wait, from either form of Retry-After."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:199] + "…"
