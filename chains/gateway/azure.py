"""Azure OpenAI's addresses: ``/openai/deployments/NAME/…`` and ``/openai/v1/…``.

Source: https://learn.microsoft.com/azure/ai-foundry/openai/reference
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from chains.gateway.requests import PREFIX

if TYPE_CHECKING:
    from chains.gateway.upstream import Upstream

__all__ = ["AzurePathMiddleware", "Deployment", "deployment_of", "upstream_path"]

PATH = re.compile(
    r"/openai(?:/deployments/(?P<deployment>(?!\.{1,2}/)[^/]+)|/v1)?(?P<call>/[^/].*)"
)


class Deployment(NamedTuple):
    """The model that an address names, and the version of the API, as the query writes it."""

    name: str | None
    query: str


class AzurePathMiddleware:
    """Serves the addresses that Azure's clients call as those of OpenAI."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Rewrite the path of a call."""
        if scope["type"] == "http" and (found := PATH.fullmatch(scope["path"])):
            azure = Deployment(found["deployment"], scope["query_string"].decode("latin-1"))
            path = PREFIX + found["call"]
            raw = quote(path).encode("ascii")
            state = scope.get("state", {}) | {"azure": azure}
            scope = {**scope, "path": path, "raw_path": raw, "query_string": b"", "state": state}
        await self.app(scope, receive, send)


def deployment_of(request: Request) -> Deployment | None:
    """The deployment that a call's address names; None for an address of OpenAI's form."""
    found: Deployment | None = request.scope.get("state", {}).get("azure")
    return found


def upstream_path(request: Request, upstream: Upstream) -> str:
    """The path and query of a call behind the upstream's address.

    An Azure resource gets deployment and version as the caller wrote them; for any other server
    the deployment is the model of that name.
    """
    path = request.url.path.removeprefix(PREFIX)
    azure = deployment_of(request)
    if azure is None:
        return path + (f"?{request.url.query}" if request.url.query else "")
    if not upstream.azure:
        return path
    deployment = f"/deployments/{quote(azure.name, safe='')}" if azure.name else ""
    return f"{deployment}{path}" + (f"?{azure.query}" if azure.query else "")
