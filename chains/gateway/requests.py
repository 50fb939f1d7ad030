"""Requests at the gateway's door: size, key, JSON, and errors in the protocol's words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse

from chains.caller import NotAllowedError
from chains.gateway.settings import GatewaySettings
from chains.gateway.streaming import CallerGoneError
from chains.gateway.upstream import UpstreamUnreachableError
from chains.openai_exchange import LONG_BYTES, error_body, request_body
from chains.openai_text import JSON, UnreadableReplyError
from guardrail.errors import ConfigError, GuardrailError, InputError
from guardrail.fields import field_problems

__all__ = [
    "RejectedError",
    "admit",
    "error_response",
    "given_key",
    "read_body",
    "read_json",
    "read_model",
]

Model = TypeVar("Model", bound=BaseModel)

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


def admit(request: Request, settings: GatewaySettings) -> None:
    """Let a caller in who has one of the gateway's keys, where it has any.

    Raises:
        RejectedError: With status 401.
    """
    if not settings.admits(given_key(request)):
        raise RejectedError(
            401, "this gateway needs one of its keys", "invalid_api_key",
            {"www-authenticate": "Bearer"},
        )  # fmt: skip


def given_key(request: Request) -> str | None:
    """The key of a call: a bearer's token, or where Azure's clients and LiteLLM put it."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return request.headers.get("api-key") or request.headers.get("x-api-key")


async def read_body(request: Request, settings: GatewaySettings) -> bytes:
    """Read a request's body.

    Raises:
        RejectedError: With status 413, as soon as it is larger than allowed.
    """
    limit = settings.max_body_bytes
    too_large = RejectedError(
        413, f"the request is larger than the {limit} bytes allowed", "request_too_large"
    )
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


async def read_json(request: Request, settings: GatewaySettings) -> JSON:
    """Read a request's body as a JSON object.

    Raises:
        RejectedError: It is too large or no JSON object.
    """
    try:
        body = await read_body(request, settings)
        if len(body) < LONG_BYTES:
            return request_body(body)
        return await asyncio.to_thread(request_body, body)
    except InputError as error:
        raise RejectedError(400, str(error), "invalid_json") from error


async def read_model(request: Request, settings: GatewaySettings, model: type[Model]) -> Model:
    """Read a request's body as a model.

    Raises:
        RejectedError: It is too large or of another shape.
    """
    try:
        body = await read_body(request, settings)
        return await asyncio.to_thread(model.model_validate_json, body)
    except ValidationError as error:
        raise RejectedError(400, field_problems(model, error), "invalid_request") from error
