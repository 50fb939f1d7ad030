"""Sends queries to a SPARQL 1.1 endpoint: retries, back-off, deadlines, typed errors, cache."""

from __future__ import annotations

import json
import logging
import random
import time
import urllib.error
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field
from SPARQLWrapper import JSON, SPARQLExceptions, SPARQLWrapper
from tenacity import RetryCallState, Retrying, retry_if_exception_type

from guardrail.errors import ConfigError, KnowledgeGraphError
from guardrail.types import Value
from kg.cache import QueryCache, default_cache_path

__all__ = ["Cell", "Endpoint", "EndpointSettings", "QueryRejectedError"]

_LOG = logging.getLogger(__name__)
_RESULT_TYPES = ("application/sparql-results+json", "application/json", "text/json")
_GRAPH_TYPES = ("text/turtle", "application/n-triples", "application/x-turtle", "text/plain")
_TRANSIENT_STATUS = (408, 425, 429, 500, 502, 503, 504)
_CHUNK = 1 << 16
_SHOWN = 200


class EndpointSettings(Value):
    """How to talk to an endpoint.

    Attributes:
        timeout_s: Seconds that one attempt may take, reading included.
        deadline_s: Seconds for one query with all its attempts and pauses.
        attempts: Attempts at one query; 1 switches retrying off.
        backoff_s: Seconds before the second attempt, doubled before each further one; a
            ``Retry-After`` of the server takes precedence.
        method: How queries are sent; POST has no limit of length.
        user_agent: Wikidata asks for one that names the tool and a contact.
        cache: File of the shared query cache; None switches it off, ``default`` is
            ``kg-guardrail/sparql.sqlite`` in the user's cache folder.
        cache_expire_s: Seconds until a stored result is stale.
        batch: Ids or labels that go into one query.
        max_bytes: Longest answer that is read.
    """

    timeout_s: float = Field(default=30.0, gt=0)
    deadline_s: float = Field(default=90.0, gt=0)
    attempts: int = Field(default=4, ge=1, le=20)
    backoff_s: float = Field(default=0.5, ge=0)
    method: Literal["POST", "GET"] = "POST"
    user_agent: str = "kg-guardrail/0.1 (knowledge graph guardrail; SPARQLWrapper)"
    cache: Path | Literal["default"] | None = "default"
    cache_expire_s: float = Field(default=86_400.0, gt=0)
    batch: int = Field(default=50, ge=1, le=1000)
    max_bytes: int = Field(default=256 * 2**20, ge=1)


class Cell(Value):
    """One bound variable of a solution: a node (``uri``, ``bnode``) or a literal."""

    type: str
    value: str
    datatype: str | None = None
    language: str | None = None


class QueryRejectedError(KnowledgeGraphError):
    """The endpoint cannot read the query (400)."""


class _TransientError(Exception):
    """A failure that may pass: worth another attempt."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Endpoint:
    """A SPARQL endpoint. Safe to use from several threads.

    Args:
        url: Its address.
        settings: Time limits, retries, cache.
    """

    def __init__(self, url: str, settings: EndpointSettings) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is not the address of an endpoint; it starts with https://")
        self.url = url
        self.settings = settings
        self._cache = _open_cache(settings)

    def select(self, query: str) -> list[dict[str, Cell]]:
        """Run a SELECT and return its solutions, from the cache where it is fresh.

        Raises:
            KnowledgeGraphError: If the endpoint gives no SPARQL result in the time allowed.
        """
        body = None if self._cache is None else self._cache.get(self.url, query)
        if body is not None:
            return self.solutions(self._parse(body))
        body = self.fetch(query)
        solutions = self.solutions(self._parse(body))
        if self._cache is not None:
            self._cache.put(self.url, query, body)
        return solutions

    def json(self, query: str) -> dict[str, Any]:
        """Run a SELECT or ASK, past the cache, and return the SPARQL JSON result."""
        return self._parse(self.fetch(query))

    def solutions(self, result: dict[str, Any]) -> list[dict[str, Cell]]:
        """Read the solutions of a SPARQL JSON result.

        Raises:
            KnowledgeGraphError: If it does not have the standard's shape.
        """
        try:
            return [
                {name: _cell(term) for name, term in solution.items()}
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

        def stop(state: RetryCallState) -> bool:
            pause = state.upcoming_sleep
            return state.attempt_number >= settings.attempts or time.monotonic() + pause >= end

        retrying = Retrying(
            retry=retry_if_exception_type(_TransientError),
            wait=self._pause,
            stop=stop,
            reraise=True,
        )
        try:
            return retrying(self._attempt, query, graph=graph, end=end)
        except _TransientError as error:
            tries = retrying.statistics.get("attempt_number", 1)
            times = "once" if tries == 1 else f"{tries} times"
            raise KnowledgeGraphError(f"{self.url}: {error}; tried {times}") from error

    def close(self) -> None:
        """Close the cache."""
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
        timeout = min(settings.timeout_s, max(0.01, end - time.monotonic()))
        wrapper = SPARQLWrapper(self.url, agent=settings.user_agent)
        # Set past setQuery, which would guess the kind of query from its text.
        wrapper.queryString = query
        wrapper.queryType = "CONSTRUCT" if graph else "SELECT"
        wrapper.setMethod(settings.method)
        wrapper.setReturnFormat("turtle" if graph else JSON)
        # urllib takes fractions of a second, which setTimeout would cut off.
        wrapper.timeout = timeout  # type: ignore[assignment]
        try:
            return self._read(wrapper, timeout, graph=graph)
        except SPARQLExceptions.SPARQLWrapperException as error:
            # Raised for some statuses in place of the HTTPError, which knows the headers.
            failure = error.__context__
            if not isinstance(failure, urllib.error.HTTPError):
                raise KnowledgeGraphError(f"{self.url}: {_cut(str(error))}") from error
            raise self._status_error(failure, str(error)) from error
        except urllib.error.HTTPError as error:
            raise self._status_error(error, "") from error
        except TimeoutError as error:
            raise _TransientError(f"no answer within {timeout:.3g} s") from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, TimeoutError):
                raise _TransientError(f"no answer within {timeout:.3g} s") from error
            raise _TransientError(f"cannot be reached ({reason})") from error
        except ValueError as error:
            raise KnowledgeGraphError(f"{self.url!r} cannot be queried: {error}") from error

    def _status_error(self, failure: urllib.error.HTTPError, said: str) -> Exception:
        """What an HTTP status means, and what to do about it."""
        code, url = failure.code, self.url
        pause = _retry_after(failure)
        failure.close()
        if code in _TRANSIENT_STATUS:
            return _TransientError(f"{failure.reason} ({code})", pause)
        if code == 400:
            return QueryRejectedError(f"{url} rejects the query: {_cut(said)}")
        if code == 401:
            return KnowledgeGraphError(f"{url} asks for a login (401)")
        if code == 404:
            return KnowledgeGraphError(
                f"{url}: not found (404); give the address of the SPARQL endpoint itself"
            )
        if code == 414:
            return KnowledgeGraphError(
                f'{url}: the query is too long for GET (414); set method = "POST"'
            )
        return KnowledgeGraphError(f"{url} refuses the query: {failure.reason} ({code})")

    def _read(self, wrapper: SPARQLWrapper, timeout: float, *, graph: bool) -> bytes:
        """Send the query and read the answer, giving up when the time is over.

        The socket's own timeout counts from byte to byte: a server that drips would hold the
        caller for ever.
        """
        end = time.monotonic() + timeout
        response = wrapper.query().response
        with response:
            media = response.headers.get_content_type()
            parts: list[bytes] = []
            size = 0
            while chunk := response.read1(_CHUNK):
                parts.append(chunk)
                size += len(chunk)
                if size > self.settings.max_bytes:
                    raise KnowledgeGraphError(
                        f"{self.url}: the answer is longer than {self.settings.max_bytes} bytes; "
                        "set a LIMIT or raise max_bytes"
                    )
                if time.monotonic() > end:
                    raise TimeoutError
        body = b"".join(parts)
        if media not in (_GRAPH_TYPES if graph else _RESULT_TYPES):
            start = _cut(body.decode("utf-8", "replace"))
            hint = " (a web page)" if "html" in media else ""
            raise KnowledgeGraphError(
                f"{self.url} answers with {media}{hint}, not with SPARQL results; give the "
                f"address of the SPARQL endpoint itself. It begins: {start!r}"
            )
        return body

    def _parse(self, body: bytes) -> dict[str, Any]:
        try:
            result = json.loads(body)
            if isinstance(result, dict) and ("results" in result or "boolean" in result):
                return result
        except ValueError as error:
            raise KnowledgeGraphError(
                f"{self.url} breaks off or sends malformed JSON: {error}"
            ) from error
        raise KnowledgeGraphError(f"{self.url} answers with JSON that is no SPARQL result")


def _open_cache(settings: EndpointSettings) -> QueryCache | None:
    if settings.cache is None:
        return None
    if settings.cache != "default":
        return QueryCache(settings.cache, expire_s=settings.cache_expire_s)
    try:
        return QueryCache(default_cache_path(), expire_s=settings.cache_expire_s)
    except ConfigError as error:
        # Nobody asked for this file by name: a read-only home is no reason to fail.
        _LOG.warning("%s; going on without", error)
        return None


def _cell(term: dict[str, Any]) -> Cell:
    return Cell(
        type=str(term["type"]),
        value=str(term["value"]),
        datatype=term.get("datatype"),
        language=term.get("xml:lang"),
    )


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    """Seconds that the server asks to wait, from either form of Retry-After."""
    text = (error.headers.get("Retry-After") or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
