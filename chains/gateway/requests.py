"""Requests behind the gateway's door: who calls, JSON, and errors in the protocol's words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse

from chains.caller import NotAllowedError
from chains.gateway.streaming import CallerGoneError
from chains.gateway.threads import in_reader_thread
from chains.gateway.upstream import UpstreamUnreachableError
from chains.openai_errors import error_body
from chains.openai_wire import JSON, LONG_BYTES, UnreadableReplyError, request_body
from guardrail.core.errors import ConfigError, GuardrailError, InputError
from guardrail.core.fields import field_problems

if TYPE_CHECKING:
    from chains.gateway.metrics import Metrics
    from chains.gateway.tenants import Caller

__all__ = [
    "JSON_TYPE",
    "PREFIX",
    "RejectedError",
    "caller_of",
    "error_response",
    "failed_call",
    "read_body",
    "read_json",
    "read_model",
    "unknown_key",
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
