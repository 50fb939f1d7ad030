"""Calls that are sent on to the upstream, and the headers of replies."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import Response

from chains.gateway.azure import upstream_path
from chains.gateway.requests import JSON_TYPE, PREFIX, RejectedError, read_body
from chains.gateway.streaming import unless_gone
from chains.openai_codes import identifier, sealed
from chains.openai_errors import failed_reply
from chains.openai_wire import Reply, reply_body
from guardrail import GuardedAnswer, Policy

if TYPE_CHECKING:
    from chains.gateway.upstream import Upstream

__all__ = ["DRY_RUN", "MEDIA", "UNTOUCHED", "WOULD", "dry_run_headers", "pass_on", "response_of"]

UNTOUCHED = (
    ("GET", "models"),
    ("GET", "models/{rest:path}"),
    ("POST", "embeddings"),
    ("POST", "moderations"),
)
"""Calls whose replies are numbers, names and truth values; all else in them stays here."""
MEDIA = (
    ("POST", "audio/speech"),
    ("POST", "audio/transcriptions"),
    ("POST", "audio/translations"),
    ("POST", "images/generations"),
    ("POST", "images/edits"),
    ("POST", "images/variations"),
)
"""Calls whose replies may hold any text, in letters, spoken or drawn: passed on as they are."""
MOST_NESTED = 8
"""Of lists and objects in each other, in what is no text."""
PLAIN_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[\w.:@+~ -]+)+/?")
"""A path without steps upwards, which would lead to calls that are judged or refused."""


async def pass_on(request: Request, upstream: Upstream, *, media: bool) -> Response:
    """Send a call to the upstream and return its reply.

    Args:
        request: The call.
        upstream: The model's server.
        media: Whether the reply may be of any kind, rather than JSON without a text.

    Raises:
        RejectedError: Its path leads elsewhere, or its body is of another type.
        UpstreamUnreachableError: There is no reply.
        UnreadableReplyError: It is not of that kind.
    """
    content = b""
    if request.method != "GET":
        content = await read_body(request, JSON_TYPE, "multipart/form-data")
    if not PLAIN_PATH.fullmatch(request.url.path.removeprefix(PREFIX)):
        raise RejectedError(400, "the path is not one of this gateway's", "invalid_path")
    path = upstream_path(request, upstream)

    async def exchange() -> Reply:
        async with upstream.open(request.method, path, request.headers, content) as found:
            return await upstream.read(found)

    reply = await unless_gone(request.receive, exchange())
    if (failed := await asyncio.to_thread(failed_reply, reply)) is not None:
        reply = failed
    elif not media:
        reply = reply._replace(body=await asyncio.to_thread(_without_text, reply))
        return response_of(reply, JSON_TYPE)
    return response_of(reply)


def _without_text(reply: Reply) -> bytes:
    return json.dumps(_wordless(reply_body(reply), MOST_NESTED)).encode()


def _wordless(value: object, depth: int) -> object:
    """What of a value is numbers, truth values and names; None where nothing is."""
    if isinstance(value, dict | list) and not depth:
        return None
    if isinstance(value, list):
        if all(type(item) is float for item in value):  # an embedding, of which there may be many
            return value
        return [held for item in value if (held := _wordless(item, depth - 1)) is not None]
    if isinstance(value, dict):
        named = {name: held for name, held in value.items() if identifier(name)}
        return {name: _wordless(held, depth - 1) for name, held in named.items()}
    return value if isinstance(value, int | float) else identifier(value) or sealed(value)


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


DRY_RUN = "x-guardrail-dry-run"
"""``true`` on a reply whose text is the model's own."""
WOULD = "x-guardrail-would"
"""What the policy would have done with each answer, in the order of the reply."""


def dry_run_headers(policy: Policy, answers: Sequence[GuardedAnswer] = ()) -> dict[str, str]:
    """The headers that tell of a dry run; nothing where it is none.

    Args:
        policy: The call's.
        answers: The verdicts; empty where they come behind the headers, as in a stream.
    """
    if not policy.dry_run:
        return {}
    would = [answer.would.value for answer in answers if answer.would is not None]
    return {DRY_RUN: "true"} | ({WOULD: ", ".join(would)} if would else {})
