"""Calls that are forwarded to the upstream, and replies of the upstream as the gateway's own."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import Response

from chains.gateway.requests import JSON_TYPE, PREFIX, RejectedError, require_type
from chains.gateway.streaming import unless_gone
from chains.openai_errors import failed_reply
from chains.openai_fields import identifier, sealed
from chains.openai_wire import Reply, reply_body

if TYPE_CHECKING:
    from chains.gateway.upstream import Upstream

__all__ = ["MEDIA", "TEXTLESS", "forward", "response_of"]

TEXTLESS = (
    ("GET", "models"),
    ("GET", "models/{rest:path}"),
    ("POST", "embeddings"),
    ("POST", "moderations"),
)
"""Calls whose replies are numbers, names and truth values; anything else in them is dropped."""
MEDIA = (
    "audio/speech",
    "audio/transcriptions",
    "audio/translations",
    "images/generations",
    "images/edits",
    "images/variations",
)
"""Calls whose replies may hold any text, written, spoken or drawn."""
MOST_NESTED = 8
PLAIN_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[\w.:@+~ -]+)+/?")
"""A path without steps upwards, which would lead to calls that are judged or refused."""


async def forward(request: Request, upstream: Upstream, *, media: bool) -> Response:
    """Send a call to the upstream and return its reply.

    Args:
        request: The call.
        upstream: The model's server.
        media: Whether the reply may be of any kind, rather than JSON without a text.

    Raises:
        RejectedError: Its path leads elsewhere, or its body is of another type.
        UpstreamUnreachableError: There is no reply.
        UnreadableReplyError: The reply is not JSON.
    """
    content = b""
    if request.method != "GET":
        content = await require_type(request, JSON_TYPE, "multipart/form-data")
    if not PLAIN_PATH.fullmatch(request.url.path.removeprefix(PREFIX)):
        raise RejectedError(400, "the path is not one of this gateway's", "invalid_path")
    path = upstream.path_of(request, PREFIX)

    async def exchange() -> Reply:
        async with upstream.open(request.method, path, request.headers, content) as response:
            return await upstream.read(response)

    reply = await unless_gone(request.receive, exchange())
    if (failed := await asyncio.to_thread(failed_reply, reply)) is not None:
        return response_of(failed)
    if media:
        return response_of(reply)
    body = await asyncio.to_thread(lambda: _without_text(reply_body(reply), MOST_NESTED))
    return response_of(reply._replace(body=json.dumps(body).encode()), JSON_TYPE)


def _without_text(value: object, depth: int) -> object:
    """The numbers, truth values and names in a value; None if there are none."""
    if isinstance(value, dict | list) and not depth:
        return None
    if isinstance(value, list):
        if all(type(item) is float for item in value):  # an embedding; there may be many
            return value
        return [held for item in value if (held := _without_text(item, depth - 1)) is not None]
    if isinstance(value, dict):
        named = {name: held for name, held in value.items() if identifier(name)}
        return {name: _without_text(held, depth - 1) for name, held in named.items()}
    return value if isinstance(value, int | float) else identifier(value) or sealed(value)


def response_of(reply: Reply, kind: str | None = None) -> Response:
    """A reply of the upstream as the gateway's own; ``kind`` is a media type to set."""
    response = Response(reply.body, reply.status)
    response.raw_headers += [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in reply.headers
        if not kind or name.lower() != "content-type"
    ]
    if kind:
        response.headers["content-type"] = kind
    return response
