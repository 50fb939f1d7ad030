"""Replies that end when the caller goes away, and break off where the upstream does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from guardrail.core.errors import GuardrailError

__all__ = ["BackgroundTasks", "BrokenOffError", "CallerGoneError", "JudgedStream", "unless_gone"]

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

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task, watch = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise CallerGoneError("the caller closed the connection")
        return task.result()
    finally:
        for item in (task, watch):
            if not item.done():
                item.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await item


class BackgroundTasks:
    """Work for exchanges whose callers no longer wait; its errors are suppressed.

    Args:
        seconds: Most time for each task.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[object, object, None]) -> None:
        """Run it as a task."""

        async def bounded() -> None:
            with suppress(GuardrailError, TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await work

        task = asyncio.create_task(bounded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self) -> None:
        """Wait for all tasks."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


class JudgedStream(Response):
    """A stream of judged bytes.

    If the upstream breaks off, the connection is closed without the end that the protocol asks
    for, as the caller would see it without the gateway.

    Args:
        pieces: The bytes; raises ``BrokenOffError`` where the upstream breaks off.
        status: HTTP status.
        headers: Headers of the reply.
        seconds: Most time for the whole stream.
        closed: Called at the end in any case.
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
        head = {"type": "http.response.start", "status": self.status_code}
        await send(head | {"headers": self.raw_headers})
        async for piece in self._pieces:
            if piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
