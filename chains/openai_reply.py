"""Replies under the guardrail: what chat completions and responses share, whole and streamed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chains.openai_wire import (
    DONE,
    JSON,
    Event,
    EventDecoder,
    UnreadableReplyError,
    error_body,
    few_enough_bytes,
    is_json_document,
)
from chains.options import StreamMode
from chains.rendering import PlacedCitation, cited, details, render
from chains.streaming import SentenceGate
from chains.structured import Document, Verdicts, judge_documents
from guardrail import GuardedAnswer
from guardrail.core.types import Action, Problem
from guardrail.log.records import tagged

if TYPE_CHECKING:
    from chains.openai_request import GuardedRequest

BROKEN_OFF = Problem(
    part="model",
    message="the model's server broke off before the end of its answer; its last sentence is not "
    "shown",
)


Outcome = tuple[JSON, tuple[GuardedAnswer, ...]]
"""The body of a guarded reply, and the verdicts, best first; none if it holds no answer."""


async def write_answer(
    request: GuardedRequest, part: JSON, name: str, answer: GuardedAnswer, *, calls: bool
) -> None:
    """Write a judged text, its citations and its verdict into a part of a whole reply."""
    options = request.options
    rendered = await asyncio.to_thread(render, answer, options.style)
    if not answer.dry_run:
        part[name] = rendered.text
    if left_out(answer, calls=calls):
        part[name] = "" if request.responses else None
    part["annotations"] = [annotation(item, request) for item in rendered.citations]
    part["guardrail"] = await asyncio.to_thread(details, answer, reasons=options.rights.reasons)


async def judge_data(request: GuardedRequest, part: JSON, documents: list[Document]) -> Verdicts:
    """Judge JSON and tool calls if the policy asks for it; the part's ``guardrail`` reports it."""
    guard, case = request.options.guard, await request.case()
    verdicts = await judge_documents(guard, request.options.policy, case, documents)
    if report := verdicts.report():
        part["guardrail"] = part.get("guardrail", {}) | report
    return verdicts


def left_out(answer: GuardedAnswer | None, *, calls: bool) -> bool:
    """True for refused words with a tool call, where no answer is due yet."""
    return calls and answer is not None and answer.action is Action.REFUSE


def annotation(citation: PlacedCitation, request: GuardedRequest) -> JSON:
    """A citation as the protocol writes it; offsets index the returned text.

    Without a page to open the address is empty: the title says what is cited.
    """
    place = {
        "start_index": citation.start,
        "end_index": citation.end,
        "title": citation.title,
        "url": citation.url or "",
    }
    place = place if request.responses else {"url_citation": place}
    return {"type": "url_citation", **place, **cited(citation)}


def gate_of(request: GuardedRequest) -> SentenceGate:
    """The gate of a streamed text; a whole JSON document that was requested leaves unjudged."""
    options = request.options
    return SentenceGate(
        options.guard,
        request.case,
        policy=options.policy,
        mode=StreamMode.BUFFER if request.data else options.mode,
        style=options.style,
        is_data=is_json_document if request.data else None,
    )


class ReplyStream(ABC):
    """Guards a stream: takes the server's bytes and returns judged ones.

    Attributes:
        released: Whether judged text has been released.
        failed: Whether the server reported an error; nothing after it is read.
        ended: Whether the last event has come: an error, or the protocol's end.
    """

    def __init__(self, request: GuardedRequest) -> None:
        self._request = request
        self._decoder = EventDecoder()
        self._bytes = 0
        self._began = False
        self.failed = self.ended = self.released = False
        self.answers: list[GuardedAnswer] = []

    async def feed(self, chunk: bytes) -> bytes:
        """Take any number of bytes; return what may be sent now."""
        self._bytes += len(chunk)
        few_enough_bytes(self._bytes, self._request.options.max_reply_bytes)
        return await self._process(self._decoder.feed(chunk))

    async def finish(self) -> bytes:
        """Return what is left at the end of the stream.

        A stream that ends in the middle of an answer ends with an error: its last sentence is
        judged for the log only.

        Raises:
            UnreadableReplyError: There was no event in it.
        """
        out = b""
        if not self.failed:
            out = await self._process(self._decoder.finish())
            if not self._began:
                raise UnreadableReplyError("the model's server sent a stream without one event")
            if self.whole:
                return out
            error = error_body(BROKEN_OFF.message, kind="server_error", code="upstream_broke_off")
            out += Event(error).encode()
        await self.broken_off()
        return out

    async def broken_off(self) -> None:
        """Judge a stream that broke off, for the log."""
        with tagged(stream="broken off"):
            await self._close_all()
        self.answers = [
            answer.model_copy(update={"errors": (*answer.errors, BROKEN_OFF)})
            for answer in self.answers
        ]

    async def _process(self, events: Sequence[Event]) -> bytes:
        out: list[Event] = []
        for event in events:
            if self.ended:
                break
            data = event.json()
            self._began = self._began or event.data == DONE or bool(data)
            if event.data == DONE:
                out += await self._done()
            elif isinstance(data, dict):
                out += map(self._event, await self._handle(data, event.name))

        def encode() -> bytes:
            return b"".join(event.encode() for event in out)

        return await asyncio.to_thread(encode) if self.answers else encode()

    @property
    def whole(self) -> bool:
        """Whether the answer has ended, with or without the last event."""
        return self.ended

    @abstractmethod
    async def _handle(self, data: JSON, name: str | None) -> list[JSON]:
        """Take the data of an event of the model's server; return the events to send."""

    @abstractmethod
    async def _close_all(self) -> list[JSON]:
        """Judge what has not ended; return the events to send."""

    def _event(self, data: JSON) -> Event:
        return Event(data)

    async def _done(self) -> list[Event]:
        """The last events of a chat completion."""
        return []

    async def _report(self, answer: GuardedAnswer) -> dict[str, object]:
        """Add a verdict; returns its field ``guardrail``."""
        self.answers.append(answer)
        reasons = self._request.options.rights.reasons
        return await asyncio.to_thread(details, answer, reasons=reasons)
