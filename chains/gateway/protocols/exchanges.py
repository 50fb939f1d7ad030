"""For hosts that hand over a whole exchange: an OpenAI request, and the reply to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chains.gateway.threads import in_reader_thread
from chains.openai_exchange import Exchange
from chains.openai_request import MOST_CANDIDATES
from chains.openai_wire import JSON, Endpoint, Reply
from guardrail import Action, GuardedAnswer

if TYPE_CHECKING:
    from chains.openai_text import Guarding

__all__ = ["JudgedExchange", "judge_exchange"]


class JudgedExchange(NamedTuple):
    """A reply that may leave in place of the one handed over.

    Attributes:
        reply: The guarded reply; it holds judged text alone.
        answers: The verdicts behind it; empty where nothing in it is an answer.
    """

    reply: JSON
    answers: tuple[GuardedAnswer, ...]

    @property
    def refused(self) -> tuple[GuardedAnswer, ...]:
        """The verdicts after which the policy refused; none in a dry run."""
        return tuple(answer for answer in self.answers if answer.action is Action.REFUSE)


async def judge_exchange(guarding: Guarding, asked: JSON, reply: JSON) -> JudgedExchange:
    """Judge a reply against the evidence in its request, as the gateway judges its upstream's.

    Evidence, policy and tools of the request count as far as the caller may bring them, by
    ``guarding.rights``. Several choices come back best first.

    Args:
        guarding: How the call is guarded.
        asked: The request: a chat completion's or a response's, streamed or not.
        reply: The reply as a whole, of the same kind.

    Raises:
        InputError: The request's field ``guardrail`` cannot be read.
        UnreadableReplyError: The reply is not of the OpenAI protocol.
        GuardrailError: A part cannot be used and the policy says ``raise``.
    """
    responses = "output" in reply and "choices" not in reply
    endpoint = Endpoint.RESPONSES if responses else Endpoint.CHAT
    # The reply is there, however many choices were asked for.
    asked = {**asked, "stream": False, "n": _choices(reply)}
    exchange = await in_reader_thread(Exchange, guarding, endpoint, asked)
    guarded = await exchange.judge(Reply(200, (), json.dumps(reply).encode()))
    return JudgedExchange(json.loads(guarded.reply.body), guarded.answers)


def _choices(reply: JSON) -> int:
    choices = reply.get("choices")
    return min(max(1, len(choices)), MOST_CANDIDATES) if isinstance(choices, list) else 1
