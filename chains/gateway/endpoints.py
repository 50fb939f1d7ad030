"""Endpoints that do not keep their gateway in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from weakref import WeakMethod

from fastapi import Request
from starlette.responses import Response

__all__ = ["Serving", "held_weakly"]

Serving = Callable[[Request], Awaitable[Response]]
"""What answers a request."""


def held_weakly(method: Serving) -> Serving:
    """Make an endpoint of a method without holding the method's object.

    FastAPI remembers endpoints for as long as the process lives: a gateway that was closed would
    stay in memory with its judge and its graph.

    Args:
        method: A bound method; its object must be held by somebody else, as by the application.
    """
    held = WeakMethod(method)

    async def serve(request: Request) -> Response:
        found = held()
        assert found is not None, "an application holds its gateway"
        return await found(request)

    serve.__name__, serve.__doc__ = method.__name__, method.__doc__
    return serve
