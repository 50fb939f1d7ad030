"""Portkey's ``default.webhook`` check: a verdict, and the guarded reply in place of the model's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from chains.gateway.protocols.base import Protocol, ProtocolReply
from chains.gateway.protocols.exchanges import judge_exchange
from chains.openai_wire import JSON
from chains.rendering import details
from guardrail.core.errors import InputError

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
        return (_handed(body, "request") or {}).get("model")

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
        judged = await judge_exchange(guarding, asked, reply)
        verdicts = [details(answer, reasons=guarding.reasons) for answer in judged.answers]
        return {
            "verdict": not judged.refused,
            "data": {"answers": verdicts},
            "transformedData": {"response": {"json": judged.reply}},
        }, judged.answers


def _json(body: JSON, side: str) -> JSON:
    found = _handed(body, side)
    if found is None:
        raise InputError(f"{side}.json is missing: the webhook needs the request and the reply")
    return found


def _handed(body: JSON, side: str) -> JSON | None:
    content = body.get(side)
    found = content.get("json") if isinstance(content, Mapping) else None
    return found if isinstance(found, dict) else None
