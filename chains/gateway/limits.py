"""Limits of requests: size and speed of bodies, concurrency of all, an address and a tenant."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chains.gateway.requests import CallerGoneError, RejectedError, address_of, too_many
from chains.gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from chains.gateway.callers import Caller


class LimitsMiddleware:
    """Reads bodies and bounds concurrent requests.

    A body is read before its request takes a place, so that a slow one holds up nobody.
    """

    address_bodies: ClassVar = 64
    """Bodies in transit per address."""
    body_s: ClassVar = 120.0
    """Seconds until a body must be complete."""
    grace_s: ClassVar = 5.0
    """Seconds before the minimum rate of a body counts."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings) -> None:
        self.app = app
        self._most_bytes = settings.max_body_bytes
        self._places = settings.concurrency
        # Without keys nobody takes all places.
        self._address_places = self._places if settings.needs_key else max(1, self._places // 2)
        self._reading = Counter[str]()
        self._work = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request with its whole body; raises RejectedError."""
        address = address_of(scope)
        # Up to four bodies are read per place: reading blocks nobody, but needs a bound.
        if self._reading.total() >= 4 * self._places:
            raise _busy()
        if self._reading[address] >= self.address_bodies:
            raise too_many("too many bodies in transit from one address")
        with _counted(self._reading, address):
            body = await self._read_body(receive, Headers(scope=scope))
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            return waiting.pop() if waiting else await receive()

        with self._place(address, scope["state"]["caller"]):
            await self.app(scope, replayed, send)

    async def _read_body(self, receive: Receive, headers: Headers) -> bytes:
        """Read and unpack a body."""
        declared = headers.get("content-length", "")
        if declared.isdigit() and int(declared[:20]) > self._most_bytes:
            raise _too_large(self._most_bytes)
        body = await self._read_in_time(receive)
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding in ("", "identity"):
            return body
        if encoding not in ("gzip", "x-gzip"):
            message, accepted = "send the body plain or in gzip", {"accept-encoding": "gzip"}
            raise RejectedError(415, message, "unsupported_encoding", accepted)
        try:
            return await asyncio.to_thread(gunzip, body, self._most_bytes)
        except zlib.error as error:
            raise RejectedError(400, "the body is not valid gzip", "invalid_body") from error

    async def _read_in_time(self, receive: Receive) -> bytes:
        """Read a body, which must not be too large or too slow at any moment."""
        body = bytearray()
        begin, least_rate = time.monotonic(), 1024  # bytes per second
        while True:
            until = min(self.body_s, self.grace_s + len(body) / least_rate)
            try:
                async with asyncio.timeout(begin + until - time.monotonic()):
                    message = await receive()
            except TimeoutError as error:
                raise RejectedError(
                    408,
                    f"the body came too slowly: send it within {self.body_s:g} s, at "
                    f"{least_rate} bytes a second or more",
                    "request_timeout",
                    {"connection": "close"},  # the rest of the body is not read
                ) from error
            if message["type"] == "http.disconnect":
                raise CallerGoneError
            body += message.get("body", b"")
            if len(body) > self._most_bytes:
                raise _too_large(self._most_bytes)
            if not message.get("more_body", False):
                return bytes(body)

    @contextmanager
    def _place(self, address: str, caller: Caller) -> Iterator[None]:
        of_address, of_tenant = f"address {address}", f"tenant {caller.name}"
        if self._work["all"] >= self._places:
            raise _busy()
        if self._work[of_address] >= self._address_places:
            raise too_many("too many concurrent requests of one address")
        most = caller.tenant.concurrency if caller.tenant else None
        if most is not None and self._work[of_tenant] >= most:
            raise too_many(f"too many concurrent requests of {caller.name}")
        with _counted(self._work, "all", of_address, of_tenant):
            yield


@contextmanager
def _counted(counter: Counter[str], *names: str) -> Iterator[None]:
    counter.update(names)
    try:
        yield
    finally:
        counter.subtract(names)
        for name in names:
            if not counter[name]:
                del counter[name]


def _busy() -> RejectedError:
    return RejectedError(503, "the gateway is busy", "overloaded", {"retry-after": "1"})


def gunzip(body: bytes, most_bytes: int) -> bytes:
    """Unpack gzip, never more than the bound; raises RejectedError (413) or ``zlib.error``."""
    found, members = bytearray(), 0
    while body:  # members may follow one another, and each costs a copy of what is left
        members += 1
        if members > 32:
            raise zlib.error("too many members")
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        found += member.decompress(body, most_bytes + 1 - len(found))
        if len(found) > most_bytes:
            raise _too_large(most_bytes)
        if not member.eof:
            raise zlib.error("cut short")
        body = member.unused_data
    return bytes(found)


def _too_large(most_bytes: int) -> RejectedError:
    message = f"the request is larger than the {most_bytes} bytes allowed"
    return RejectedError(413, message, "request_too_large", {"connection": "close"})
