"""Azure's addresses, served as those of the OpenAI protocol."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from starlette.types import ASGIApp, Receive, Scope, Send

from chains.gateway.requests import PREFIX, local_path

__all__ = ["AzurePathMiddleware", "Deployment"]


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
        """Serve a request."""
        address = r"/openai(?:/deployments/(?P<deployment>(?!\.{1,2}/)[^/]+)|/v1)?(?P<call>/[^/].*)"
        if scope["type"] == "http" and (found := re.fullmatch(address, local_path(scope))):
            azure = Deployment(found["deployment"], scope["query_string"].decode("latin-1"))
            path = scope.get("root_path", "") + PREFIX + found["call"]
            state = scope.get("state", {}) | {"azure": azure}
            raw = quote(path).encode("ascii")
            scope = {**scope, "path": path, "raw_path": raw, "query_string": b"", "state": state}
        await self.app(scope, receive, send)
