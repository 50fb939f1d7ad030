"""What the streams of both endpoints share: events in, judged events out."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from chains.openai_sse import Event
from chains.openai_wire import LONG_BYTES, UnreadableReplyError, is_json_document
from chains.rendering import PlacedCitation, details
from chains.streaming import SentenceGate
from chains.styles import StreamMode
from guardrail import GuardedAnswer
from guardrail.core.reasoning import ReasoningFilter
from guardrail.core.types import Problem
from guardrail.log.records import tagged

if TYPE_CHECKING:
    from chains.openai_request import Asked

__all__ = ["BROKEN_OFF", "ReplyStream", "StreamedText"]

BROKEN_OFF = Problem(
    part="model",
    message="the model's server broke off before the end of its answer; what came of the last "
    "sentence is not shown",
)


class StreamedText:
    """A text that is streamed in, held back until it has been judged.

    Where a JSON document was asked for, one that is complete is data, not an answer, and leaves as
    it is; anything else that came in its place is judged.

    Attributes:
        citations: Those of what was released, with offsets into all of it.
        is_data: Whether it came to its end as a document, which is not judged here.
    """

    def __init__(self, asked: Asked) -> None:
        guarding = asked.guarding
        self._asked = asked
        self._ended = False
        self._dry_run = guarding.policy.dry_run
        self._raw: list[str] = []
        self._reasoning = ReasoningFilter()
        self._gate = SentenceGate(
            guarding.guard,
            asked.case,
            policy=guarding.policy,
            mode=StreamMode.BUFFER if asked.data else guarding.mode,
            style=guarding.style,
        )
        self.citations: list[PlacedCitation] = []
        self._refusal: list[str] = []
        self.is_data = False

    async def feed(self, piece: str) -> str:
        """Take text; release what is judged.

        Raises:
            UnreadableReplyError: The text had ended, and its verdict was told.
        """
        if self._ended and piece.strip():
            raise UnreadableReplyError("the model's server sent text behind the end of its answer")
        if self._asked.data:
            piece = self._reasoning.feed(piece)
            self._raw.append(piece)
            return piece if self._dry_run else ""
        release = await self._gate.feed(piece)
        self.citations += release.citations
        return release.text

    async def finish(self) -> tuple[str, GuardedAnswer | None]:
        """Release what is left, with the verdict where there is one."""
        if self._asked.data:
            raw = "".join((*self._raw, self._reasoning.finish()))
            long = len(raw) > LONG_BYTES
            if await asyncio.to_thread(is_json_document, raw) if long else is_json_document(raw):
                self._ended = self.is_data = True
                return "" if self._dry_run else raw, None
            await self._gate.feed(raw)
        release = await self._gate.finish()
        self._ended = True  # not before: what ran out of time is still to be judged
        self.citations += release.citations
        return release.text, release.answer

    def refuse(self, piece: str) -> None:
        """Take a piece of a refusal in place of the text."""
        self._refusal.append(piece)

    async def judged_refusal(self) -> str | None:
        """The refusal, without what the policy removes from it; None where there is none."""
        refusal = "".join(self._refusal)
        if not refusal.strip():
            return None
        return await self._asked.guarding.refusal(await self._asked.case(), refusal)


class ReplyStream(ABC):
    """Guards the events of one streamed reply.

    Attributes:
        answers: The verdicts so far.
        released: Whether judged text has been released.
        failed: Whether the server told of an error. That is not judged, so it is the last event.
        ended: Whether the last event has come: an error, or the end that the protocol has.
        whole: Whether the answer has come to its end, with or without that event.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.failed = self.ended = False
        self.answers: list[GuardedAnswer] = []
        self.released = False

    @abstractmethod
    async def feed(self, event: Event) -> list[Event]:
        """Take an event of the model's server; return those that may leave."""

    @abstractmethod
    async def finish(self) -> list[Event]:
        """What is left at the end of the stream."""

    @property
    def whole(self) -> bool:
        """Whether the answer has come to its end."""
        return self.ended

    async def broken_off(self) -> None:
        """Give the verdict on what has come of a stream without an end, for the log alone."""
        with tagged(stream="broken off"):
            await self._close_open()
        self.answers = [
            answer.model_copy(update={"errors": (*answer.errors, BROKEN_OFF)})
            for answer in self.answers
        ]

    @abstractmethod
    async def _close_open(self) -> object:
        """Judge what is open still."""

    async def _told(self, answer: GuardedAnswer) -> dict[str, object]:
        """Keep a verdict; returned is what the field ``guardrail`` tells of it."""
        self.answers.append(answer)
        return await asyncio.to_thread(details, answer, reasons=self._asked.guarding.reasons)
