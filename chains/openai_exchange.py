"""One guarded exchange with an OpenAI-compatible server, whoever carries the bytes.

The OpenAI client and the HTTP gateway both work on the wire: they hand requests and replies
over to here, so that every way of reading a reply, raw ones included, gets judged text alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from chains.openai_asked import Asked, choices_asked
from chains.openai_chat import ChatStream, completion_events, guard_completions
from chains.openai_errors import FAILED_FROM, failed_reply
from chains.openai_response_stream import ResponseStream, response_events
from chains.openai_responses import guard_responses
from chains.openai_shown import Outcome
from chains.openai_sse import DONE, Event, EventDecoder
from chains.openai_wire import (
    JSON,
    LONG_BYTES,
    Endpoint,
    Reply,
    UnreadableReplyError,
    few_enough_bytes,
    reply_body,
)
from chains.regeneration import retry_message
from guardrail import Action, GuardedAnswer, Policy

if TYPE_CHECKING:
    from chains.openai_stream import ReplyStream
    from chains.openai_text import Guarding

__all__ = [
    "Endpoint",
    "Exchange",
    "GuardedReply",
    "Reply",
    "StreamGuard",
]


class GuardedReply(NamedTuple):
    """A reply that may leave.

    Attributes:
        reply: Status and headers of the server, with the guarded body.
        answers: The verdicts behind it; empty for errors and replies without an answer.
        events: The reply as a stream's events, where a stream was asked for; None for errors.
    """

    reply: Reply
    answers: tuple[GuardedAnswer, ...] = ()
    events: tuple[Event, ...] | None = None


Send = Callable[[JSON], Awaitable[Reply]]


class Exchange:
    """One request and its guarded reply.

    Attributes:
        body: The body as the server gets it.

    Raises:
        InputError: Its ``guardrail`` field holds what is not known, or is no evidence; or it asks
            for more choices than are ranked.
        ConfigError: That names a policy that there is not.
    """

    def __init__(self, guarding: Guarding, endpoint: Endpoint, request: JSON) -> None:
        self._asked = Asked(guarding, request, responses=endpoint is Endpoint.RESPONSES)
        self._guarding = self._asked.guarding
        self._endpoint = endpoint
        self._request = self.body = self._asked.body
        self._count = choices_asked(request) if endpoint is Endpoint.CHAT else 1

    @property
    def policy(self) -> Policy:
        """What decides on the reply."""
        return self._guarding.policy

    @property
    def streams(self) -> bool:
        """Whether a stream was asked for."""
        return bool(self._request.get("stream"))

    @property
    def streams_through(self) -> bool:
        """Whether the reply can be judged while it streams, rather than as a whole."""
        return self.streams and self._count == 1 and not self._guarding.whole_only

    def stream(self) -> StreamGuard:
        """A guard for the server's stream."""
        kind = ChatStream if self._endpoint is Endpoint.CHAT else ResponseStream
        return StreamGuard(kind(self._asked), self._guarding.max_reply_bytes)

    async def whole(self, send: Send) -> GuardedReply:
        """Ask, judge, rank; ask again where the policy says so and attempts are left.

        Args:
            send: Sends a request's body to the server; ``stream`` is never set in it.

        Returns:
            The guarded reply; of one that is not a success its status and its error.

        Raises:
            UnreadableReplyError: The server answered with something else.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        policy = self._guarding.policy
        request = {
            key: value for key, value in self._request.items() if key != "stream_options"
        } | ({"stream": False} if self.streams else {})
        for attempt in range(1, policy.rounds + 1):
            replies = await self._sampled(request, max(self._count, policy.samples), send)
            failed = await asyncio.to_thread(lambda found: [*map(failed_reply, found)], replies)
            if any(failed):
                return GuardedReply(next(filter(None, failed)))
            last = attempt == policy.rounds
            outcome = await self._judged(replies, policy.settled() if last else policy)
            best = outcome.answers[0] if outcome.answers else None
            if best is None or best.action is not Action.REGENERATE:
                break
            request = self._again(request, outcome.raw, retry_message(best))
        return await asyncio.to_thread(self._guarded, replies[0], outcome)

    async def judge(self, reply: Reply) -> GuardedReply:
        """Judge a reply that is there already, without asking again."""
        if (failed := await asyncio.to_thread(failed_reply, reply)) is not None:
            return GuardedReply(failed)
        outcome = await self._judged([reply], self._guarding.policy.settled())
        return await asyncio.to_thread(self._guarded, reply, outcome)

    async def _sampled(self, request: JSON, count: int, send: Send) -> list[Reply]:
        """Replies that hold ``count`` candidates, where the server can be brought to it."""
        if self._endpoint is Endpoint.CHAT and count > 1:
            reply = await send(request | {"n": count})
            # Many servers know no n. What the caller asked for is theirs to ignore, what the
            # policy asks for is not.
            failed = reply.status >= FAILED_FROM
            there = count if failed else len(_items(reply_body(reply).get("choices")))
            missing = self._guarding.policy.samples - there if there < count else 0
            rest = {key: value for key, value in request.items() if key != "n"}
            return [reply, *await asyncio.gather(*(send(rest) for _ in range(missing)))]
        return list(await asyncio.gather(*(send(request) for _ in range(count))))

    async def _judged(self, replies: Sequence[Reply], policy: Policy) -> Outcome:
        if sum(len(reply.body) for reply in replies) < LONG_BYTES:
            bodies = [reply_body(reply) for reply in replies]
        else:
            bodies = await asyncio.to_thread(lambda: [reply_body(reply) for reply in replies])
        if self._endpoint is Endpoint.RESPONSES:
            return await guard_responses(self._asked, bodies, policy)
        return await guard_completions(self._asked, bodies, policy, self._count)

    def _again(self, request: JSON, raw: str, feedback: str) -> JSON:
        turns = [{"role": "assistant", "content": raw}, {"role": "user", "content": feedback}]
        if self._endpoint is Endpoint.CHAT:
            return request | {"messages": [*_items(request.get("messages")), *turns]}
        given = request.get("input")
        before = [{"role": "user", "content": given}] if isinstance(given, str) else _items(given)
        return request | {"input": [*before, *turns]}

    def _guarded(self, reply: Reply, outcome: Outcome) -> GuardedReply:
        self._asked.remember(outcome.answers, outcome.body)
        body = json.dumps(outcome.body).encode()
        events: tuple[Event, ...] | None = None
        if self.streams and self._endpoint is Endpoint.CHAT:
            events = tuple(completion_events(self._request, outcome.body))
        elif self.streams:
            events = tuple(response_events(outcome.body))
        return GuardedReply(reply._replace(body=body), outcome.answers, events)


class StreamGuard:
    """Turns the bytes of a server's stream into the bytes that may leave.

    Args:
        stream: Guards its events.
        most_bytes: Most bytes of all events together.
    """

    def __init__(self, stream: ReplyStream, most_bytes: int) -> None:
        self._stream = stream
        self._most_bytes, self._bytes = most_bytes, 0
        self._decoder = EventDecoder()
        self._began = False

    @property
    def answers(self) -> Sequence[GuardedAnswer]:
        """The verdicts so far."""
        return self._stream.answers

    @property
    def released(self) -> bool:
        """Whether judged text has left."""
        return self._stream.released

    @property
    def failed(self) -> bool:
        """Whether the server told of an error; nothing behind it is to be read."""
        return self._stream.failed

    async def feed(self, chunk: bytes) -> bytes:
        """Take bytes of any number; return those that may leave now.

        Raises:
            UnreadableReplyError: The stream has brought more than are read of one reply.
        """
        self._bytes += len(chunk)
        few_enough_bytes(self._bytes, self._most_bytes)
        return await self._through(self._decoder.feed(chunk))

    async def finish(self) -> bytes:
        """What is left at the regular end of the stream.

        Raises:
            UnreadableReplyError: There was nothing in it but what is no event.
        """
        if self.failed:  # what has come by then is judged for the log alone
            await self._stream.broken_off()
            return b""
        remaining = await self._through(self._decoder.finish())
        if not self._began:
            raise UnreadableReplyError("the model's server sent a stream without one event")
        return remaining + b"".join(event.encode() for event in await self._stream.finish())

    async def broken_off(self) -> None:
        """Give the verdict on what has come of a stream without an end, for the log."""
        await self._stream.broken_off()

    async def _through(self, events: Sequence[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if self._stream.ended:
                break
            self._began = self._began or event.data == DONE or bool(event.json())
            out += [item.encode() for item in await self._stream.feed(event)]
        return b"".join(out)


def _items(value: object) -> list[object]:
    """A list of the protocol; anything else in its place holds nothing."""
    return value if isinstance(value, list) else []
