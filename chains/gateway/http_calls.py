"""Work on a connection that the caller's cancellation cannot break in its closing.

httpcore shields the closing of a reply from cancellation by anyio's scopes, but not from that of an
asyncio task: one that comes at that moment leaves the connection in its pool for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import httpx

__all__ = ["chunks_of", "opened"]

T = TypeVar("T")


@asynccontextmanager
async def opened(
    client: httpx.AsyncClient, request: httpx.Request, seconds: float
) -> AsyncIterator[httpx.Response]:
    """Send a request and close its reply in the end; the body is still to be read.

    Args:
        client: What sends it.
        request: What is sent.
        seconds: Most time until the reply begins.

    Raises:
        TimeoutError: It does not begin in time.
        httpx.HTTPError: There is no reply.
    """
    begun: list[httpx.Response] = []  # kept where the caller goes as it comes

    async def send() -> None:
        with anyio.fail_after(seconds):
            begun.append(await client.send(request, stream=True))

    try:
        await _by_scope(send())
        yield begun[0]
    finally:
        for response in begun:
            await _by_scope(response.aclose())


async def chunks_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body of a reply as it comes, unpacked.

    Raises:
        httpx.HTTPError: It breaks off.
    """
    chunks = response.aiter_bytes()
    while (chunk := await _by_scope(anext(chunks, None))) is not None:
        yield chunk


async def _by_scope(work: Coroutine[object, object, T]) -> T:
    """Do the work in a task of its own; a cancellation reaches it by anyio's scope."""
    scope = anyio.CancelScope()

    async def inside() -> T:
        with scope:
            return await work
        raise asyncio.CancelledError  # the scope swallows its own

    task = asyncio.ensure_future(inside())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        scope.cancel()
        await asyncio.wait({task})
        _ = task.cancelled() or task.exception()  # nobody waits for it
        raise
