"""Connections to the gateway: the head of a request comes in good time, or its connection ends.

The server bounds how large a head may be and how long a connection may rest behind a reply. A
connection that never sends its request would stay, and with it one of the files that a process may
have open; a few hundred of them keep all others out.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HeadsInTime"]

HEAD_S = 30.0
"""Seconds in which the head of a request must be there, from its connection or its first byte."""
MOST_WAITING = 400
"""Connections of one process that may wait for a head; a process may have 1,024 files open."""


class HeadsInTime(H11Protocol):
    """A connection that ends where the head of a request does not come.

    Of more than ``MOST_WAITING`` that wait the one that has waited longest ends: who means to ask
    sends the head at once.
    """

    waiting: ClassVar[dict[HeadsInTime, asyncio.TimerHandle]] = {}
    """The connections of this process that wait for a head, the oldest first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait_or_not()

    def data_received(self, data: bytes) -> None:
        """Take what came, and look whether a head is still to come."""
        super().data_received(data)
        self._wait_or_not()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def _wait_or_not(self) -> None:
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._wait_no_longer()
        elif self not in self.waiting:
            if len(self.waiting) >= MOST_WAITING:
                next(iter(self.waiting))._give_up()
            self.waiting[self] = self.loop.call_later(HEAD_S, self._give_up)

    def _wait_no_longer(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self) -> None:
        self._wait_no_longer()
        self.transport.close()
