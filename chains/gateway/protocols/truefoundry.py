"""TrueFoundry's custom guardrails: whether a reply may leave, and the guarded one in its place.

Its gateway sends ``{"requestBody", "config", "context"}`` before a model is asked, and
``responseBody`` beside them after it. What is not a success it takes for a failure of the
guardrail, so that a refusal is a ``verdict`` of a call that went well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chains.gateway.protocols.base import Protocol, ProtocolReply, refusal_text
from chains.gateway.protocols.exchanges import judge_exchange
from chains.openai_wire import JSON
from guardrail.core.errors import InputError

if TYPE_CHECKING:
    from chains.openai_text import Guarding

__all__ = ["TrueFoundryGuardrail"]

NOT_MUTATING = (
    "this guardrail rewrites replies, which one that validates cannot: in TrueFoundry set its "
    'Operation to Mutate, and its Config to {"operation": "mutate"}'
)
"""What is told where the host does not say that it takes the guarded reply."""


class TrueFoundryGuardrail(Protocol):
    """Answers the calls of TrueFoundry's gateway.

    Before a request there is nothing to judge. After it the reply is judged against the evidence in
    the request, and ``result`` holds the guarded reply. The host takes it only from a guardrail
    that mutates, and a call does not say by itself whether this one does: without ``operation`` in
    its ``config`` no reply leaves, since what was removed from it would.
    """

    async def model_of(self, body: JSON, owner: str) -> object:
        """Tell the model of the request handed over."""
        asked = body.get("requestBody")
        return asked.get("model") if isinstance(asked, dict) else None

    async def __call__(self, body: JSON, guarding: Guarding) -> ProtocolReply:
        """Take a call before a request, or after it.

        Raises:
            InputError: It has no request, or what should be the reply is none.
            UnreadableReplyError: The reply is not of the OpenAI protocol.
        """
        asked, reply = body.get("requestBody"), body.get("responseBody")
        if not isinstance(asked, dict):
            raise InputError("requestBody must be the request to the model")
        if "responseBody" not in body:
            return {"verdict": True}, ()
        if not isinstance(reply, dict):
            raise InputError("responseBody must be the model's reply")
        config = body.get("config")
        mutates = isinstance(config, dict) and config.get("operation") == "mutate"
        if not mutates and not guarding.policy.dry_run:
            return {"verdict": False, "message": NOT_MUTATING}, ()
        judged = await judge_exchange(guarding, asked, reply)
        if judged.refused:
            told = refusal_text(judged.refused[0], guarding)
            return {"verdict": False, "message": told}, judged.answers
        changed = {"transformed": True, "result": judged.reply} if mutates else {}
        return {"verdict": True, **changed}, judged.answers
