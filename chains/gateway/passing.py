"""Calls that are passed on to the upstream as they are: their replies hold nothing to judge."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import Response

from chains.gateway.requests import JSON_TYPE, PREFIX, RejectedError, read_body
from chains.gateway.streaming import unless_gone
from chains.openai_wire import Reply

if TYPE_CHECKING:
    from chains.gateway.upstream import Upstream

__all__ = ["UNTOUCHED", "pass_on", "response_of"]

UNTOUCHED = (
    ("GET", "models"),
    ("GET", "models/{rest:path}"),
    ("POST", "embeddings"),
    ("POST", "moderations"),
    ("POST", "audio/speech"),
    ("POST", "audio/transcriptions"),
    ("POST", "audio/translations"),
    ("POST", "images/generations"),
    ("POST", "images/edits"),
    ("POST", "images/variations"),
)
"""Calls whose replies hold no answer of a language model; they are passed on as they are."""
PLAIN_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[\w.:@+~ -]+)+/?")
"""A path without steps upwards, which would lead to calls that are judged or refused."""


async def pass_on(request: Request, upstream: Upstream) -> Response:
    """Send a call to the upstream and return its reply.

    Raises:
        RejectedError: Its path leads elsewhere, or its body is of another type.
        UpstreamUnreachableError: There is no reply.
    """
    content = b""
    if request.method != "GET":
        content = await read_body(request, JSON_TYPE, "multipart/form-data")
    path = request.url.path.removeprefix(PREFIX)
    if not PLAIN_PATH.fullmatch(path):
        raise RejectedError(400, "the path is not one of this gateway's", "invalid_path")
    query = f"?{request.url.query}" if request.url.query else ""

    async def exchange() -> Reply:
        async with upstream.open(request.method, path + query, request.headers, content) as found:
            return await upstream.read(found)

    return response_of(await unless_gone(request.receive, exchange()))


def response_of(reply: Reply, kind: str | None = None) -> Response:
    """A reply of the upstream as the gateway's own.

    Args:
        reply: Status, headers and body.
        kind: Media type, where it is another one now.
    """
    response = Response(reply.body, reply.status)
    drop = {"content-type"} if kind else set()
    response.raw_headers += [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in reply.headers
        if name.lower() not in drop
    ]
    if kind:
        response.headers["content-type"] = kind
    return response
