"""Requests of the gateway: bodies within bounds, JSON, errors in the words of the protocol."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive

from chains.caller import NotAllowedError
from chains.gateway.streaming import CallerGoneError
from chains.gateway.threads import in_reader_thread
from chains.gateway.upstream import UpstreamUnreachableError
from chains.openai_errors import error_body
from chains.openai_wire import JSON, LONG_BYTES, UnreadableReplyError, is_unguarded, request_body
from guardrail.core.errors import ConfigError, GuardrailError, InputError
from guardrail.core.fields import field_problems

if TYPE_CHECKING:
    from chains.gateway.metrics import Metrics
    from chains.gateway.tenants import Caller

__all__ = [
    "JSON_TYPE",
    "PREFIX",
    "Body",
    "RejectedError",
    "caller_of",
    "error_response",
    "failed_call",
    "misspelled",
    "no_such_call",
    "read_body",
    "read_in_time",
    "read_json",
    "read_model",
    "replayed",
    "unknown_key",
    "unpacked",
]

Model = TypeVar("Model", bound=BaseModel)

PREFIX = "/v1"
"""Begins the paths of the calls that pass the door, beside those of other gateways' protocols."""
JSON_TYPE = "application/json"
CLIENT_CLOSED = 499
"""What servers log for a caller that went away; nobody receives it."""


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
    """An error as the protocol writes it."""
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


async def failed_call(metrics: Metrics, request: Request, error: Exception) -> JSONResponse:
    """Answer a call that ends in an error, and count it where it was to be judged."""
    assert isinstance(error, GuardrailError)
    metrics.failed_call(error, request.scope.get("state", {}))
    return error_response(error)


def unknown_key() -> RejectedError:
    """What a caller without one of the gateway's keys is told."""
    return RejectedError(
        401, "this gateway needs one of its keys", "invalid_api_key",
        {"www-authenticate": "Bearer"},
    )  # fmt: skip


def caller_of(request: Request) -> Caller:
    """Who sent a request that came through the door."""
    caller: Caller = request.state.caller
    return caller


async def read_body(request: Request, *kinds: str) -> bytes:
    """The body of a request, which was read at the door.

    Args:
        request: The request.
        kinds: Media types that it may have. A page of another site can have its reader's browser
            send the other ones without being asked for leave.

    Raises:
        RejectedError: With status 415, where it is of another type.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in kinds:
        said = f"not as {given!r}" if given else "with that content-type"
        raise RejectedError(415, f"send the body as {' or '.join(kinds)}, {said}", "not_json")
    return await request.body()


async def read_json(request: Request) -> JSON:
    """Read a request's body as a JSON object.

    Raises:
        RejectedError: It is no JSON object.
    """
    try:
        body = await read_body(request, JSON_TYPE)
        if len(body) < LONG_BYTES:
            return request_body(body)
        return await asyncio.to_thread(request_body, body)
    except InputError as error:
        raise RejectedError(400, str(error), "invalid_json") from error


async def read_model(request: Request, model: type[Model]) -> Model:
    """Read a request's body as a model.

    Raises:
        RejectedError: It is of another shape.
    """
    try:
        body = await read_body(request, JSON_TYPE)
        return await in_reader_thread(model.model_validate_json, body)
    except ValidationError as error:
        raise RejectedError(400, field_problems(model, error), "invalid_request") from error


GRACE_S = 5.0
"""Seconds before the least rate counts: a connection may take a moment to get going."""
CLOSE = {"connection": "close"}
"""What is left of a body that was refused is not read."""


class Body(NamedTuple):
    """What a body may be.

    Attributes:
        declared: Its ``content-length``, as the request says it.
        most_bytes: Most bytes.
        seconds: Most time that it may take as a whole.
        least_rate: Fewest bytes a second, from ``GRACE_S`` on.
    """

    declared: str
    most_bytes: int
    seconds: float
    least_rate: float


async def read_in_time(receive: Receive, allowed: Body) -> bytes:
    """Read a request's body.

    Raises:
        RejectedError: With status 413 as soon as it is larger than allowed, 408 as soon as it is
            slower.
        CallerGoneError: The caller went away.
    """
    if allowed.declared.isdigit() and int(allowed.declared[:20]) > allowed.most_bytes:
        raise _too_large(allowed.most_bytes)
    body = bytearray()
    begin = time.monotonic()
    while True:
        until = min(allowed.seconds, GRACE_S + len(body) / allowed.least_rate)
        try:
            async with asyncio.timeout(begin + until - time.monotonic()):
                message = await receive()
        except TimeoutError as error:
            raise RejectedError(
                408,
                f"the request's body came too slowly: send it within {allowed.seconds:g} s, at "
                f"{allowed.least_rate:g} bytes a second or more",
                "request_timeout",
                CLOSE,
            ) from error
        if message["type"] == "http.disconnect":
            raise CallerGoneError("the caller closed the connection")
        body += message.get("body", b"")
        if len(body) > allowed.most_bytes:
            raise _too_large(allowed.most_bytes)
        if not message.get("more_body", False):
            return bytes(body)


async def unpacked(body: bytes, encoding: str, most_bytes: int) -> bytes:
    """Undo the encoding of a body; no more than the bound is ever unpacked.

    Args:
        body: The body as it was sent.
        encoding: Its ``content-encoding``; empty for none.
        most_bytes: Most bytes unpacked.

    Raises:
        RejectedError: With status 415 for an encoding that is not read, 413 for a body that
            unpacks to more, 400 for one that is damaged.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise RejectedError(
            415, f"send the body as it is, or in gzip, not in {encoding[:40]!r}",
            "unsupported_encoding", {"accept-encoding": "gzip"},
        )  # fmt: skip
    try:
        return await asyncio.to_thread(_gunzipped, body, most_bytes)
    except zlib.error as error:
        raise RejectedError(400, "the body is no gzip, or damaged", "invalid_body") from error


def _gunzipped(body: bytes, most_bytes: int) -> bytes:
    found = bytearray()
    while body:  # members may follow one another
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


def replayed(body: bytes, receive: Receive) -> Receive:
    """What gives a body that was read once more, and then what comes behind it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


ALIKE = 0.75
"""Least similarity, between 0 and 1, of a path and what may have been meant by it."""
LONGEST = 200
"""Characters of a path that may be misspelled: comparing takes the square of their number."""


def misspelled(request: Request) -> RejectedError | None:
    """What to tell a caller who meant another path or method; None where none is near."""
    path = request.url.path
    near = None if is_unguarded(path) else _nearest_path(request)
    if near is None:
        return None
    if near == path.rstrip("/"):
        methods = " or ".join(sorted(_served(request)[near] - {"HEAD"}))
        return RejectedError(405, f"{request.method} {path}: use {methods}", "not_served")
    return RejectedError(404, f"{request.method} {path}: did you mean {near}?", "not_served")


def _nearest_path(request: Request) -> str | None:
    """The served path nearest to a call's own; None where none is near."""
    asked = request.url.path.rstrip("/")
    if len(asked) > LONGEST:
        return None
    scored = [(_alike(asked, path), path) for path in _served(request)]
    best, path = max(scored, default=(0.0, ""))
    return path if best >= ALIKE else None


def _served(request: Request) -> dict[str, set[str]]:
    """The paths that are served by name, each with its methods."""
    found: dict[str, set[str]] = {}
    for route in request.app.routes:
        if isinstance(route, APIRoute) and "{" not in route.path:
            found.setdefault(route.path, set()).update(route.methods or ())
    return found


def _alike(asked: str, path: str) -> float:
    """How alike two paths are, whether or not the version stands before them."""
    asked, path = (item.removeprefix(f"{PREFIX}/").strip("/") for item in (asked, path))
    return SequenceMatcher(None, asked, path).ratio() if asked and path else 0.0


async def no_such_call(request: Request, error: Exception) -> Response:
    """A path or method that is not served, in the protocol's form as any other error."""
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}"
    if error.status_code == 404 and (near := _nearest_path(request)):
        message = f"{message}; did you mean {near}?"
    return error_response(RejectedError(error.status_code, message, "not_served", error.headers))
