"""Counts the gateway's requests, and turns away those that are too many."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chains.gateway.metrics import Metrics
from chains.gateway.requests import RejectedError, error_response

__all__ = ["PREFIX", "Counted"]

PREFIX = "/v1"
"""Begins the paths of the calls that are counted."""


class Counted:
    """Counts requests, and turns away those that are too many.

    Args:
        app: What serves them.
        metrics: Where they are counted.
        concurrency: Most requests in work at once.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, concurrency: int) -> None:
        self._app = app
        self._metrics = metrics
        self._concurrency = concurrency
        self._in_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer that the gateway is busy."""
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX + "/"):
            await self._app(scope, receive, send)
            return
        status = 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        begin = time.perf_counter()
        self._in_work += 1
        self._metrics.in_work.inc()
        try:
            if self._in_work > self._concurrency:
                busy = RejectedError(503, "the gateway is busy", "overloaded", {"retry-after": "1"})
                await error_response(busy)(scope, receive, noting)
            else:
                await self._app(scope, receive, noting)
        finally:
            self._in_work -= 1
            self._metrics.in_work.dec()
            # The template, since paths would make a series for every model's name.
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.request(route, status, time.perf_counter() - begin)
