"""Sends queries to a SPARQL 1.1 endpoint: login, retries, deadlines, typed errors, cache."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from typing import cast
from urllib.parse import unquote, urlsplit

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type

from guardrail.core.errors import ConfigError, KnowledgeGraphError
from guardrail.core.http_clients import reading_environment
from guardrail.core.secrets import get_logger, register_secret, resolve_secret
from guardrail.core.types import CacheUse, Usage
from kg.blank_nodes import is_blank
from kg.cache import QueryCache, default_cache_path
from kg.dialects import Dialect, dialect_of
from kg.endpoint_settings import CACHE_S, PAUSE_S, EndpointSettings
from kg.results import Term
from kg.sparql_request import SparqlResult, WireTerm, build_request
from kg.traffic import CircuitBreaker, RateLimit

__all__ = ["XSD_STRING", "Endpoint", "QueryRejectedError"]

_LOG = get_logger(__name__)
_RESULT_TYPES = ("application/sparql-results+json", "application/json", "text/json")
_GRAPH_TYPES = ("text/turtle", "application/n-triples", "application/x-turtle", "text/plain")
# Types that say nothing of the content: it is read, and is a result or not.
_NO_TYPES = ("", "application/octet-stream", "binary/octet-stream", "text/plain")
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
_TRANSIENT_STATUS = (408, 425, 429, 500, 502, 503, 504)
_PARTIAL = 206
# SQLSTATE of Virtuoso for a query that its time limit stopped; see kg.dialects.
_OUT_OF_TIME = "S1TAT"
_SHOWN = 200
XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


class QueryRejectedError(KnowledgeGraphError):
    """The endpoint cannot read the query (400)."""


class _TransientError(Exception):
    """A temporary failure that is worth another attempt.

    Attributes:
        retry_after_s: Seconds until the next attempt; None if unknown.
        ours: True if our own limits delayed the query, so that the endpoint is not to blame.
    """

    def __init__(
        self, message: str, retry_after_s: float | None = None, *, ours: bool = False
    ) -> None:
        super().__init__(message)
        self.retry_after_s, self.ours = retry_after_s, ours


class Endpoint:
    """A SPARQL endpoint. Safe to use from several threads.

    Args:
        url: Its address.
        settings: Time limits, retries, cache.
        dialect: The dialect in the profile; settings and address take precedence.
    """

    def __init__(self, url: str, settings: EndpointSettings, *, dialect: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is not the address of an endpoint; it starts with https://")
        # The login goes into a header, and the address is then free of it.
        self.url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self.settings = settings
        self._credentials = _credentials(settings, parts.username, parts.password)
        # What one login may read is no answer for another.
        self._cached_as = self.url + (
            hashlib.sha256(repr(self._credentials).encode()).hexdigest()
            if self._credentials
            else ""
        )
        self.dialect: Dialect = dialect_of(url, settings.dialect, dialect)
        self._cache = _open_cache(settings)
        self._rate = RateLimit(settings.per_second)
        self._breaker = CircuitBreaker(settings.failures, PAUSE_S)
        with reading_environment():
            self._client = httpx.Client(
                limits=httpx.Limits(
                    max_connections=settings.connections,
                    max_keepalive_connections=settings.connections,
                ),
            )
        # Graphs are often dropped without being closed.
        weakref.finalize(self, self._client.close)
        self._pool = ThreadPoolExecutor(settings.connections, thread_name_prefix="sparql")

    def select_all(self, queries: Sequence[str]) -> list[list[dict[str, Term]]]:
        """Run n SELECTs at once, as many as there are connections; see ``select``."""
        if len(queries) < 2:
            return [self.select(query) for query in queries]
        return list(self._pool.map(self.select, queries))

    def select(self, query: str) -> list[dict[str, Term]]:
        """Run a SELECT and return its solutions, from the cache where it is fresh.

        Raises:
            KnowledgeGraphError: If the endpoint gives no SPARQL result in the time allowed.
        """
        body = None if self._cache is None else self._cache.get(self._cached_as, query)
        if body is not None:
            return self.solutions(self._parse(body))
        body = self.fetch(query)
        solutions = self.solutions(self._parse(body))
        if self._cache is not None:
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
        """Read the solutions of a SPARQL JSON result.

        Raises:
            KnowledgeGraphError: If it does not have the standard's shape.
        """
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
        """Run a query, past the cache, and return the body of the answer.

        Args:
            query: The query.
            graph: Ask for Turtle (CONSTRUCT, DESCRIBE) instead of SPARQL JSON.
        """
        settings = self.settings
        end = time.monotonic() + settings.deadline_s
        failures: list[_TransientError] = []

        def note(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            if isinstance(error, _TransientError) and not error.ours:
                failures.append(error)

        def stop(state: RetryCallState) -> bool:
            pause = state.upcoming_sleep
            return state.attempt_number >= settings.attempts or time.monotonic() + pause >= end

        retrying = Retrying(
            retry=retry_if_exception_type(_TransientError),
            wait=self._pause,
            stop=stop,
            after=note,
            reraise=True,
        )
        if wait := self._breaker.closed_in():
            raise KnowledgeGraphError(
                f"{self.url} failed {settings.failures} times in a row; the next query is sent "
                f"in {wait:.3g} s"
            )
        try:
            body: bytes = retrying(self._attempt, query, graph=graph, end=end)
        except _TransientError as error:
            if failures:
                self._breaker.failed()
            else:
                self._breaker.skipped()
            tries = retrying.statistics.get("attempt_number", 1)
            times = "once" if tries == 1 else f"{tries} times"
            raise KnowledgeGraphError(f"{self.url}: {error}; tried {times}") from error
        except BaseException:
            # The endpoint answers, if only to refuse.
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return body

    def close(self) -> None:
        """Close connections and cache."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()
        if self._cache is not None:
            self._cache.close()

    def _pause(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, _TransientError) and error.retry_after_s is not None:
            return error.retry_after_s
        backoff = self.settings.backoff_s * 2.0 ** (state.attempt_number - 1)
        return backoff * random.uniform(0.75, 1.25)

    def _attempt(self, query: str, *, graph: bool, end: float) -> bytes:
        settings = self.settings
        came = time.monotonic()
        if not self._rate.take(end):
            taken = f"our {settings.per_second:g} queries a second to it are taken"
            raise _TransientError(taken, math.inf, ours=True)
        waited = time.monotonic() - came
        timeout = min(settings.timeout_s, max(0.01, end - time.monotonic()))
        try:
            request = build_request(
                self._client,
                self.url,
                query,
                method="POST",
                dialect=self.dialect,
                timeout_s=timeout,
                agent=settings.user_agent,
                graph=graph,
            )
            request.headers.update(self._credentials)
            return self._read(request, timeout, graph=graph)
        except httpx.PoolTimeout as error:
            busy = f"our {settings.connections} connections to it are busy"
            raise _TransientError(busy, ours=True) from error
        except (httpx.TimeoutException, TimeoutError) as error:
            # Where the wait for a turn took most of the time, the endpoint was given too little.
            ours = timeout < min(settings.timeout_s, waited)
            raise _TransientError(f"no answer within {timeout:.3g} s", ours=ours) from error
        except httpx.TransportError as error:
            raise _TransientError(f"cannot be reached ({error})") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise KnowledgeGraphError(f"{self.url!r} cannot be queried: {error}") from error

    def _status_error(self, response: httpx.Response) -> Exception:
        """What an HTTP status means, and what to do about it."""
        code, url = response.status_code, self.url
        reason = response.reason_phrase
        if code in _TRANSIENT_STATUS:
            return _TransientError(f"{reason} ({code})", _retry_after(response))
        if code == 400:
            said = response.read().decode("utf-8", "replace")
            return QueryRejectedError(f"{url} rejects the query: {_cut(said)}")
        if code == 401:
            return KnowledgeGraphError(
                f"{url} asks for a login (401); set user and password, or token, of graph.endpoint"
            )
        if code == 404:
            return KnowledgeGraphError(
                f"{url}: not found (404); give the address of the SPARQL endpoint itself"
            )
        if code == 414:
            return KnowledgeGraphError(
                f'{url}: the query is too long for GET (414); set method = "POST"'
            )
        return KnowledgeGraphError(f"{url} refuses the query: {reason} ({code})")

    def _read(self, request: httpx.Request, timeout: float, *, graph: bool) -> bytes:
        """Send the query and read the answer, giving up when the time is over.

        The socket's own timeout counts from byte to byte: a server that drips would hold the
        caller for ever.
        """
        end = time.monotonic() + timeout
        response = self._send(request)
        try:
            if not response.is_success:
                raise self._status_error(response)
            self._check_whole(response)
            media = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            parts: list[bytes] = []
            size = 0
            for chunk in response.iter_bytes():
                parts.append(chunk)
                size += len(chunk)
                if size > self.settings.max_bytes:
                    raise KnowledgeGraphError(
                        f"{self.url}: the answer is longer than {self.settings.max_bytes} bytes; "
                        "set a LIMIT or raise max_bytes"
                    )
                if time.monotonic() > end:
                    raise TimeoutError
        finally:
            response.close()
        body = _as_utf8(b"".join(parts), response.charset_encoding)
        untyped = media in _NO_TYPES and (graph or body.lstrip()[:1] == b"{")
        if media not in (_GRAPH_TYPES if graph else _RESULT_TYPES) and not untyped:
            start = _cut(body.decode("utf-8", "replace"))
            hint = " (a web page)" if "html" in media else ""
            raise KnowledgeGraphError(
                f"{self.url} answers with {media or 'no type'}{hint}, not with SPARQL results; "
                f"give the address of the SPARQL endpoint itself. It begins: {start!r}"
            )
        return body

    def _send(self, request: httpx.Request) -> httpx.Response:
        """Send a query, and send it again, body included, where the server redirects to.

        Browsers make a GET of a POST that is redirected with 301 or 302, which would lose the
        query. Credentials are sent to the origin that they are for alone.
        """
        for _ in range(_MOST_REDIRECTS + 1):
            response = self._client.send(request, stream=True)
            place = response.headers.get("Location")
            if response.status_code not in _REDIRECTS or not place:
                return response
            response.close()
            target = request.url.join(place).copy_with(userinfo=b"")
            if target.scheme not in ("http", "https"):
                break
            headers = request.headers.copy()
            dropped = {"host"}
            if not _same_origin(request.url, target):
                dropped |= {"authorization", *map(str.lower, self._credentials)}
            see_other = response.status_code == 303
            if see_other:
                dropped |= {"content-length", "content-type"}
            for name in dropped & headers.keys():
                del headers[name]
            request = self._client.build_request(
                "GET" if see_other else request.method,
                target,
                content=None if see_other else request.content,
                headers=headers,
                extensions=request.extensions,
            )
        raise KnowledgeGraphError(
            f"{self.url} redirects to no endpoint; give the address that it redirects to"
        )

    def _check_whole(self, response: httpx.Response) -> None:
        """Refuse a truncated result: missing rows would count as unknown, and be cached."""
        if response.headers.get("X-SQL-State") == _OUT_OF_TIME:
            raise _TransientError("its time limit cut the answer short")
        if response.status_code == _PARTIAL:
            raise KnowledgeGraphError(
                f"{self.url} sends only a part of the result, because it limits rows; set a lower "
                "batch"
            )

    def _parse(self, body: bytes) -> SparqlResult:
        try:
            # Some servers write line ends and tabs in literals as they are.
            result = json.loads(body.decode(), strict=False)
        except (ValueError, RecursionError) as error:
            raise KnowledgeGraphError(
                f"{self.url} breaks off or sends malformed JSON: {error}"
            ) from error
        if isinstance(result, dict) and ("results" in result or "boolean" in result):
            return cast("SparqlResult", result)
        raise KnowledgeGraphError(f"{self.url} answers with JSON that is no SPARQL result")


def _credentials(
    settings: EndpointSettings, user: str | None, password: str | None
) -> dict[str, str]:
    """Headers of the login in the settings, else of the login in the address."""
    headers = {name: resolve_secret(value) for name, value in settings.headers.items()}
    if settings.token is not None:
        return headers | {"Authorization": f"Bearer {resolve_secret(settings.token)}"}
    if settings.user is not None and settings.password is not None:
        login = f"{settings.user}:{resolve_secret(settings.password)}"
    elif user is not None:
        login = f"{unquote(user)}:{register_secret(unquote(password or ''))}"
    else:
        return headers
    return headers | {
        "Authorization": f"Basic {register_secret(base64.b64encode(login.encode()).decode())}"
    }


def _same_origin(old: httpx.URL, new: httpx.URL) -> bool:
    """True if credentials for one address may go to the other: same origin, or its https."""
    if old.host != new.host:
        return False
    upgraded = (old.scheme, new.scheme) == ("http", "https")
    return (old.scheme == new.scheme or upgraded) and old.port == new.port


def _as_utf8(body: bytes, charset: str | None) -> bytes:
    """The body as UTF-8 without byte order mark.

    UTF-8 is tried first: many servers announce a default charset that they do not use.
    """
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
        return QueryCache(settings.cache, expire_s=CACHE_S)
    try:
        return QueryCache(default_cache_path(), expire_s=CACHE_S)
    except ConfigError as error:
        # The user did not name this file: a read-only home is no reason to fail.
        _LOG.warning("%s; going on without", error)
        return None


def _term(term: WireTerm) -> Term:
    """Convert a term of SPARQL JSON; an IRI that represents a blank node becomes one."""
    value, language = str(term["value"]), term.get("xml:lang")
    kind = {"uri": "iri", "bnode": "blank"}.get(str(term["type"]), "literal")
    datatype = term.get("datatype")
    if kind == "literal" and not language:
        datatype = datatype or XSD_STRING
    elif kind == "iri" and is_blank(value):
        kind = "blank"
    return Term(kind=kind, value=value, datatype=datatype, language=language)


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
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
