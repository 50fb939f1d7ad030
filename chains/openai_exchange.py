"""One guarded exchange with an OpenAI-compatible server, over the client's or gateway's transport.

All requests and replies pass through here, so that every way of reading a reply is guarded.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from chains.openai_chat import ChatStream, CompletionCandidates, completion_events
from chains.openai_reply import ReplyStream
from chains.openai_request import GuardedRequest
from chains.openai_responses import ResponseCandidates, ResponseStream, response_events
from chains.openai_wire import EVENT_STREAM, JSON, LONG_BYTES, Reply, failed_reply, reply_body
from chains.options import StreamMode
from guardrail import GuardedAnswer, Policy
from guardrail.candidates import Attempt, best_answers


class GuardedReply(NamedTuple):
    """A reply that may leave, with its verdicts; errors and replies without an answer have none."""

    reply: Reply
    answers: tuple[GuardedAnswer, ...] = ()


Send = Callable[[JSON], Awaitable[Reply]]


class _FailedReplyError(Exception):
    """The server answered with an error."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply


class Exchange(GuardedRequest):
    """One request and its guarded reply; arguments and errors are those of ``GuardedRequest``."""

    @property
    def policy(self) -> Policy:
        """The policy that decides on the reply."""
        return self.options.policy

    @property
    def streams(self) -> bool:
        """True if a stream was requested."""
        return bool(self.body.get("stream"))

    @property
    def streams_through(self) -> bool:
        """True if the reply can be judged while it streams; ranking, retries and JSON wait."""
        waits = self.options.mode is StreamMode.BUFFER or self.policy.resamples
        waits = waits or self.policy.waits
        whole = self.policy.structured or (waits and not self.policy.dry_run)
        return self.streams and self.count == 1 and not whole

    def stream(self) -> ReplyStream:
        """A guard for the server's stream."""
        return (ResponseStream if self.responses else ChatStream)(self)

    async def whole(self, send: Send) -> GuardedReply:
        """Sample, judge and rank, again with feedback if the policy says so.

        ``send`` never gets a body with ``stream``. If a request fails, its error is the reply.

        Raises:
            UnreadableReplyError: The server's reply does not follow the protocol.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        await self.inject()

        async def sample(attempt: Attempt) -> list[Reply]:
            return await self._sample(self.again(attempt), attempt.samples, send)

        return await self._best(sample, self.policy.rounds)

    async def judge(self, reply: Reply) -> GuardedReply:
        """Judge a reply that exists already; the model is not called again."""

        async def sample(attempt: Attempt) -> list[Reply]:
            return [reply]

        return await self._best(sample, 1)

    async def _best(
        self, sample: Callable[[Attempt], Awaitable[list[Reply]]], rounds: int
    ) -> GuardedReply:
        """Run the candidate loop over the replies of each attempt."""
        first = list[Reply]()
        guard, count = self.options.guard, self.count
        candidates = (ResponseCandidates if self.responses else CompletionCandidates)(self)

        async def generate(attempt: Attempt) -> list[str]:
            replies = await sample(attempt)
            first.extend(replies[: 1 - len(first)])
            long = sum(len(reply.body) for reply in replies) >= LONG_BYTES
            bodies = await asyncio.to_thread(_read, replies) if long else _read(replies)
            return candidates.add(bodies, attempt.samples)

        async def check(texts: Sequence[str], policy: Policy) -> list[GuardedAnswer]:
            return await (await self.case()).rank(guard, texts, policy, record=False)

        samples = max(count, self.policy.samples)
        try:
            answers = await best_answers(
                generate, check, self.policy, samples=samples, rounds=rounds
            )
        except _FailedReplyError as error:
            return GuardedReply(error.reply)
        answers = await guard.arecord(answers, delivered=count)
        outcome = await candidates.outcome(answers, count)
        return await asyncio.to_thread(self._build_reply, first[0], *outcome)

    async def _sample(self, request: JSON, count: int, send: Send) -> list[Reply]:
        """Replies that hold ``count`` candidates, if the server supports it."""
        if self.responses or count == 1:
            return list(await asyncio.gather(*(send(request) for _ in range(count))))
        reply = await send(request | {"n": count})
        rest = {key: value for key, value in request.items() if key != "n"}
        if reply.status == 400 and self.count == 1:  # llama.cpp takes no n above its slots
            reply = await send(rest)
        # Many servers ignore n. They may ignore the caller's own, but not the policy's.
        missing = 0
        if reply.status < 300:
            choices = reply_body(reply).get("choices")
            there = len(choices) if isinstance(choices, list) else 0
            missing = self.policy.samples - there if there < count else 0
        return [reply, *await asyncio.gather(*(send(rest) for _ in range(missing)))]

    def _build_reply(
        self, reply: Reply, body: JSON, answers: tuple[GuardedAnswer, ...]
    ) -> GuardedReply:
        self.remember(answers, body)
        if not self.streams:
            return GuardedReply(reply.with_body(json.dumps(body).encode()), answers)
        events = response_events(body) if self.responses else completion_events(self.body, body)
        content = b"".join(event.encode() for event in events)
        return GuardedReply(reply.with_body(content, EVENT_STREAM), answers)


def _read(replies: Sequence[Reply]) -> list[JSON]:
    """The bodies of replies; raises _FailedReplyError if one is an error."""
    for reply in replies:
        if (failure := failed_reply(reply)) is not None:
            raise _FailedReplyError(failure)
    return [reply_body(reply) for reply in replies]
