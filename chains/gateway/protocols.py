"""Guardrail protocols of other gateways: LiteLLM, Portkey, TrueFoundry, the FMS orchestrator."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from pydantic import TypeAdapter

from chains.conversation import standalone_question
from chains.evidence.base import Case, Found, RequestField, Source, case_of, request_field
from chains.evidence.openai import request_evidence, request_turns
from chains.gateway.requests import in_reader_thread
from chains.openai_exchange import Exchange
from chains.openai_fields import scalar, sealed, tree
from chains.openai_request import MOST_CANDIDATES, GuardSettings, calls_in, documents_of_calls
from chains.openai_wire import JSON, MAX_PARTS, Endpoint, Reply, is_json_document, object_at
from chains.options import MarkerStyle
from chains.rendering import Notes, details, render, render_sentences, safe_reasons
from chains.structured import Document, judge_documents
from guardrail import Action, GuardedAnswer
from guardrail.core.errors import GuardrailError, InputError
from guardrail.core.types import Category, Passage, Problem

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
    count = max(1, len(choices)) if isinstance(choices, list) else 1
    if count > MOST_CANDIDATES:  # those beyond would not be judged, and the host has them
        raise InputError(f"a reply has at most {MOST_CANDIDATES} choices, not {count}")
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


# --- LiteLLM -----------------------------------------------------------------------------


class LiteLLMGuardrail:
    """Answers the calls of LiteLLM's ``generic_guardrail_api``.

    The call for a response does not repeat the conversation, so the evidence of its request is
    stored by ``litellm_call_id``, for all workers of a gateway. A growing response is sent again
    and again: with ``streaming_transform_mode: incremental_diff`` only judged text leaves the
    proxy.
    """

    def __init__(self, pending: PendingRequests | None = None) -> None:
        self._pending = pending or PendingRequests(os.environ.get(STORE_VARIABLE))

    async def stored_model(self, body: JSON, owner: str) -> object:
        """The model of a response, which is that of its request."""
        call = _call(body, owner)
        stored = await asyncio.to_thread(self._pending.get, call) if call else None
        return stored[2] if stored else None

    async def __call__(self, body: JSON, options: GuardSettings) -> ProtocolReply:
        """Answer a request or a response of the proxy."""
        call, model = _call(body, options.owner), body.get("model")
        known = object_at(body, "additional_provider_specific_params") or {}
        given = {key: known[key] for key in RequestField.model_fields if key in known}
        field = await in_reader_thread(request_field, given)
        question, found = await in_reader_thread(_read, body, field, options)
        kind = body.get("input_type")
        if kind == "request":
            if call is not None:
                model = model if isinstance(model, str) else None
                await asyncio.to_thread(self._pending.add, call, question, found, model)
            return {"action": "NONE"}, ()
        if kind != "response":
            raise InputError(f"input_type must be 'request' or 'response', not {kind!r}")
        if body.get("tool_calls") and not options.rights.tools:
            # The proxy accepts only texts: a call leaves unchanged, or the reply does not.
            return _blocked("the model calls a tool, which callers may not use here"), ()
        stored = await asyncio.to_thread(self._pending.get, call) if call else None
        if stored is not None:
            question, found = question or stored[0], found | stored[1]
        elif not (found.sources or found.problems):
            problem = Problem(
                part="evidence",
                message="the request of this response is not stored, so its evidence could not be "
                "read; set mode to [pre_call, post_call] in LiteLLM's settings, and send fewer or "
                "smaller requests at once",
            )
            found = found._replace(problems=(problem,))
        policy, problems = options.rights.policy_of(field, options.policy)
        options = replace(options, policy=policy)
        case = await case_of(options.guard, question, found, options.evidence.mode)
        case = case._replace(problems=(*case.problems, *problems))
        return await _judge_response(body, options, case)


async def _judge_response(body: JSON, options: GuardSettings, case: Case) -> ProtocolReply:
    texts, policy = _texts(body), options.policy
    if len(texts) > MAX_PARTS:
        raise InputError(f"a response has at most {MAX_PARTS} texts, not {len(texts)}")
    calls = await in_reader_thread(calls_in, body)
    documents = documents_of_calls(calls)
    if not _is_whole(body.get("tool_calls") or [], calls.get("tool_calls", [])):
        if policy.structured:
            return _blocked("the model calls a tool in a form that cannot be judged"), ()
        documents.append(Document("tool calls", "", None))
    if policy.structured:
        documents += [
            Document.read(f"text {place}", "answer", text)
            for place, text in enumerate(texts)
            if is_json_document(text)
        ]
    verdicts = await judge_documents(options.guard, policy, case, documents)
    answers = [*verdicts.answers]
    if verdicts.withheld:
        return _blocked(policy.refusal), tuple(answers)
    reported = {"guardrail": report} if (report := verdicts.report()) else {}
    judged = {one.of for one in verdicts.judged}
    returned: list[str] = []
    held_back: list[int] = []
    for place, text in enumerate(texts):
        shown, held = text, 0
        if text.strip() and f"text {place}" not in judged:
            answer = await case.check(options.guard, text, policy.settled())
            answers.append(answer)
            ends = (".", "!", "?", "…", "。", "]", "`", ")", '"', "”")
            growing = not text.rstrip().endswith(ends)
            if answer.action is Action.REFUSE and not growing:
                return _blocked(refusal_text(answer, options)), tuple(answers)
            shown, held = await asyncio.to_thread(_render, answer, text, options.style)
        returned.append(shown)
        held_back.append(held)
    if returned == texts:
        return {"action": "NONE", **reported}, tuple(answers)
    changed = {"texts": returned, "stream_holdback_chars": held_back}
    return {"action": "GUARDRAIL_INTERVENED", **changed, **reported}, tuple(answers)


def _blocked(reason: str) -> JSON:
    return {"action": "BLOCKED", "blocked_reason": reason}


def _call(body: JSON, owner: str) -> str | None:
    """The id of a call, with its owner: another owner's call of the same id is another call."""
    call = body.get("litellm_call_id")
    return f"{owner} {call}".strip() if isinstance(call, str) else None


def _read(body: JSON, field: RequestField, options: GuardSettings) -> tuple[str, Found]:
    """The question and the evidence of a call."""
    request = {"messages": body.get("structured_messages")}
    settings = options.rights.places(options.evidence)
    question = standalone_question(request_turns(request, settings))
    if not question and body.get("input_type") == "request":
        question = next((text for text in reversed(_texts(body)) if text.strip()), "")
    return question, options.rights.evidence_of(request_evidence(request, field, settings))


def _texts(body: JSON) -> list[str]:
    """The texts of a call, by place; raises InputError, since others would return unjudged."""
    texts = body.get("texts")
    if texts is None:
        return []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError("texts must be a list of texts: anything else cannot be judged")
    return texts


def _is_whole(calls: object, judged: object) -> bool:
    """Whether everything in calls is judged or no text, since the proxy accepts only texts."""
    if calls is None or calls == judged or scalar(calls) is not None:
        return True
    if isinstance(calls, list) and isinstance(judged, list) and len(calls) == len(judged):
        return all(map(_is_whole, calls, judged))
    if not isinstance(calls, dict):
        return False
    known = judged if isinstance(judged, dict) else {}
    signed = tree(sealed)  # such as the signature of a thought
    return all(
        _is_whole(held, known.get(name)) or signed(held) == held for name, held in calls.items()
    )


def _render(answer: GuardedAnswer, text: str, style: MarkerStyle) -> tuple[str, int]:
    """The text to return, and how many characters of its end a later call may change.

    The last sentence may still grow and be removed, and the list of notes moves on.
    """
    if answer.dry_run:
        return text, 0
    shown = render(answer, style).text
    if answer.action is Action.REFUSE:
        return shown, len(shown)
    sentences = list(answer.sentences)
    if sentences and text.rstrip().endswith(answer.text[sentences[-1].start :].rstrip()):
        sentences.pop()
    end = sentences[-1].end if sentences else 0
    settled = render_sentences(answer, sentences, style, Notes(), end=end).text
    return shown, len(shown) - (len(settled) if shown.startswith(settled) else 0)


STORE_VARIABLE = "KG_WORKER_REQUESTS"
"""Names the file through which the workers of one gateway share requests."""


class PendingRequests:
    """The newest requests, bounded in number and bytes, in memory or in a shared file.

    Raises:
        GuardrailError: The file cannot be opened.
    """

    def __init__(
        self, path: str | None = None, *, most: int = 10_000, most_bytes: int = 256 * 2**20
    ) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._requests = TypeAdapter(tuple[str, Found, str | None])
        self._lock = threading.Lock()
        with self._locked():
            # Seconds that a worker waits for the others to write.
            self._db = sqlite3.connect(path or ":memory:", timeout=10.0, check_same_thread=False)
            self._db.executescript("""
                PRAGMA journal_mode = WAL;
                PRAGMA synchronous = OFF;
                CREATE TABLE IF NOT EXISTS pending (
                    place INTEGER PRIMARY KEY,
                    call TEXT UNIQUE NOT NULL,
                    size INTEGER NOT NULL,
                    request TEXT
                );
                CREATE INDEX IF NOT EXISTS sizes ON pending (size);
            """)

    def add(self, call: str, question: str, found: Found, model: str | None) -> None:
        """Store a request with its model; the oldest are dropped when there is no room."""
        # As ASCII, so that lone surrogates can be stored.
        request = json.dumps(self._requests.dump_python((question, found, model), mode="json"))
        row = (json.dumps(call), len(request), request)
        with self._locked(), self._db:
            insert = "INSERT OR REPLACE INTO pending (call, size, request) VALUES (?, ?, ?)"
            self._db.execute(insert, row)
            while True:
                query = "SELECT count(*), total(size) FROM pending"
                calls, size = self._db.execute(query).fetchone()
                if calls <= self._most and size <= self._most_bytes:
                    break
                oldest = "DELETE FROM pending WHERE place = (SELECT min(place) FROM pending)"
                self._db.execute(oldest)

    def get(self, call: str) -> tuple[str, Found, str | None] | None:
        """Question, evidence and model of a request; None if it is not stored."""
        with self._locked():
            query = "SELECT request FROM pending WHERE call = ?"
            row = self._db.execute(query, (json.dumps(call),)).fetchone()
        return None if row is None else self._requests.validate_python(json.loads(row[0]))

    def close(self) -> None:
        """Close the file; its content stays."""
        self._db.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise GuardrailError(
                f"requests cannot be stored until their response: {error}; check whether the "
                "folder for temporary files is full"
            ) from error


def _litellm() -> Protocol:
    """LiteLLM's protocol, with a store of its own."""
    guardrail = LiteLLMGuardrail()
    return Protocol(guardrail, stored_model=guardrail.stored_model)


PROTOCOLS: dict[str, Callable[[], Protocol]] = {
    "litellm": _litellm,
    "portkey": lambda: Protocol(_portkey, ("request", "json", "model")),
    "truefoundry": lambda: Protocol(_truefoundry, ("requestBody", "model")),
    "fms": lambda: Protocol(_fms, texts=True),
}
"""By name; ``chains.gateway.settings.PROTOCOL_PATHS`` has their paths."""
