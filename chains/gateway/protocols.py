"""Guardrail protocols of other gateways: LiteLLM, Portkey, TrueFoundry, the FMS orchestrator."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import NamedTuple

from chains.evidence.base import Found, Source, case_of
from chains.gateway.requests import in_reader_thread
from chains.openai_exchange import Exchange
from chains.openai_request import MOST_CANDIDATES, GuardSettings
from chains.openai_wire import JSON, Endpoint, Reply, object_at
from chains.rendering import details, safe_reasons
from guardrail import Action, GuardedAnswer
from guardrail.core.errors import InputError
from guardrail.core.types import Category, Passage

ProtocolReply = tuple[object, tuple[GuardedAnswer, ...]]
"""The reply as JSON, and the verdicts behind it."""


class Protocol(NamedTuple):
    """How the calls of another gateway are answered, or refused by an ``InputError``.

    ``model`` is where a call names the model, for routes; ``stored_model`` finds that of a call
    that does not, by the owner of its ids. ``texts`` are checked by the policy of checks.
    """

    answer: Callable[[JSON, GuardSettings], Awaitable[ProtocolReply]]
    model: tuple[str, ...] = ("model",)
    stored_model: Callable[[JSON, str], Awaitable[object]] | None = None
    texts: bool = False

    async def model_of(self, body: JSON, owner: str) -> object:
        """The model that a call names; None if it names none."""
        found: object = body
        for name in self.model:
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, str) or self.stored_model is None:
            return found
        return await self.stored_model(body, owner)


def refusal_text(answer: GuardedAnswer, options: GuardSettings) -> str:
    """The policy's text for a refused answer, with reasons if ``options`` gives them."""
    reasons = "; ".join(safe_reasons(answer)) if options.rights.reasons else ""
    return f"{answer.text} ({reasons})" if reasons else answer.text


async def _judge_exchange(
    options: GuardSettings, request: JSON, reply: JSON
) -> tuple[JSON, tuple[GuardedAnswer, ...], GuardedAnswer | None]:
    """Judge a reply by the evidence in its request, as the gateway judges its upstream's.

    Returns the guarded reply, its choices best first; the verdicts; and the first refusal, if any.
    """
    responses = "output" in reply and "choices" not in reply
    choices = reply.get("choices")
    count = min(max(1, len(choices)), MOST_CANDIDATES) if isinstance(choices, list) else 1
    exchange = await in_reader_thread(
        Exchange,
        options,
        Endpoint.RESPONSES if responses else Endpoint.CHAT,
        # The reply exists already, however many choices were requested.
        {**request, "stream": False, "n": count},
    )
    guarded = await exchange.judge(Reply(200, (), json.dumps(reply).encode()))
    answers = guarded.answers
    refused = next((answer for answer in answers if answer.action is Action.REFUSE), None)
    return json.loads(guarded.reply.body), answers, refused


async def _portkey(body: JSON, options: GuardSettings) -> ProtocolReply:
    """Portkey's ``default.webhook``, whose ``transformedData`` is the guarded reply."""
    event = body.get("eventType")
    if event == "beforeRequestHook":
        return {"verdict": True}, ()
    if event != "afterRequestHook":
        raise InputError(f"unknown eventType {event!r}")
    request, reply = object_at(body, "request", "json"), object_at(body, "response", "json")
    if request is None or reply is None:
        raise InputError("the webhook needs request.json and response.json")
    guarded, answers, refused = await _judge_exchange(options, request, reply)
    return {
        "verdict": refused is None,
        "data": {"answers": [details(one, reasons=options.rights.reasons) for one in answers]},
        "transformedData": {"response": {"json": guarded}},
    }, answers


async def _truefoundry(body: JSON, options: GuardSettings) -> ProtocolReply:
    """TrueFoundry's custom guardrail: ``{"requestBody", "responseBody", "config", "context"}``.

    The host uses ``result`` only if the guardrail mutates, and only ``config`` says whether it
    does: without ``operation`` there every reply is refused, since removed text would be returned.
    A refusal is a successful call, since the host takes other statuses for a failure.
    """
    request, reply = object_at(body, "requestBody"), object_at(body, "responseBody")
    if request is None:
        raise InputError("requestBody must be the request to the model")
    if "responseBody" not in body:
        return {"verdict": True}, ()
    if reply is None:
        raise InputError("responseBody must be the model's reply")
    mutates = (object_at(body, "config") or {}).get("operation") == "mutate"
    if not mutates and not options.policy.dry_run:
        message = (
            "this guardrail rewrites replies, which one that validates cannot: in TrueFoundry set "
            'its Operation to Mutate, and its Config to {"operation": "mutate"}'
        )
        return {"verdict": False, "message": message}, ()
    guarded, answers, refused = await _judge_exchange(options, request, reply)
    if refused is not None:
        return {"verdict": False, "message": refusal_text(refused, options)}, answers
    changed = {"transformed": True, "result": guarded} if mutates else {}
    return {"verdict": True, **changed}, answers


async def _fms(body: JSON, options: GuardSettings) -> ProtocolReply:
    """A detector of the FMS orchestrator, with one detection per unsupported sentence.

    The call is ``{"content", "context_type": "docs", "context": [...]}``.
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
    parameters = object_at(body, "detector_params") or {}
    question = str(parameters.get("question") or body.get("prompt") or "")
    documents = Found.of(Source.CALLER, [Passage(text=text) for text in context])
    found = options.rights.evidence_of(documents)
    case = await case_of(options.guard, question, found, options.evidence.mode)
    answer = await case.check(options.guard, content, options.checks_policy.settled())
    detections = []
    for sentence in () if answer.dry_run else answer.sentences:
        contradicted = sentence.category is Category.CONTRADICTORY
        if not (sentence.na or contradicted):
            continue
        evidence = {"sentence": sentence.text} | ({"note": sentence.note} if sentence.note else {})
        detections.append(
            {
                "start": sentence.start,
                "end": sentence.end,
                "text": sentence.text,
                "detection": "contradicted" if contradicted else "unsupported",
                "detection_type": "grounding",
                "score": 1.0 - (sentence.support or 0.0),
                "evidence": [{"name": name, "value": text} for name, text in evidence.items()],
            }
        )
    return detections, (answer,)


PROTOCOLS: dict[str, Callable[[], Protocol]] = {
    "litellm": lambda: import_module("chains.gateway.litellm").protocol(),
    "portkey": lambda: Protocol(_portkey, ("request", "json", "model")),
    "truefoundry": lambda: Protocol(_truefoundry, ("requestBody", "model")),
    "fms": lambda: Protocol(_fms, texts=True),
}
"""By name; ``chains.gateway.settings.PROTOCOL_PATHS`` has their paths."""
