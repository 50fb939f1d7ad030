"""Requests of the gateway: bounded bodies, JSON, and errors in the form of the OpenAI protocol."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final, TypeVar, TypeVarTuple

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import Receive

from chains.caller import NotAllowedError
from chains.gateway.streaming import CallerGoneError
from chains.gateway.upstream import UpstreamUnreachableError
from chains.openai_errors import error_body
from chains.openai_wire import JSON, LONG_BYTES, UnreadableReplyError, is_unguarded, request_body
from guardrail.core.errors import ConfigError, GuardrailError, InputError, OverloadedError
from guardrail.core.fields import field_problems
from guardrail.core.workers import Workers

__all__ = [
    "JSON_TYPE",
    "PREFIX",
    "RejectedError",
    "error_response",
    "gunzip",
    "in_reader_thread",
    "not_found",
    "not_guarded",
    "read_body",
    "read_in_time",
    "read_json",
    "read_model",
    "require_type",
]

Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

PREFIX = "/v1"
"""Begins the paths that need a key."""
JSON_TYPE = "application/json"
CLIENT_CLOSED = 499
"""What servers log for a caller that went away; nobody receives it."""
GRACE_S = 5.0
"""Seconds before the minimum rate of a body counts."""
BYTES_PER_S = 1024.0
"""Minimum rate of a body."""
CLOSE = {"connection": "close"}
"""The rest of a refused body is not read."""
READ_S: Final = 60.0
"""Seconds in which the evidence of a request must be read."""
READERS: Final = Workers(concurrency=32, stuck=64)
"""Mostly waiting for documents; the few threads of the event loop are for short work."""


class RejectedError(GuardrailError):
    """A request that cannot be served.

    Args:
        status: HTTP status.
        message: What to do about it.
        code: For programs.
        headers: Headers of the reply.
    """

    def __init__(
        self, status: int, message: str, code: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


def error_response(error: GuardrailError) -> JSONResponse:
    """An error in the form of the protocol."""
    headers = {}
    match error:
        case RejectedError():
            status, code, headers = error.status, error.code, error.headers
        case NotAllowedError():
            status, code = 403, "not_allowed"
        case InputError() | ConfigError():
            status, code = 400, "invalid_request"
        case UpstreamUnreachableError():
            status, code = (504 if error.late else 502), "upstream_unreachable"
        case UnreadableReplyError():
            status, code = 502, "bad_upstream_reply"
        case CallerGoneError():
            status, code = CLIENT_CLOSED, "caller_gone"
        case _:
            status, code = 503, "guardrail_unavailable"
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse(error_body(str(error), kind=kind, code=code), status, headers=headers)


async def in_reader_thread(work: Callable[[*Arguments], T], *args: *Arguments) -> T:
    """Read evidence of a request in a thread for such work.

    Raises:
        InputError: It takes longer than ``READ_S``.
        OverloadedError: Too many readings that took longer still run.
    """
    try:
        async with asyncio.timeout(READ_S):
            return await READERS.run(work, *args)
    except TimeoutError as error:
        raise InputError(
            f"the evidence takes more than {READ_S:g} s to read; send less of it"
        ) from error
    except OverloadedError as error:
        raise OverloadedError("too much evidence is being read; try again later") from error


async def require_type(request: Request, *kinds: str) -> bytes:
    """The body of a request of one of these media types.

    Other types are refused because a browser sends them to another site without asking it first.

    Raises:
        RejectedError: With status 415 for another type.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in kinds:
        raise RejectedError(415, f"send the body as {' or '.join(kinds)}", "not_json")
    return await request.body()


async def read_json(request: Request) -> JSON:
    """A request's body as a JSON object.

    Raises:
        RejectedError: It is not a JSON object.
    """
    body = await require_type(request, JSON_TYPE)
    try:
        if len(body) < LONG_BYTES:
            return request_body(body)
        return await asyncio.to_thread(request_body, body)
    except InputError as error:
        raise RejectedError(400, str(error), "invalid_json") from error


async def read_model(request: Request, model: type[Model]) -> Model:
    """A request's body as a model.

    Raises:
        RejectedError: It has another shape.
    """
    try:
        body = await require_type(request, JSON_TYPE)
        return await in_reader_thread(model.model_validate_json, body)
    except ValidationError as error:
        raise RejectedError(400, field_problems(model, error), "invalid_request") from error


async def read_body(receive: Receive, headers: Headers, most_bytes: int, seconds: float) -> bytes:
    """Read and unpack a request's body.

    Args:
        receive: Of the request.
        headers: Of the request.
        most_bytes: Most bytes, also unpacked.
        seconds: Most time for the whole body.

    Raises:
        RejectedError: With status 413, 408, 415 or 400 for a body that is too large, too slow, of
            another encoding, or damaged.
        CallerGoneError: The caller went away.
    """
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared[:20]) > most_bytes:
        raise _too_large(most_bytes)
    body = await read_in_time(receive, most_bytes, seconds)
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        accepted = {"accept-encoding": "gzip"}
        raise RejectedError(415, "send the body plain or in gzip", "unsupported_encoding", accepted)
    try:
        return await asyncio.to_thread(gunzip, body, most_bytes)
    except zlib.error as error:
        raise RejectedError(400, "the body is not valid gzip", "invalid_body") from error


async def read_in_time(receive: Receive, most_bytes: int, seconds: float) -> bytes:
    """Read a body, which must not be too large or too slow at any moment."""
    body = bytearray()
    begin = time.monotonic()
    while True:
        until = min(seconds, GRACE_S + len(body) / BYTES_PER_S)
        try:
            async with asyncio.timeout(begin + until - time.monotonic()):
                message = await receive()
        except TimeoutError as error:
            raise RejectedError(
                408,
                f"the body came too slowly: send it within {seconds:g} s, at {BYTES_PER_S:g} bytes "
                "a second or more",
                "request_timeout",
                CLOSE,
            ) from error
        if message["type"] == "http.disconnect":
            raise CallerGoneError("the caller closed the connection")
        body += message.get("body", b"")
        if len(body) > most_bytes:
            raise _too_large(most_bytes)
        if not message.get("more_body", False):
            return bytes(body)


def gunzip(body: bytes, most_bytes: int) -> bytes:
    """Unpack gzip, never more than the bound.

    Raises:
        RejectedError: With status 413 for a body that unpacks to more.
        zlib.error: It is damaged.
    """
    found = bytearray()
    while body:  # gzip members may follow one another
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
    return RejectedError(413, message, "request_too_large", CLOSE)


LONGEST = 200
"""Characters of a path that may be misspelled, since comparing takes the square of their number."""


def not_guarded(request: Request) -> RejectedError:
    """Why a path below ``PREFIX`` is not served: misspelled, a wrong method, or not judged."""
    path = request.url.path
    near = None if is_unguarded(path) else _nearest_path(request)
    if near is None:
        return RejectedError(
            403,
            f"this gateway does not judge what {path} returns and therefore does not pass it on; "
            "use /v1/chat/completions or /v1/responses",
            "not_guarded",
        )
    if near == path.rstrip("/"):
        methods = " or ".join(sorted(_paths(request)[near] - {"HEAD"}))
        return RejectedError(405, f"{request.method} {path}: use {methods}", "not_served")
    return RejectedError(404, f"{request.method} {path}: did you mean {near}?", "not_served")


async def not_found(request: Request, error: Exception) -> Response:
    """A path or method that is not served, in the form of the protocol."""
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}"
    if error.status_code == 404 and (near := _nearest_path(request)):
        message = f"{message}; did you mean {near}?"
    return error_response(RejectedError(error.status_code, message, "not_served", error.headers))


def _nearest_path(request: Request) -> str | None:
    """The served path that is most similar, with or without the version; None if none is."""
    path = request.url.path.rstrip("/")
    by_name = {known.removeprefix(f"{PREFIX}/").strip("/"): known for known in _paths(request)}
    name = path.removeprefix(f"{PREFIX}/").strip("/")
    near = get_close_matches(name, filter(None, by_name), 1, 0.75) if len(path) <= LONGEST else []
    return by_name[near[0]] if near else None


def _paths(request: Request) -> dict[str, set[str]]:
    """The paths that are served by name, each with its methods."""
    found: dict[str, set[str]] = {}
    for route in request.app.routes:
        if isinstance(route, APIRoute) and "{" not in route.path:
            found.setdefault(route.path, set()).update(route.methods or ())
    return found
