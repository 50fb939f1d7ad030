"""Admission of requests: keys, rates and room by address and tenant, whole bodies, metrics."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chains.gateway.requests import (
    PREFIX,
    Body,
    RejectedError,
    error_response,
    read_in_time,
    replayed,
    unknown_key,
    unpacked,
)
from chains.gateway.streaming import CallerGoneError
from chains.gateway.tenants import Caller, key_or_password, secrets_of
from guardrail.core.errors import GuardrailError
from guardrail.core.secrets import hiding
from guardrail.core.token_bucket import TokenBucket
from guardrail.core.types import MOST_SECONDS
from guardrail.log.records import tagged

if TYPE_CHECKING:
    from chains.gateway.metrics import Metrics
    from chains.gateway.settings import GatewaySettings
    from chains.gateway.tenants import Caller

__all__ = ["AuthMiddleware", "Bounds", "Rate", "address_of"]


class AuthMiddleware:
    """Lets requests in: by their key, whole, within the bounds of address and tenant.

    A body is read before its request takes one of the places, so that a slow one holds up nobody.

    Args:
        app: What serves them.
        metrics: Where they are counted.
        settings: Keys and bounds.
        paths: Paths that pass the door beside those below ``PREFIX``.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, settings: GatewaySettings, paths: frozenset[str]
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._settings = settings
        self._paths = paths
        self._bounds = Bounds(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why it is not served."""
        if scope["type"] != "http" or not self._guards(scope["path"]):
            await self._app(scope, receive, send)
            return
        status = 499  # what is logged where the caller went away

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        begin = time.perf_counter()
        headers = Headers(scope=scope)
        caller = self._settings.caller_with(key_or_password(headers))
        self._metrics.in_work.inc()
        try:
            with ExitStack() as held:
                held.enter_context(hiding(*secrets_of(headers)))
                try:
                    body = await self._let_in(scope, receive, caller, held)
                except CallerGoneError:
                    return
                except GuardrailError as error:
                    await error_response(error)(scope, receive, noting)
                    return
                assert caller is not None
                scope.setdefault("state", {})["caller"] = caller
                if caller.name:
                    held.enter_context(tagged(tenant=caller.name))
                status = 500
                try:
                    await self._app(scope, replayed(body, receive), noting)
                except Exception as error:  # no error of the protocol: nobody expected it
                    self._metrics.failed_call(error, scope["state"])
                    raise
        finally:
            self._metrics.in_work.dec()
            # The template, since paths would make a series for every model's name.
            route = getattr(scope.get("route"), "path", "none")
            tenant = "" if caller is None else caller.name
            self._metrics.request(route, status, time.perf_counter() - begin, tenant)

    def _guards(self, path: str) -> bool:
        return path.startswith(PREFIX + "/") or path in self._paths

    async def _let_in(
        self, scope: Scope, receive: Receive, caller: Caller | None, held: ExitStack
    ) -> bytes:
        """Read the body of a request and take a place for it.

        Raises:
            RejectedError: Its key is unknown, it is too slow or too large, or there is no room.
            CallerGoneError: Its caller went away.
        """
        address = address_of(scope)
        self._bounds.count(address, caller)
        if caller is None:
            raise unknown_key()
        settings, headers = self._settings, Headers(scope=scope)
        with self._bounds.reading(address):
            body = await read_in_time(
                receive,
                Body(
                    declared=headers.get("content-length", ""),
                    most_bytes=settings.max_body_bytes,
                    seconds=settings.body_timeout_s,
                    least_rate=settings.body_bytes_per_s,
                ),
            )
            body = await unpacked(
                body, headers.get("content-encoding", ""), settings.max_body_bytes
            )
        held.enter_context(self._bounds.place(address, caller))
        return body


READ_AHEAD = 4
"""Bodies that may be read at once for each place: enough that reading holds up nobody, few enough
to bound what they hold."""
REMEMBERED = 10_000
"""Most addresses whose rate is remembered; the one unseen for longest goes."""
NETWORK_BITS = 64
"""Of an IPv6 address: one caller has all addresses of such a network."""


def address_of(scope: Scope) -> str:
    """Where a request comes from; of IPv6 the network, empty where it is not known."""
    host = (scope.get("client") or ("",))[0]
    try:
        address = ip_address(host)
    except ValueError:
        return str(host)
    if isinstance(address, IPv6Address):
        return f"{int(address) >> (128 - NETWORK_BITS):x}::"
    return host


class Rate:
    """Requests a minute, each name for itself: a minute's worth may come at once."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, name: str, per_minute: float) -> float:
        """Take one request of a name; the seconds until there is room again, 0 where there is."""
        bucket = self._buckets.pop(name, None) or TokenBucket(per_minute / 60.0, per_minute)
        self._buckets[name] = bucket
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        wait = bucket.wait()
        if not wait:
            bucket.take()
        return wait


class Bounds:
    """Turns away what is too many."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._addresses = Rate()
        self._tenants = Rate()
        self._read = Counter[str]()
        self._work = Counter[str]()

    def count(self, address: str, caller: Caller | None) -> None:
        """Count a request of an address and of a tenant.

        Raises:
            RejectedError: With status 429, where a minute has seen too many.
        """
        per_minute = self._settings.address_per_minute
        wait = self._addresses.take(address, per_minute) if per_minute else 0.0
        tenant = caller.tenant if caller else None
        if not wait and caller is not None and tenant is not None and tenant.per_minute:
            wait = self._tenants.take(caller.name, tenant.per_minute)
        if wait:
            raise _too_many("more requests a minute than allowed", wait)

    @contextmanager
    def reading(self, address: str) -> Iterator[None]:
        """Hold room for a body that is being read.

        Raises:
            RejectedError: With status 429 for the address, 503 for all.
        """
        if self._read.total() >= READ_AHEAD * self._settings.concurrency:
            raise _busy()
        if self._read[address] >= self._settings.address_bodies:
            raise _too_many("too many bodies on their way from one address", 1.0)
        with _counted(self._read, address):
            yield

    @contextmanager
    def place(self, address: str, caller: Caller) -> Iterator[None]:
        """Hold a place for a request in work.

        Raises:
            RejectedError: With status 429 for the address or the tenant, 503 for all.
        """
        of_tenant, of_address = f"tenant {caller.name}", f"address {address}"
        if self._work["all"] >= self._settings.concurrency:
            raise _busy()
        if self._work[of_address] >= self._settings.most_of_an_address:
            raise _too_many("too many requests in work from one address", 1.0)
        most = caller.tenant.concurrency if caller.tenant else None
        if most is not None and self._work[of_tenant] >= most:
            raise _too_many(f"too many requests in work of {caller.name}", 1.0)
        with ExitStack() as held:
            for name in ("all", of_tenant, of_address):
                held.enter_context(_counted(self._work, name))
            yield


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


def _too_many(what: str, seconds: float) -> RejectedError:
    wait = math.ceil(min(seconds, MOST_SECONDS))
    return RejectedError(429, what, "rate_limited", {"retry-after": str(wait)})
