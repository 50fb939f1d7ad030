"""Streamed replies that break off where the upstream does, and work that outlives a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from guardrail.core.errors import GuardrailError

__all__ = ["BackgroundTasks", "BrokenOffError", "JudgedStream"]


class BrokenOffError(GuardrailError):
    """The upstream broke off in the middle of a stream."""


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


class JudgedStream(StreamingResponse):
    """A stream of judged bytes.

    If the upstream breaks off, the connection is closed without the end that the protocol asks
    for, as the caller would see it without the gateway.

    Args:
        pieces: The bytes; raises ``BrokenOffError`` where the upstream breaks off.
        status: HTTP status.
        headers: Headers of the reply, without its type.
        seconds: Most time for the whole stream.
        closed: Called at the end in any case.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        status: int,
        headers: Mapping[str, str],
        *,
        seconds: float,
        closed: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(pieces, status, headers, "text/event-stream")
        self._seconds = seconds
        self._closed = closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces until they end, the upstream breaks off, or the caller goes away."""
        with suppress(BrokenOffError, ClientDisconnect, TimeoutError, OSError):
            try:
                async with asyncio.timeout(self._seconds):
                    await super().__call__(scope, receive, send)
            finally:
                await self._closed()
