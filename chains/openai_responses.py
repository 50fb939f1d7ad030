"""Responses (the OpenAI API of that name) under the guardrail: whole ones.

Message items are judged; items of tools pass; reasoning keeps only what is encrypted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from chains.evidence.base import Case, Found, Source
from chains.evidence.openai import search_results
from chains.openai_asked import Asked
from chains.openai_chat import Outcome
from chains.openai_codes import codes_only, echoed
from chains.openai_errors import clean_error
from chains.openai_text import (
    JSON,
    UnreadableReplyError,
    cited,
    guard_refusal,
    is_json_document,
    shown,
)
from chains.rendition import PlacedCitation, details, render
from chains.structured import Document, Judged, judge_documents
from guardrail import CheckRequest, GuardedAnswer, Policy

__all__ = [
    "clean_item",
    "clean_response",
    "flat_annotation",
    "guard_response",
    "guard_responses",
    "of_a_tool",
    "searched",
]

# fmt: off
RESPONSE_FIELDS = frozenset({
    "id", "object", "created_at", "completed_at", "status", "error", "incomplete_details",
    "instructions", "model", "output", "parallel_tool_calls", "temperature",
    "tool_choice", "tools", "top_p", "background", "conversation", "max_output_tokens",
    "max_tool_calls", "previous_response_id", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "text",
    "top_logprobs", "truncation", "usage", "user",
})
# fmt: on
ECHOED = frozenset(
    {
        "model",
        "instructions",
        "tools",
        "tool_choice",
        "prompt",
        "text",
        "user",
        "prompt_cache_key",
        "safety_identifier",
    }
)  # fmt: skip
"""Fields in which a response repeats its request."""

REASONING_FIELDS = frozenset({"id", "type", "status", "encrypted_content"})
TOOL_ITEMS = (
    "_call",
    "_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "compaction",
)
"""Endings of the types of items that are a tool's business, not an answer."""

TOLD_BY_TOOLS = frozenset({"output", "outputs", "results", "error"})
"""Fields in which a server says what its own tools told it: text that is not judged."""

CALL_HEADS = frozenset({
    "id", "call_id", "type", "status", "name", "server_label", "namespace", "encrypted_content",
    "approval_request_id", "tools",
})  # fmt: skip
"""Fields of a tool's item that name it and hand nothing over."""

REASONS = ("max_output_tokens", "content_filter")
"""Why a response may be incomplete."""


async def guard_responses(asked: Asked, bodies: Sequence[JSON], policy: Policy) -> Outcome:
    """Guard the best of one or several responses to one request.

    Raises:
        UnreadableReplyError: A reply is not a response.
        GuardrailError: A part cannot be used and the policy says ``raise``.
    """
    for body in bodies:
        if not isinstance(body.get("output"), list):
            raise UnreadableReplyError("the model's server did not answer with a response")
    best = bodies[0]
    texts = [_answer_text(body) for body in bodies]
    spoken = [place for place, text in enumerate(texts) if text.strip()]
    if len(spoken) > 1:
        case = await asked.case()
        ranked = await case.rank(asked.guarding.guard, [texts[place] for place in spoken], policy)
        best = bodies[spoken[ranked[0].index]]
    body, answers = await guard_response(asked, best, policy)
    return Outcome(body, answers, _answer_text(best))


async def guard_response(
    asked: Asked, body: JSON, policy: Policy
) -> tuple[JSON, tuple[GuardedAnswer, ...]]:
    """Guard one response; returns it with the verdicts on its texts, in order."""
    guarding, data = asked.guarding, asked.data
    for item in body.get("output") or ():
        asked.add(searched(item, asked.body))
    case = await asked.case()
    kept = clean_response(body, asked.body)
    if not asked.takes_calls:
        kept["output"] = [item for item in kept["output"] if not of_a_tool(item)]
    parts = [
        part for item in kept["output"] if item.get("type") == "message" for part in item["content"]
    ]
    judged = [
        part
        for part in parts
        if part["type"] == "output_text"
        and part["text"].strip()
        and not (data and is_json_document(part["text"]))
    ]
    requests = [
        CheckRequest(question=case.question, answer=part["text"], evidence=case.evidence)
        for part in judged
    ]
    answers = await guarding.guard.acheck_batch(requests, policy=policy) if requests else []
    calls = any(str(item.get("type")).endswith("_call") for item in kept["output"])
    answers = [case.with_problems(answer) for answer in answers]
    for part, answer in zip(judged, answers, strict=True):
        rendition = await asyncio.to_thread(render, answer, guarding.style)
        if not answer.dry_run:
            part["text"] = shown(rendition.text, answer, calls_tools=calls) or ""
        part["annotations"] = [flat_annotation(citation) for citation in rendition.citations]
        part["guardrail"] = await asyncio.to_thread(details, answer, reasons=guarding.reasons)
    for part in parts:
        if part["type"] == "refusal" and part["refusal"].strip():
            part["refusal"] = await guard_refusal(guarding, case, part["refusal"])
    structured = await _judge_data(asked, case, kept)
    return kept, (*answers, *(verdict.answer for verdict in structured))


async def _judge_data(asked: Asked, case: Case, kept: JSON) -> list[Judged]:
    """Judge JSON and calls of tools where the policy asks for it; withhold what fails.

    Returns:
        The verdicts, which the response's field ``guardrail`` tells as ``structured``.
    """
    held: dict[str, JSON] = {}
    documents = []
    for place, item in enumerate(kept["output"]):
        if of_a_tool(item):
            of = str(item.get("call_id") or item.get("id") or f"output {place}")
            held[of] = item
            documents.append(_call_document(of, item))
        for number, part in enumerate(item["content"] if item.get("type") == "message" else ()):
            if asked.data and part.get("type") == "output_text" and is_json_document(part["text"]):
                of = f"output {place}, content {number}"
                held[of] = part
                documents.append(Document.read(of, "answer", part["text"]))
    judged = await judge_documents(asked.guarding, case, documents)
    if judged:
        kept["guardrail"] = {"structured": [verdict.details() for verdict in judged]}
    for failed in (held[verdict.of] for verdict in judged if verdict.withheld):
        if failed.get("type") == "output_text":
            failed.clear()
            failed |= {"type": "refusal", "refusal": asked.guarding.policy.refusal}
        else:
            kept["output"] = [item for item in kept["output"] if item is not failed]
    return judged


def _call_document(of: str, item: JSON) -> Document:
    """What an item hands to a tool: its arguments, code, commands or queries."""
    told = {}
    for key, value in item.items():
        if key not in CALL_HEADS:
            told[key] = Document.read(of, key, value).value
    return Document(of, str(item.get("name") or item.get("type")), told)


def of_a_tool(item: JSON) -> bool:
    """Whether an item of the output is a tool's business."""
    return str(item.get("type")).endswith(TOOL_ITEMS)


def searched(item: object, request: JSON) -> Found:
    """What a file search found that the request asked for; nothing for any other item."""
    tools = request.get("tools")
    wanted = any(
        isinstance(tool, dict) and tool.get("type") == "file_search"
        for tool in (tools if isinstance(tools, list) else [])
    )
    if wanted and isinstance(item, dict) and item.get("type") == "file_search_call":
        return Found.of(Source.TOOLS, search_results(item) or None)
    return Found()


def clean_response(body: JSON, request: JSON) -> JSON:
    """A response with only what the protocol names; its texts are still unjudged.

    Args:
        body: The response as the server sent it.
        request: What was asked.
    """
    plain = RESPONSE_FIELDS - ECHOED - {"output", "error"}
    kept = {key: codes_only(body[key]) for key in body if key in plain}
    kept |= echoed(body, request, ECHOED)
    if "error" in body:
        kept["error"] = body["error"] if body.get("status") == "failed" else None
    if isinstance(found := kept.get("incomplete_details"), dict):
        reason = found.get("reason")
        kept["incomplete_details"] = {"reason": reason if reason in REASONS else None}
    if told := kept.get("error"):
        error = clean_error(told)
        kept["error"] = {"code": error["code"], "message": error["message"]}
    output = body.get("output")
    items = [clean_item(item) for item in output] if isinstance(output, list) else []
    kept["output"] = [item for item in items if item is not None]
    return kept


def clean_item(item: object) -> JSON | None:
    """An item of the output with only what may leave; None where nothing may."""
    if not isinstance(item, dict):
        return None
    kind = str(item.get("type"))
    if kind == "message":
        head = {key: item[key] for key in ("id", "type", "role", "status", "phase") if key in item}
        content = item.get("content")
        parts = [clean_part(part) for part in (content if isinstance(content, list) else [])]
        return {**codes_only(head), "content": [part for part in parts if part is not None]}
    if kind == "reasoning":
        kept = {key: value for key, value in item.items() if key in REASONING_FIELDS}
        return {**codes_only(kept), "summary": []}
    if not of_a_tool(item):
        return None
    return {
        key: codes_only(value) if key in CALL_HEADS else value
        for key, value in item.items()
        if key not in TOLD_BY_TOOLS
    }


def clean_part(part: object) -> JSON | None:
    """A part of a message; None where it is neither a text nor a refusal."""
    if not isinstance(part, dict):
        return None
    if part.get("type") == "output_text" and isinstance(part.get("text"), str):
        return {"type": "output_text", "text": part["text"], "annotations": [], "logprobs": []}
    if part.get("type") == "refusal" and isinstance(part.get("refusal"), str):
        return {"type": "refusal", "refusal": part["refusal"]}
    return None


def flat_annotation(citation: PlacedCitation) -> JSON:
    """A citation as responses write it; see ``nested_annotation``."""
    return {
        "type": "url_citation",
        "start_index": citation.start,
        "end_index": citation.end,
        "title": citation.title,
        "url": citation.url or "",
        **cited(citation),
    }


def _answer_text(body: JSON) -> str:
    return " ".join(
        part["text"]
        for item in clean_response(body, {})["output"]
        if item.get("type") == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    )
