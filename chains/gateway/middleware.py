"""Middlewares of the gateway: metrics, keys and rates, bodies and concurrency, Azure's paths."""

from __future__ import annotations

import math
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chains.gateway.callers import Caller, identify, key_of, secrets_of
from chains.gateway.requests import CLIENT_CLOSED, PREFIX, RejectedError, error_response, read_body
from chains.gateway.streaming import CallerGoneError
from guardrail.core.errors import GuardrailError
from guardrail.core.http_clients import TokenBucket
from guardrail.core.secrets import hiding
from guardrail.core.types import MOST_SECONDS
from guardrail.log.records import tagged

if TYPE_CHECKING:
    from chains.gateway.metrics import Metrics
    from chains.gateway.settings import GatewaySettings

__all__ = [
    "ApiMiddleware",
    "AzurePathMiddleware",
    "Deployment",
    "RateLimits",
    "address_of",
]

READ_AHEAD = 4
"""Bodies that may be read at once for each place: reading holds up nobody, and is bounded."""
ADDRESS_BODIES = 64
"""Bodies in transit per address."""
REMEMBERED = 10_000
"""Addresses whose rate is remembered; the one unseen for longest is dropped."""
IPV6_NETWORK_BITS = 64
"""One caller has all addresses of such a network."""
AZURE_PATH = re.compile(
    r"/openai(?:/deployments/(?P<deployment>(?!\.{1,2}/)[^/]+)|/v1)?(?P<call>/[^/].*)"
)


class Deployment(NamedTuple):
    """The model in an address of Azure's kind, and the query, which names the API's version."""

    name: str | None
    query: str


class AzurePathMiddleware:
    """Serves ``/openai/deployments/NAME/…`` and ``/openai/v1/…`` as ``/v1/…``.

    Source: https://learn.microsoft.com/azure/ai-foundry/openai/reference
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Rewrite the path of a request; ``state.azure`` has its ``Deployment``."""
        if scope["type"] == "http" and (found := AZURE_PATH.fullmatch(scope["path"])):
            azure = Deployment(found["deployment"], scope["query_string"].decode("latin-1"))
            path = PREFIX + found["call"]
            state = scope.get("state", {}) | {"azure": azure}
            raw = quote(path).encode("ascii")
            scope = {**scope, "path": path, "raw_path": raw, "query_string": b"", "state": state}
        await self.app(scope, receive, send)


class ApiMiddleware:
    """Counts, authenticates and bounds the calls of the API; pages pass.

    Args:
        app: Serves the requests.
        metrics: Where they are counted.
        settings: Keys and bounds.
        paths: Paths of the API outside ``PREFIX``.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, settings: GatewaySettings, paths: frozenset[str]
    ) -> None:
        self.app = app
        self._paths = paths
        self._api = MetricsMiddleware(
            AuthMiddleware(BodyMiddleware(app, settings), settings), metrics
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        api = scope["type"] == "http" and (
            scope["path"].startswith(PREFIX + "/") or scope["path"] in self._paths
        )
        await (self._api if api else self.app)(scope, receive, send)


class MetricsMiddleware:
    """Counts requests, and answers errors of the middlewares below."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request and count it by route, status and caller."""
        status = 0
        state = scope.setdefault("state", {})

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        begin = time.perf_counter()
        self._metrics.in_work.inc()
        try:
            await self.app(scope, receive, noted)
        except CallerGoneError:
            pass
        except GuardrailError as error:
            await error_response(error)(scope, receive, noted)
        except Exception as error:
            status = status or 500
            self._metrics.failed_call(error, state)
            raise
        finally:
            self._metrics.in_work.dec()
            # The template: a path would make a series for each model's name.
            route = getattr(scope.get("route"), "path", "none")
            caller = state.get("caller")
            seconds = time.perf_counter() - begin
            self._metrics.request(
                route, status or CLIENT_CLOSED, seconds, caller.name if caller else ""
            )


class AuthMiddleware:
    """Finds the caller of a request by its key, within the rates of address and tenant."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings) -> None:
        self.app = app
        self._settings = settings
        self._rates = RateLimits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; ``state.caller`` has its caller.

        Raises:
            RejectedError: With status 401 or 429.
        """
        headers = Headers(scope=scope)
        caller = identify(self._settings, key_of(headers))
        with ExitStack() as stack:
            stack.enter_context(hiding(*secrets_of(headers)))
            if self._settings.address_per_minute:
                self._rates.take(("", address_of(scope)), self._settings.address_per_minute)
            if caller is None:
                raise RejectedError(
                    401,
                    "this gateway needs one of its keys",
                    "invalid_api_key",
                    {"www-authenticate": "Bearer"},
                )
            scope["state"]["caller"] = caller
            if caller.tenant and caller.tenant.per_minute:
                self._rates.take((caller.name, ""), caller.tenant.per_minute)
            if caller.name:
                stack.enter_context(tagged(tenant=caller.name))
            await self.app(scope, receive, send)


class BodyMiddleware:
    """Reads bodies and bounds the concurrent requests of all, an address and a tenant.

    A body is read before its request takes a place, so that a slow one holds up nobody.
    """

    def __init__(self, app: ASGIApp, settings: GatewaySettings) -> None:
        self.app = app
        self._settings = settings
        self._reading = Counter[str]()
        self._work = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request with its whole body.

        Raises:
            RejectedError: The body cannot be read, or there is no place.
            CallerGoneError: The caller went away.
        """
        settings, address = self._settings, address_of(scope)
        if self._reading.total() >= READ_AHEAD * settings.concurrency:
            raise _busy()
        if self._reading[address] >= ADDRESS_BODIES:
            raise _too_many("too many bodies in transit from one address")
        with _counted(self._reading, address):
            body = await read_body(
                receive, Headers(scope=scope), settings.max_body_bytes, settings.body_timeout_s
            )
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            return waiting.pop() if waiting else await receive()

        with self._place(address, scope["state"]["caller"]):
            await self.app(scope, replayed, send)

    @contextmanager
    def _place(self, address: str, caller: Caller) -> Iterator[None]:
        if self._work["all"] >= self._settings.concurrency:
            raise _busy()
        of_address, of_tenant = f"address {address}", f"tenant {caller.name}"
        if self._work[of_address] >= self._settings.most_of_an_address:
            raise _too_many("too many concurrent requests of one address")
        most = caller.tenant.concurrency if caller.tenant else None
        if most is not None and self._work[of_tenant] >= most:
            raise _too_many(f"too many concurrent requests of {caller.name}")
        with (
            _counted(self._work, "all"),
            _counted(self._work, of_address),
            _counted(self._work, of_tenant),
        ):
            yield


class RateLimits:
    """Requests per minute, for each name on its own; a minute's worth may come at once."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._buckets: OrderedDict[object, TokenBucket] = OrderedDict()

    def take(self, name: object, per_minute: float) -> None:
        """Count a request.

        Raises:
            RejectedError: With status 429 if there were too many in the last minute.
        """
        bucket = self._buckets.pop(name, None) or TokenBucket(per_minute / 60.0, per_minute)
        self._buckets[name] = bucket
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        if wait := bucket.wait():
            raise _too_many("more requests per minute than allowed", wait)
        bucket.take()


def address_of(scope: Scope) -> str:
    """The address of a request, for IPv6 the network; empty if unknown."""
    host = (scope.get("client") or ("",))[0]
    try:
        address = ip_address(host)
    except ValueError:
        return str(host)
    if isinstance(address, IPv6Address):
        return f"{int(address) >> (128 - IPV6_NETWORK_BITS):x}::"
    return host


@contextmanager
def _counted(counter: Counter[str], name: str) -> Iterator[None]:
    counter[name] += 1
    try:
        yield
    finally:
        counter[name] -= 1
        if not counter[name]:
            del counter[name]


def _busy() -> RejectedError:
    return RejectedError(503, "the gateway is busy", "overloaded", {"retry-after": "1"})


def _too_many(message: str, seconds: float = 1.0) -> RejectedError:
    wait = math.ceil(min(seconds, MOST_SECONDS))
    return RejectedError(429, message, "rate_limited", {"retry-after": str(wait)})
