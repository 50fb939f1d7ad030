"""What a caller may have meant whose path or method is not served."""

from __future__ import annotations

from difflib import SequenceMatcher

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from chains.gateway.requests import PREFIX, RejectedError, error_response
from chains.openai_wire import is_unguarded

__all__ = ["misspelled", "no_such_call"]

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
