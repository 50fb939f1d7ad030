"""One guarded exchange with an OpenAI-compatible server, independent of the transport.

The OpenAI client and the HTTP gateway both work on the wire: they pass requests and replies
through here, so that every way of reading a reply, raw ones included, gets only judged text.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from chains.injection import Inject, injected_prompt
from chains.openai_chat import ChatStream, CompletionCandidates, completion_events
from chains.openai_errors import FAILED_FROM, error_body, failed_reply
from chains.openai_reply import BROKEN_OFF, Outcome
from chains.openai_request import GuardedRequest, requested_choices
from chains.openai_response_stream import ResponseStream, response_events
from chains.openai_responses import ResponseCandidates
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
from guardrail import GuardedAnswer, Policy
from guardrail.candidates import Attempt, best_answers

if TYPE_CHECKING:
    from chains.openai_reply import ReplyStream
    from chains.openai_request import GuardSettings

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
        answers: The verdicts; empty for errors and replies without an answer.
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

    def __init__(self, guarding: GuardSettings, endpoint: Endpoint, request: JSON) -> None:
        self._asked = GuardedRequest(guarding, request, responses=endpoint is Endpoint.RESPONSES)
        self._guarding = self._asked.guarding
        self._endpoint = endpoint
        self._request = self.body = self._asked.body
        self._count = requested_choices(request) if endpoint is Endpoint.CHAT else 1
        self._injected = False

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

    async def inject(self) -> None:
        """Add the facts to the body, where the settings say so; before anything is sent."""
        inject = self._guarding.inject
        if inject is Inject.OFF or self._injected:
            return
        self._injected = True
        case = await self._asked.case()
        guard = self._guarding.guard
        text = await injected_prompt(guard, case.question, case.evidence, inject)
        if text:
            self.body = self._request = self._with_system(self._request, text)

    async def whole(self, send: Send) -> GuardedReply:
        """Sample, judge and rank, again with feedback where the policy says so.

        Args:
            send: Sends a request's body to the server; ``stream`` is never set in it.

        Returns:
            The guarded reply. Where the first request was not answered with success, its status
            and its error.

        Raises:
            UnreadableReplyError: The server answered with something else.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        await self.inject()
        request = {
            key: value for key, value in self._request.items() if key != "stream_options"
        } | ({"stream": False} if self.streams else {})

        async def sample(attempt: Attempt) -> list[Reply]:
            return await self._sampled(self._again(request, attempt), attempt.samples, send)

        return await self._best(sample, self.policy.rounds)

    async def judge(self, reply: Reply) -> GuardedReply:
        """Judge a reply that is there already; the model is not called again."""

        async def sample(attempt: Attempt) -> list[Reply]:
            return [reply]

        return await self._best(sample, 1)

    async def _best(
        self, sample: Callable[[Attempt], Awaitable[list[Reply]]], rounds: int
    ) -> GuardedReply:
        """Run the candidate loop over the replies of each attempt."""
        asked, first = self._asked, list[Reply]()
        kind = CompletionCandidates if self._endpoint is Endpoint.CHAT else ResponseCandidates
        candidates = kind(asked)

        async def generate(attempt: Attempt) -> list[str]:
            replies = await sample(attempt)
            failed = await asyncio.to_thread(lambda: [*map(failed_reply, replies)])
            if (failure := next(filter(None, failed), None)) is not None:
                raise _FailedReplyError(failure)
            first.extend(replies[: 1 - len(first)])
            return candidates.add(await _bodies(replies))

        async def check(texts: Sequence[str], policy: Policy) -> list[GuardedAnswer]:
            case = await asked.case()
            return await case.rank(self._guarding.guard, texts, policy, record=False)

        samples = max(self._count, self.policy.samples)
        try:
            answers = await best_answers(
                generate, check, self.policy, samples=samples, rounds=rounds
            )
        except _FailedReplyError as error:
            return GuardedReply(error.reply)
        answers = await self._guarding.guard.arecord(answers, delivered=self._count)
        outcome = await candidates.outcome(answers, self._count)
        return await asyncio.to_thread(self._guarded, first[0], outcome)

    async def _sampled(self, request: JSON, count: int, send: Send) -> list[Reply]:
        """Replies that hold ``count`` candidates, where the server can be brought to it."""
        if self._endpoint is Endpoint.CHAT and count > 1:
            reply = await send(request | {"n": count})
            # Many servers know no n. They may ignore the caller's own, but not the policy's.
            failed = reply.status >= FAILED_FROM
            there = count if failed else len(_items(reply_body(reply).get("choices")))
            missing = self._guarding.policy.samples - there if there < count else 0
            rest = {key: value for key, value in request.items() if key != "n"}
            return [reply, *await asyncio.gather(*(send(rest) for _ in range(missing)))]
        return list(await asyncio.gather(*(send(request) for _ in range(count))))

    def _again(self, request: JSON, attempt: Attempt) -> JSON:
        """The request of an attempt, with the rejected answer and the feedback on it."""
        if not attempt.feedback:
            return request
        turns = [
            {"role": "assistant", "content": attempt.rejected},
            {"role": "user", "content": attempt.feedback},
        ]
        if self._endpoint is Endpoint.CHAT:
            return request | {"messages": [*_items(request.get("messages")), *turns]}
        given = request.get("input")
        before = [{"role": "user", "content": given}] if isinstance(given, str) else _items(given)
        return request | {"input": [*before, *turns]}

    def _with_system(self, request: JSON, text: str) -> JSON:
        """The request with a text in its system message or instructions."""
        if self._endpoint is Endpoint.RESPONSES:
            own = request.get("instructions")
            return request | {"instructions": f"{own}\n\n{text}" if own else text}
        messages = _items(request.get("messages"))
        first = messages[0] if messages else None
        if not isinstance(first, dict) or first.get("role") not in ("system", "developer"):
            return request | {"messages": [{"role": "system", "content": text}, *messages]}
        own = first.get("content")
        if isinstance(own, list):
            content: object = [*own, {"type": "text", "text": text}]
        else:
            content = f"{own}\n\n{text}" if own else text
        return request | {"messages": [first | {"content": content}, *messages[1:]]}

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
        """Whether the server reported an error; nothing after it is read."""
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
        """What is left at the end of the stream.

        Of a stream that ends in the middle of an answer that is an error: what came of the last
        sentence does not leave, and is judged for the log alone.

        Raises:
            UnreadableReplyError: There was nothing in it but what is no event.
        """
        if self.failed:  # what has come by then is judged for the log alone
            await self._stream.broken_off()
            return b""
        remaining = await self._through(self._decoder.finish())
        if not self._began:
            raise UnreadableReplyError("the model's server sent a stream without one event")
        if not self._stream.whole:
            await self._stream.broken_off()
            error = error_body(BROKEN_OFF.message, kind="server_error", code="upstream_broke_off")
            return remaining + Event.of(error).encode()
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


class _FailedReplyError(Exception):
    """The server answered with an error."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"status {reply.status}")
        self.reply = reply


async def _bodies(replies: Sequence[Reply]) -> list[JSON]:
    if sum(len(reply.body) for reply in replies) < LONG_BYTES:
        return [reply_body(reply) for reply in replies]
    return await asyncio.to_thread(lambda: [reply_body(reply) for reply in replies])


def _items(value: object) -> list[object]:
    """A list of the protocol; anything else in its place holds nothing."""
    return value if isinstance(value, list) else []
