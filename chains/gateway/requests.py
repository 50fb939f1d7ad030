"""Requests of the gateway: their bodies, and errors in the form of the OpenAI protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, TypeVar, TypeVarTuple

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope

from chains.caller import NotAllowedError
from chains.openai_wire import (
    JSON,
    LONG_BYTES,
    UnreadableReplyError,
    error_body,
    request_body,
)
from guardrail.core.errors import (
    ConfigError,
    GuardrailError,
    InputError,
    ModelError,
    OverloadedError,
)
from guardrail.core.fields import field_problems
from guardrail.core.workers import Workers

__all__ = [
    "JSON_TYPE",
    "PREFIX",
    "CallerGoneError",
    "RejectedError",
    "UpstreamUnreachableError",
    "error_response",
    "in_reader_thread",
    "local_path",
    "read_json",
    "read_model",
    "require_type",
    "unless_gone",
]

Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

PREFIX = "/v1"
"""Begins the paths that need a key."""
JSON_TYPE = "application/json"
CLIENT_CLOSED = 499
"""What servers log for a caller that went away; nobody receives it."""
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


class CallerGoneError(RejectedError):
    """The caller closed the connection before there was a reply."""

    def __init__(self) -> None:
        super().__init__(CLIENT_CLOSED, "the caller closed the connection", "caller_gone")


class UpstreamUnreachableError(ModelError):
    """The upstream could not be reached, or broke off; the message has no address or content."""

    def __init__(self, message: str, *, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


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
            status, code = error.status, "upstream_unreachable"
        case UnreadableReplyError():
            status, code = 502, "bad_upstream_reply"
        case _:
            status, code = 503, "guardrail_unavailable"
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse(error_body(str(error), kind=kind, code=code), status, headers=headers)


def local_path(scope: Scope) -> str:
    """The path of a request without that of the application in which the gateway is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


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


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T:
    """Do the work, or cancel it when the caller goes away.

    Args:
        receive: Of a request whose body has been read.
        work: What to do.

    Raises:
        CallerGoneError: The caller went away first.
    """

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task, watch = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise CallerGoneError
        return task.result()
    finally:
        for item in (task, watch):
            if not item.done():
                item.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await item
