"""Portkey's ``default.webhook`` check: a verdict, and the guarded reply in place of the model's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from chains.gateway.protocols.base import Protocol, ProtocolReply
from chains.gateway.threads import in_reader_thread
from chains.openai_exchange import Exchange
from chains.openai_wire import JSON, Endpoint, Reply
from chains.rendition import details
from guardrail.core.errors import InputError
from guardrail.core.types import Action

if TYPE_CHECKING:
    from chains.openai_text import Guarding

__all__ = ["PortkeyWebhook"]

BEFORE, AFTER = "beforeRequestHook", "afterRequestHook"


class PortkeyWebhook(Protocol):
    """Answers the calls of Portkey's gateway.

    Before a request there is nothing to judge. After it the reply is judged against the evidence
    in the request; ``transformedData`` holds the guarded reply.
    """

    async def model_of(self, body: JSON, owner: str) -> object:
        """Tell the model of the request that the event is about."""
        asked = body.get("request")
        asked = asked.get("json") if isinstance(asked, Mapping) else None
        return asked.get("model") if isinstance(asked, Mapping) else None

    async def __call__(self, body: JSON, guarding: Guarding) -> ProtocolReply:
        """Take an event.

        Raises:
            InputError: It is none of Portkey's, or the reply is missing.
            UnreadableReplyError: The reply is not of the OpenAI protocol.
        """
        event = body.get("eventType")
        if event == BEFORE:
            return {"verdict": True}, ()
        if event != AFTER:
            raise InputError(f"eventType must be {BEFORE!r} or {AFTER!r}, not {event!r}")
        asked, reply = _json(body, "request"), _json(body, "response")
        responses = "output" in reply and "choices" not in reply
        endpoint = Endpoint.RESPONSES if responses else Endpoint.CHAT
        exchange = await in_reader_thread(Exchange, guarding, endpoint, {**asked, "stream": False})
        guarded = await exchange.judge(Reply(200, (), json.dumps(reply).encode()))
        answers = guarded.answers
        verdict = all(answer.action is not Action.REFUSE for answer in answers)
        verdicts = [details(answer, reasons=guarding.reasons) for answer in answers]
        return {
            "verdict": verdict,
            "data": {"answers": verdicts},
            "transformedData": {"response": {"json": json.loads(guarded.reply.body)}},
        }, answers


def _json(body: JSON, side: str) -> JSON:
    content = body.get(side)
    found = content.get("json") if isinstance(content, Mapping) else None
    if not isinstance(found, dict):
        raise InputError(f"{side}.json is missing: the webhook needs the request and the reply")
    return found
