"""What whole and streamed replies of both endpoints share: texts, citations and verdicts."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from chains.openai_sse import Event
from chains.openai_wire import JSON, LONG_BYTES, UnreadableReplyError, is_json_document
from chains.rendering import PlacedCitation, cited, details
from chains.streaming import SentenceGate
from chains.styles import StreamMode
from guardrail import GuardedAnswer
from guardrail.core.incoming import ReasoningFilter
from guardrail.core.types import Action, Problem
from guardrail.log.records import tagged

if TYPE_CHECKING:
    from chains.openai_request import GuardedRequest

__all__ = [
    "BROKEN_OFF",
    "Outcome",
    "ReplyStream",
    "StreamedText",
    "flat_annotation",
    "nested_annotation",
    "shown",
]

BROKEN_OFF = Problem(
    part="model",
    message="the model's server broke off before the end of its answer; its last sentence is not "
    "shown",
)


class Outcome(NamedTuple):
    """A guarded reply.

    Attributes:
        body: The reply to return.
        answers: The verdicts, best first; empty if nothing in it is an answer.
    """

    body: JSON
    answers: tuple[GuardedAnswer, ...]


def shown(text: str, answer: GuardedAnswer | None, *, calls_tools: bool) -> str | None:
    """The text to return; None for refused words with a tool call, where no answer is due yet."""
    if calls_tools and answer is not None and answer.action is Action.REFUSE:
        return None
    return text


def flat_annotation(citation: PlacedCitation) -> JSON:
    """A citation as responses write it; offsets index the returned text."""
    return {"type": "url_citation", **_place(citation), **cited(citation)}


def nested_annotation(citation: PlacedCitation) -> JSON:
    """A citation as chat completions write it; see ``flat_annotation``."""
    return {"type": "url_citation", "url_citation": _place(citation), **cited(citation)}


def _place(citation: PlacedCitation) -> JSON:
    """Where there is no page to open the address is empty: the title says what is cited."""
    return {
        "start_index": citation.start,
        "end_index": citation.end,
        "title": citation.title,
        "url": citation.url or "",
    }


class StreamedText:
    """A text that is streamed in, held back until it has been judged.

    If JSON was requested, a complete document is data and returned unchanged; anything else is
    judged.

    Attributes:
        citations: Citations of the released text, with offsets into all of it.
        is_data: Whether it ended as a document, which is not judged here.
    """

    def __init__(self, asked: GuardedRequest) -> None:
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
            UnreadableReplyError: The text had ended.
        """
        if self._ended and piece.strip():
            raise UnreadableReplyError("the model's server sent text after the end of its answer")
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
        self._ended = True  # not before: after a timeout it is still to be judged
        self.citations += release.citations
        return release.text, release.answer

    def refuse(self, piece: str) -> None:
        """Take a piece of a refusal."""
        self._refusal.append(piece)

    async def judged_refusal(self) -> str | None:
        """The refusal without what the policy removes; None if there is none."""
        refusal = "".join(self._refusal)
        if not refusal.strip():
            return None
        return await self._asked.guarding.refusal(await self._asked.case(), refusal)


class ReplyStream(ABC):
    """Guards the events of one streamed reply.

    Attributes:
        answers: The verdicts so far.
        released: Whether judged text has been released.
        failed: Whether the server reported an error, which is the last event that is read.
        ended: Whether the last event has come: an error, or the protocol's end.
        whole: Whether the answer has ended, with or without that event.
    """

    def __init__(self, asked: GuardedRequest) -> None:
        self._asked = asked
        self.failed = self.ended = False
        self.answers: list[GuardedAnswer] = []
        self.released = False

    @abstractmethod
    async def feed(self, event: Event) -> list[Event]:
        """Take an event of the model's server; return those that may leave."""

    @abstractmethod
    async def finish(self) -> list[Event]:
        """The rest at the end of the stream."""

    @property
    def whole(self) -> bool:
        """Whether the answer has ended."""
        return self.ended

    async def broken_off(self) -> None:
        """Judge a stream that broke off, for the log."""
        with tagged(stream="broken off"):
            await self._close_open()
        self.answers = [
            answer.model_copy(update={"errors": (*answer.errors, BROKEN_OFF)})
            for answer in self.answers
        ]

    @abstractmethod
    async def _close_open(self) -> object:
        """Judge what has not ended."""

    async def _report(self, answer: GuardedAnswer) -> dict[str, object]:
        """Add a verdict; returns its field ``guardrail``."""
        self.answers.append(answer)
        return await asyncio.to_thread(details, answer, reasons=self._asked.guarding.reasons)
