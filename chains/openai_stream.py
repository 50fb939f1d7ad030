"""What the streams of both endpoints share: events in, judged events out."""

from __future__ import annotations

from abc import ABC, abstractmethod

from chains.openai_asked import Asked
from chains.openai_sse import Event
from guardrail import GuardedAnswer

__all__ = ["ReplyStream"]


class ReplyStream(ABC):
    """Guards the events of one streamed reply.

    Attributes:
        answers: The verdicts so far.
        released: Whether judged text has been released.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.answers: list[GuardedAnswer] = []
        self.released = False

    @abstractmethod
    async def feed(self, event: Event) -> list[Event]:
        """Take an event of the model's server; return those that may leave."""

    @abstractmethod
    async def finish(self) -> list[Event]:
        """What is left at the end of the stream."""

    async def broken_off(self) -> None:
        """Give the verdict on what has come of a stream without an end, for the log alone."""
        await self.finish()
