"""LiteLLM's ``generic_guardrail_api``: requests bring evidence, responses are judged against it.

The call for a response does not repeat the conversation, so what its request held is kept by
``litellm_call_id``, for all workers of a gateway. A streamed response is
sent again and again as it grows: with ``streaming_transform_mode: incremental_diff`` only text that
was judged leaves the proxy.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from chains.evidence.base import Case, Found, case_of
from chains.evidence.items import RequestField, request_field
from chains.evidence.openai import chat_evidence, chat_question
from chains.gateway.protocols.base import Protocol, ProtocolReply, refusal_text
from chains.gateway.protocols.kept import KEPT_VARIABLE, KeptRequests
from chains.gateway.threads import in_reader_thread
from chains.openai_calls import calls_in, documents_of_calls
from chains.openai_codes import scalar, sealed, tree
from chains.openai_wire import JSON, is_json_document
from chains.rendering import Notes, render, render_sentences
from chains.structured import Document, judge_documents
from chains.styles import MarkerStyle
from guardrail.core.errors import InputError
from guardrail.core.types import Action, GuardedAnswer, Problem

if TYPE_CHECKING:
    from chains.openai_text import Guarding

__all__ = ["LiteLLMGuardrail"]

PARAMETERS = ("evidence", "policy", "strictness")
"""What ``additional_provider_specific_params`` may say."""
NOT_KEPT = Problem(
    part="evidence",
    message="no request is kept for this response, so its evidence could not be read; set mode "
    "to [pre_call, post_call] in LiteLLM's settings, and send fewer or smaller requests at once",
)
"""What is told of a response without evidence whose request never came, or is kept no longer."""
MOST_TEXTS = 128
"""Texts of one response, each of which is judged for itself: as many as a reply has choices."""
NO_CALLS = "the model calls a tool, which callers may not use here"
UNKNOWN_CALLS = "the model calls a tool in a form that cannot be judged"
ENDS = (".", "!", "?", "…", "。", "]", "`", ")", '"', "”")


class LiteLLMGuardrail(Protocol):
    """Answers the calls of LiteLLM's proxy.

    Args:
        kept: Where requests wait for their response; None for the file that the workers of this
            gateway share, or for this process's memory where it is alone.
    """

    def __init__(self, kept: KeptRequests | None = None) -> None:
        self._kept = kept or KeptRequests(os.environ.get(KEPT_VARIABLE))

    async def model_of(self, body: JSON, owner: str) -> object:
        """Tell the model of a request; a response does not name it, so that of its request."""
        model, call = body.get("model"), _call(body, owner)
        if isinstance(model, str) or call is None:
            return model
        return await asyncio.to_thread(self._kept.model, call)

    async def __call__(self, body: JSON, guarding: Guarding) -> ProtocolReply:
        """Take a request or a response of the proxy.

        Raises:
            InputError: It is neither, or hands over what is no evidence.
            GuardrailError: A part cannot be used, or the request cannot be kept.
        """
        call, model = _call(body, guarding.owner), body.get("model")
        field = await in_reader_thread(_field, body)
        found = await in_reader_thread(_read, body, field, guarding)
        kind = body.get("input_type")
        if kind == "request":
            if call is not None:
                model = model if isinstance(model, str) else None
                await asyncio.to_thread(self._kept.add, call, *found, model)
            return {"action": "NONE"}, ()
        if kind != "response":
            raise InputError(f"input_type must be 'request' or 'response', not {kind!r}")
        if body.get("tool_calls") and not guarding.rights.tools:
            # The proxy takes back texts alone: a call leaves as it is, or the reply does not.
            return {"action": "BLOCKED", "blocked_reason": NO_CALLS}, ()
        found = await asyncio.to_thread(self._joined, call, *found)
        policy, problems = guarding.rights.policy_of(field, guarding.policy)
        guarding = replace(guarding, policy=policy)
        case = await case_of(guarding.guard, *found, guarding.evidence.mode)
        case = case._replace(problems=(*case.problems, *problems))
        return await self._judged(body, guarding, case)

    async def _judged(
        self, body: JSON, guarding: Guarding, case: Case
    ) -> tuple[object, tuple[GuardedAnswer, ...]]:
        texts = _texts(body)
        if len(texts) > MOST_TEXTS:
            raise InputError(f"a response has at most {MOST_TEXTS} texts, not {len(texts)}")
        calls = await in_reader_thread(calls_in, body)
        documents = documents_of_calls(calls)
        if not _is_whole(body.get("tool_calls") or [], calls.get("tool_calls", [])):
            if guarding.policy.structured:
                return {"action": "BLOCKED", "blocked_reason": UNKNOWN_CALLS}, ()
            documents.append(Document("tool calls", "", None))
        if guarding.policy.structured:
            documents += [
                Document.read(f"text {place}", "answer", text)
                for place, text in enumerate(texts)
                if is_json_document(text)
            ]
        verdicts = await judge_documents(guarding.guard, guarding.policy, case, documents)
        answers = [*verdicts.answers]
        if verdicts.withheld:
            return {"action": "BLOCKED", "blocked_reason": guarding.policy.refusal}, (*answers,)
        beside = {"guardrail": told} if (told := verdicts.told()) else {}
        judged = {one.of for one in verdicts.judged}
        returned: list[str] = []
        places: list[int] = []
        for place, text in enumerate(texts):
            if not text.strip() or f"text {place}" in judged:
                returned.append(text)
                places.append(0)
                continue
            answer = await case.check(guarding.guard, text, guarding.policy.settled())
            answers.append(answer)
            growing = not text.rstrip().endswith(ENDS)
            if answer.action is Action.REFUSE and not growing:
                reason = refusal_text(answer, guarding)
                return {"action": "BLOCKED", "blocked_reason": reason}, tuple(answers)
            shown, held = await asyncio.to_thread(_shown, answer, text, guarding.style)
            returned.append(shown)
            places.append(held)
        if returned == texts:
            return {"action": "NONE", **beside}, tuple(answers)
        reply = {
            "action": "GUARDRAIL_INTERVENED",
            "texts": returned,
            "stream_holdback_chars": places,
            **beside,
        }
        return reply, tuple(answers)

    def _joined(self, call: str | None, question: str, found: Found) -> tuple[str, Found]:
        """What a response is judged against: what it brings itself, and what its request held."""
        kept = None if call is None else self._kept.get(call)
        if kept is not None:
            return question or kept[0], found | kept[1]
        known = found.sources or found.problems
        return question, found if known else found._replace(problems=(NOT_KEPT,))


def _call(body: JSON, owner: str) -> str | None:
    """The name of a call; another owner's call of the same id is another call."""
    named = body.get("litellm_call_id")
    return f"{owner} {named}".strip() if isinstance(named, str) else None


def _field(body: JSON) -> RequestField:
    parameters = body.get("additional_provider_specific_params")
    known = parameters if isinstance(parameters, dict) else {}
    return request_field({key: known[key] for key in PARAMETERS if key in known})


def _read(body: JSON, field: RequestField, guarding: Guarding) -> tuple[str, Found]:
    """The question and the evidence that a call brings."""
    request = {"messages": body.get("structured_messages")}
    settings = guarding.rights.places(guarding.evidence)
    question = chat_question(request, settings)
    if not question and body.get("input_type") == "request":
        question = next((text for text in reversed(_texts(body)) if text.strip()), "")
    return question, guarding.rights.evidence_of(chat_evidence(request, field, settings))


def _texts(body: JSON) -> list[str]:
    """The texts of a call, each in its place; none where it has none.

    Raises:
        InputError: What stands there is something else. It would leave unjudged.
    """
    texts = body.get("texts")
    if texts is None:
        return []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError("texts must be a list of texts: what is something else cannot be judged")
    return texts


def _is_whole(told: object, judged: object) -> bool:
    """Whether all that calls tell is judged, or no text: the proxy takes back texts alone."""
    if told is None or told == judged or scalar(told) is not None:
        return True
    if isinstance(told, list) and isinstance(judged, list) and len(told) == len(judged):
        return all(map(_is_whole, told, judged))
    if not isinstance(told, dict):
        return False
    known = judged if isinstance(judged, dict) else {}
    signed = tree(sealed)  # such as the signature of a thought
    return all(
        _is_whole(held, known.get(name)) or signed(held) == held for name, held in told.items()
    )


def _shown(answer: GuardedAnswer, text: str, style: MarkerStyle) -> tuple[str, int]:
    """The text to return, and how many characters of its end a later call may change."""
    if answer.dry_run:
        return text, 0
    shown = render(answer, style).text
    return shown, len(shown) - len(_settled(answer, text, shown, style))


def _settled(answer: GuardedAnswer, text: str, shown: str, style: MarkerStyle) -> str:
    """What of the shown text no later call can change: sentences with something behind them.

    The sentence that still grows may be removed once it is whole, and the list of notes moves on.
    """
    if answer.action is Action.REFUSE:
        return ""
    sentences = list(answer.sentences)
    if sentences and text.rstrip().endswith(answer.text[sentences[-1].start :].rstrip()):
        sentences.pop()
    end = sentences[-1].end if sentences else 0
    settled = render_sentences(answer.text[:end], sentences, answer, style, notes=Notes()).text
    return settled if shown.startswith(settled) else ""
