"""The gateway's door: who calls, is the body there, is there room; and what is counted of it."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chains.gateway.bounds import Bounds, address_of
from chains.gateway.reading import Body, read_in_time, replayed, unpacked
from chains.gateway.requests import PREFIX, error_response, unknown_key
from chains.gateway.streaming import CallerGoneError
from chains.gateway.tenants import Caller, key_or_password, secrets_of
from guardrail.core.errors import GuardrailError
from guardrail.core.secrets import hiding
from guardrail.log.records import tagged

if TYPE_CHECKING:
    from chains.gateway.metrics import Metrics
    from chains.gateway.settings import GatewaySettings

__all__ = ["Door"]


class Door:
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
