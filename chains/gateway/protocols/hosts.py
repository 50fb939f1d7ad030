"""Portkey, TrueFoundry and the FMS orchestrator, whose calls bring all that is needed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chains.evidence.base import Found, Source, case_of
from chains.gateway.protocols.base import Protocol, ProtocolReply, refusal_text
from chains.gateway.requests import in_reader_thread
from chains.openai_exchange import Exchange
from chains.openai_request import MOST_CANDIDATES
from chains.openai_wire import JSON, Endpoint, Reply
from chains.rendering import details
from guardrail import Action, GuardedAnswer, Policy
from guardrail.core.errors import InputError
from guardrail.core.types import Category, Passage, Sentence

if TYPE_CHECKING:
    from chains.openai_request import GuardSettings

__all__ = [
    "FMSDetector",
    "JudgedExchange",
    "PortkeyWebhook",
    "TrueFoundryGuardrail",
    "judge_exchange",
]

NOT_MUTATING = (
    "this guardrail rewrites replies, which one that validates cannot: in TrueFoundry set its "
    'Operation to Mutate, and its Config to {"operation": "mutate"}'
)


class JudgedExchange(NamedTuple):
    """A reply that may be returned in place of the given one.

    Attributes:
        reply: The guarded reply, which holds only judged text.
        answers: The verdicts behind it; empty if nothing in it is an answer.
    """

    reply: JSON
    answers: tuple[GuardedAnswer, ...]

    @property
    def refused(self) -> tuple[GuardedAnswer, ...]:
        """The verdicts on which the policy refused; none in a dry run."""
        return tuple(answer for answer in self.answers if answer.action is Action.REFUSE)


async def judge_exchange(guarding: GuardSettings, request: JSON, reply: JSON) -> JudgedExchange:
    """Judge a reply by the evidence in its request, as the gateway judges its upstream's.

    Several choices are returned best first.

    Args:
        guarding: How the call is guarded.
        request: The request for a chat completion or a response.
        reply: The whole reply, of the same kind.

    Raises:
        InputError: The request's field ``guardrail`` cannot be read.
        UnreadableReplyError: The reply is not of the OpenAI protocol.
        GuardrailError: A part cannot be used and the policy says ``raise``.
    """
    responses = "output" in reply and "choices" not in reply
    choices = reply.get("choices")
    count = min(max(1, len(choices)), MOST_CANDIDATES) if isinstance(choices, list) else 1
    exchange = await in_reader_thread(
        Exchange,
        guarding,
        Endpoint.RESPONSES if responses else Endpoint.CHAT,
        # The reply exists already, however many choices were requested.
        {**request, "stream": False, "n": count},
    )
    guarded = await exchange.judge(Reply(200, (), json.dumps(reply).encode()))
    return JudgedExchange(json.loads(guarded.reply.body), guarded.answers)


def _object(body: object, *path: str) -> JSON | None:
    """The object at a path of a body; None if there is none."""
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, dict) else None


class PortkeyWebhook(Protocol):
    """Portkey's ``default.webhook``.

    Before a request there is nothing to judge. Afterwards ``transformedData`` holds the guarded
    reply.
    """

    async def model_of(self, body: JSON, owner: str) -> object:
        """The model of the request that the event is about."""
        return (_object(body, "request", "json") or {}).get("model")

    async def __call__(self, body: JSON, guarding: GuardSettings) -> ProtocolReply:
        """Answer an event.

        Raises:
            InputError: It is not an event of Portkey's, or the reply is missing.
            UnreadableReplyError: The reply is not of the OpenAI protocol.
        """
        event = body.get("eventType")
        if event == "beforeRequestHook":
            return {"verdict": True}, ()
        if event != "afterRequestHook":
            raise InputError(f"unknown eventType {event!r}")
        request, reply = _object(body, "request", "json"), _object(body, "response", "json")
        if request is None or reply is None:
            raise InputError("the webhook needs request.json and response.json")
        judged = await judge_exchange(guarding, request, reply)
        verdicts = [details(answer, reasons=guarding.reasons) for answer in judged.answers]
        return {
            "verdict": not judged.refused,
            "data": {"answers": verdicts},
            "transformedData": {"response": {"json": judged.reply}},
        }, judged.answers


class TrueFoundryGuardrail(Protocol):
    """TrueFoundry's custom guardrail: ``{"requestBody", "responseBody", "config", "context"}``.

    Before a request there is nothing to judge. Afterwards ``result`` holds the guarded reply. The
    host uses it only if the guardrail mutates, and only ``config`` says whether it does: without
    ``operation`` there every reply is refused, since removed text would be returned. A refusal is
    a successful call with a verdict, since the host takes other statuses for a failure.
    """

    async def model_of(self, body: JSON, owner: str) -> object:
        """The model of the request."""
        return (_object(body, "requestBody") or {}).get("model")

    async def __call__(self, body: JSON, guarding: GuardSettings) -> ProtocolReply:
        """Answer a call before or after a request.

        Raises:
            InputError: It has no request, or the reply is not an object.
            UnreadableReplyError: The reply is not of the OpenAI protocol.
        """
        request, reply = _object(body, "requestBody"), _object(body, "responseBody")
        if request is None:
            raise InputError("requestBody must be the request to the model")
        if "responseBody" not in body:
            return {"verdict": True}, ()
        if reply is None:
            raise InputError("responseBody must be the model's reply")
        mutates = (_object(body, "config") or {}).get("operation") == "mutate"
        if not mutates and not guarding.policy.dry_run:
            return {"verdict": False, "message": NOT_MUTATING}, ()
        judged = await judge_exchange(guarding, request, reply)
        if judged.refused:
            message = refusal_text(judged.refused[0], guarding)
            return {"verdict": False, "message": message}, judged.answers
        changed = {"transformed": True, "result": judged.reply} if mutates else {}
        return {"verdict": True, **changed}, judged.answers


class FMSDetector(Protocol):
    """A detector of the FMS guardrails orchestrator, for answers with context documents.

    ``{"content", "context_type": "docs", "context": [...]}`` gives one detection for each sentence
    that the documents do not support.
    """

    def policy_of(self, guarding: GuardSettings) -> Policy:
        """The policy of checks: a detector reports, and the orchestrator acts."""
        return guarding.checks_policy

    async def __call__(self, body: JSON, guarding: GuardSettings) -> ProtocolReply:
        """Judge a text by its context.

        Raises:
            InputError: The text or the context is missing, or is a list of addresses.
        """
        content = body.get("content", body.get("generated_text"))
        if not isinstance(content, str):
            raise InputError("content must be the text to judge")
        kind = body.get("context_type", "docs")
        if kind not in ("docs", "chunks", "document"):
            raise InputError(f"context_type must be 'docs'; {kind!r} is not fetched here")
        context = body.get("context")
        if not isinstance(context, list) or not all(isinstance(item, str) for item in context):
            raise InputError("context must be a list of texts")
        parameters = _object(body, "detector_params") or {}
        question = str(parameters.get("question") or body.get("prompt") or "")
        documents = Found.of(Source.CALLER, [Passage(text=text) for text in context])
        found = guarding.rights.evidence_of(documents)
        case = await case_of(guarding.guard, question, found, guarding.evidence.mode)
        answer = await case.check(guarding.guard, content, self.policy_of(guarding).settled())
        sentences = () if answer.dry_run else answer.sentences
        return [_detection(one) for one in sentences if one.na or _contradicted(one)], (answer,)


def _contradicted(sentence: Sentence) -> bool:
    return sentence.category is Category.CONTRADICTORY


def _detection(sentence: Sentence) -> JSON:
    evidence = [{"name": "sentence", "value": sentence.text}]
    if sentence.note:
        evidence.append({"name": "note", "value": sentence.note})
    return {
        "start": sentence.start,
        "end": sentence.end,
        "text": sentence.text,
        "detection": "contradicted" if _contradicted(sentence) else "unsupported",
        "detection_type": "grounding",
        "score": 1.0 - (sentence.support or 0.0),
        "evidence": evidence,
    }
