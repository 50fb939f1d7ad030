"""Replies that end when the caller goes away, and break off where the upstream does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from guardrail.core.errors import GuardrailError

__all__ = ["Afterwards", "BrokenOffError", "CallerGoneError", "JudgedStream", "unless_gone"]

T = TypeVar("T")


class BrokenOffError(GuardrailError):
    """The upstream broke off in the middle of a stream."""


class CallerGoneError(GuardrailError):
    """The caller closed the connection before there was a reply."""


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T:
    """Do the work, or cancel it when the caller goes away.

    Args:
        receive: Of a request whose body has been read.
        work: What to do.

    Raises:
        CallerGoneError: The caller went away first.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise CallerGoneError("the caller closed the connection")
        return task.result()
    finally:
        for item in (task, gone):
            if not item.done():
                item.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await item


class Afterwards:
    """What is still to be done for exchanges whose callers wait no longer.

    Args:
        seconds: Most time that each may take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[object, object, None]) -> None:
        """Do it beside all else; what goes wrong in it is told to nobody."""
        task = asyncio.create_task(self._in_time(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def ended(self) -> None:
        """Wait for all that was begun."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _in_time(self, work: Coroutine[object, object, None]) -> None:
        with suppress(GuardrailError, TimeoutError):
            async with asyncio.timeout(self._seconds):
                await work


class JudgedStream(Response):
    """A stream of judged bytes.

    When the upstream breaks off, so does the reply: the connection is closed without the end
    that the protocol asks for, and the caller sees what it would see without the gateway.

    Args:
        pieces: The bytes; ends with ``BrokenOffError`` where the upstream broke off.
        status: HTTP status.
        headers: Headers of the reply.
        seconds: Most time that the whole may take.
        closed: Called at the end, however it comes.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        *,
        status: int,
        headers: Iterable[tuple[str, str]],
        seconds: float,
        closed: Callable[[], Awaitable[None]],
    ) -> None:
        self.status_code = status
        self.background = None
        self._pieces = pieces
        self._seconds = seconds
        self._closed = closed
        self.raw_headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers
            if name.lower() != "content-type"
        ]
        self.raw_headers.append((b"content-type", b"text/event-stream; charset=utf-8"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces until they end, the upstream breaks off, or the caller goes away."""
        with suppress(CallerGoneError, BrokenOffError, TimeoutError, OSError):
            try:
                async with asyncio.timeout(self._seconds):
                    await unless_gone(receive, self._send(send))
            finally:
                await self._closed()

    async def _send(self, send: Send) -> None:
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        await send(start)
        async for piece in self._pieces:
            if piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
