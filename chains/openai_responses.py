"""Responses (the OpenAI API of that name) under the guardrail: whole ones.

Message items are judged; items of tools pass; reasoning keeps only what is encrypted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from chains.evidence.base import Case, Found, Source
from chains.evidence.openai import search_results
from chains.openai_codes import MESSAGE_ITEM, REASONING_ITEM, fitting, identifier, of_response
from chains.openai_shown import Outcome, flat_annotation, shown
from chains.openai_tool_items import clean_tool_item, handed_over, is_call, of_a_tool
from chains.openai_wire import JSON, UnreadableReplyError, is_json_document
from chains.rendition import details, render
from chains.structured import Document, Verdicts, call_name, judge_documents
from guardrail import CheckRequest, GuardedAnswer, Policy
from guardrail.sources.tables import MOST_CELLS

if TYPE_CHECKING:
    from chains.openai_asked import Asked

__all__ = [
    "MAX_PARTS",
    "called",
    "clean_item",
    "clean_response",
    "few_enough_parts",
    "guard_response",
    "guard_responses",
    "searched",
]

MAX_PARTS = 128
"""Parts of the messages of one response, each of which is judged for itself."""


async def guard_responses(asked: Asked, bodies: Sequence[JSON], policy: Policy) -> Outcome:
    """Guard the best of one or several responses to one request.

    Raises:
        UnreadableReplyError: A reply is not a response, or has more parts than ``MAX_PARTS``.
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
    body = body | {"output": asked.tools.items_of(body.get("output") or ())}
    for item in body["output"]:
        asked.add(searched(item, asked))
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
            part["refusal"] = await guarding.refusal(case, part["refusal"])
    verdicts = await _judge_data(asked, case, kept)
    return kept, (*answers, *verdicts.answers)


async def _judge_data(asked: Asked, case: Case, kept: JSON) -> Verdicts:
    """Judge JSON and calls of tools where the policy asks for it; withhold what fails.

    Returns:
        The verdicts, which the response's field ``guardrail`` tells as ``structured``, beside the
        names of what has none (``unjudged``).
    """
    held: dict[str, list[JSON]] = {}  # ids may be equal, and are the model's
    documents = []
    for place, item in enumerate(kept["output"]):
        if is_call(item):
            of = str(item.get("call_id") or item.get("id") or f"output {place}")
            held.setdefault(of, []).append(item)
            told = {
                key: Document.read(of, key, value).value for key, value in handed_over(item).items()
            }
            name = str(item.get("name") or item.get("type"))
            documents.append(Document(of, name, told, called(item)))
        for number, part in enumerate(item["content"] if item.get("type") == "message" else ()):
            if asked.data and part.get("type") == "output_text" and is_json_document(part["text"]):
                of = f"output {place}, content {number}"
                held.setdefault(of, []).append(part)
                documents.append(Document.read(of, "answer", part["text"]))
    guarding = asked.guarding
    verdicts = await judge_documents(guarding.guard, guarding.policy, case, documents)
    if told := verdicts.told():
        kept["guardrail"] = told
    for failed in (one for of in verdicts.withheld for one in held[of]):
        if failed.get("type") == "output_text":
            failed.clear()
            failed |= {"type": "refusal", "refusal": guarding.policy.refusal}
        else:
            kept["output"] = [item for item in kept["output"] if item is not failed]
    return verdicts


def called(item: JSON) -> str:
    """What a call's item is called where it leaves unjudged."""
    return call_name(item.get("name") or item.get("type"))


def searched(item: object, asked: Asked) -> Found:
    """What a file search found that the request asked for; nothing for any other item.

    Nothing is read where the settings say that it does not count; see ``reply_searches``.
    """
    tools = asked.body.get("tools") if asked.reads_searches else None
    wanted = any(
        isinstance(tool, dict) and tool.get("type") == "file_search"
        for tool in (tools if isinstance(tools, list) else [])
    )
    if wanted and isinstance(item, dict) and item.get("type") == "file_search_call":
        found = tuple(islice(search_results(item), MOST_CELLS))
        return Found.of(Source.TOOLS, found or None)
    return Found()


def clean_response(body: JSON, request: JSON) -> JSON:
    """A response with only what the protocol names; its texts are still unjudged."""
    return of_response(body, request) | {"output": clean_output(body)}


def clean_output(body: JSON) -> list[JSON]:
    """The items of a response that may leave.

    Raises:
        UnreadableReplyError: Its messages have more parts than ``MAX_PARTS``.
    """
    output = body.get("output")
    items = [clean_item(item) for item in output] if isinstance(output, list) else []
    kept = [item for item in items if item is not None]
    few_enough_parts(sum(len(item["content"]) for item in kept if item["type"] == "message"))
    return kept


def few_enough_parts(parts: int) -> None:
    """Refuse a response whose messages have more parts than are judged.

    Raises:
        UnreadableReplyError: They are more than ``MAX_PARTS``.
    """
    if parts > MAX_PARTS:
        raise UnreadableReplyError(f"the model's server sends more than {MAX_PARTS} parts")


def clean_item(item: object) -> JSON | None:
    """An item of the output with only what may leave; None where nothing may."""
    if not isinstance(item, dict) or identifier(item.get("type")) is None:
        return None
    if item["type"] == "message":
        content = item.get("content")
        parts = [clean_part(part) for part in (content if isinstance(content, list) else [])]
        kept = [part for part in parts if part is not None]
        return fitting(item, MESSAGE_ITEM) | {"content": kept}
    if item["type"] == "reasoning":
        return fitting(item, REASONING_ITEM) | {"summary": []}
    return clean_tool_item(item) if of_a_tool(item) else None


def clean_part(part: object) -> JSON | None:
    """A part of a message; None where it is neither a text nor a refusal."""
    if not isinstance(part, dict):
        return None
    if part.get("type") == "output_text" and isinstance(part.get("text"), str):
        return {"type": "output_text", "text": part["text"], "annotations": [], "logprobs": []}
    if part.get("type") == "refusal" and isinstance(part.get("refusal"), str):
        return {"type": "refusal", "refusal": part["refusal"]}
    return None


def _answer_text(body: JSON) -> str:
    return " ".join(
        part["text"]
        for item in clean_output(body)
        if item.get("type") == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    )
