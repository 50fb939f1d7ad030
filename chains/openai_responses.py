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
from chains.openai_fields import (
    MESSAGE_ITEM,
    REASONING_ITEM,
    clean_tool_item,
    fitting,
    handed_over,
    identifier,
    is_call,
    is_tool_item,
    of_response,
)
from chains.openai_reply import Outcome, flat_annotation, shown
from chains.openai_wire import JSON, UnreadableReplyError, is_json_document
from chains.rendering import details, render
from chains.structured import Document, Verdicts, call_name, judge_documents
from guardrail import CheckRequest, GuardedAnswer
from guardrail.core.incoming import without_reasoning
from guardrail.core.text.sentences import split_sentences
from guardrail.sources.tables import MOST_CELLS

if TYPE_CHECKING:
    from chains.openai_request import GuardedRequest

__all__ = [
    "MAX_PARTS",
    "ResponseCandidates",
    "called",
    "clean_item",
    "clean_response",
    "few_enough_parts",
    "few_enough_sentences",
    "guard_response",
    "searched",
]

MAX_PARTS = 128
"""Parts of the messages of one response; each is judged on its own."""


class ResponseCandidates:
    """The responses to one request, each of them a candidate."""

    def __init__(self, asked: GuardedRequest) -> None:
        self._asked = asked
        self._bodies: list[JSON] = []
        self._answers: list[JSON] = []

    def add(self, bodies: Sequence[JSON]) -> list[str]:
        """Take the responses of one attempt; return the texts of their answers.

        Raises:
            UnreadableReplyError: A reply is not a response, or has more parts than ``MAX_PARTS``.
        """
        texts = []
        for body in bodies:
            if not isinstance(body.get("output"), list):
                raise UnreadableReplyError("the model's server did not answer with a response")
            body = body | {"output": self._asked.tools.items_of(body["output"])}
            self._bodies.append(body)
            for item in body["output"]:
                self._asked.add(searched(item, self._asked))
            text = " ".join(part["text"] for part in _answers_in(body, self._asked))
            if text.strip():
                self._answers.append(body)
                texts.append(text)
        return texts

    async def outcome(self, answers: Sequence[GuardedAnswer], count: int) -> Outcome:
        """The response to return; ``answers`` are the verdicts, best first."""
        if not answers:
            return Outcome(*await guard_response(self._asked, self._bodies[0]))
        best = self._answers[answers[0].index]
        return Outcome(*await guard_response(self._asked, best, answers[0]))


async def guard_response(
    asked: GuardedRequest, body: JSON, answer: GuardedAnswer | None = None
) -> tuple[JSON, tuple[GuardedAnswer, ...]]:
    """Guard one response.

    Args:
        asked: The request.
        body: The response.
        answer: The verdict on all of its text, as the policy leaves it. It is that of the part,
            where there is one part only; several parts are judged each on its own.

    Returns:
        The response to return, and the verdicts on its texts, in order.
    """
    guarding = asked.guarding
    case = await asked.case()
    response = clean_response(body, asked)
    parts = [
        part
        for item in response["output"]
        if item.get("type") == "message"
        for part in item["content"]
    ]
    judged = [part for part in parts if _is_answer(part, asked)]
    if len(judged) > 1:  # the bound of one part alone is that of any answer
        texts = [part["text"] for part in judged]
        count = await asyncio.to_thread(lambda: sum(len(split_sentences(text)) for text in texts))
        few_enough_sentences(count, guarding.guard.config.limits.sentences)
    if answer is not None and len(judged) == 1:
        answers = [answer]
    else:
        answers = await _judged_parts(asked, case, judged, record=answer is None)
    calls = any(str(item.get("type")).endswith("_call") for item in response["output"])
    for part, verdict in zip(judged, answers, strict=True):
        rendering = await asyncio.to_thread(render, verdict, guarding.style)
        if not verdict.dry_run:
            part["text"] = shown(rendering.text, verdict, calls_tools=calls) or ""
        part["annotations"] = [flat_annotation(citation) for citation in rendering.citations]
        part["guardrail"] = await asyncio.to_thread(details, verdict, reasons=guarding.reasons)
    for part in parts:
        if part["type"] == "refusal" and part["refusal"].strip():
            part["refusal"] = await guarding.refusal(case, part["refusal"])
    verdicts = await _judge_data(asked, case, response)
    return response, (*answers, *verdicts.answers)


async def _judged_parts(
    asked: GuardedRequest, case: Case, parts: Sequence[JSON], *, record: bool
) -> list[GuardedAnswer]:
    """The verdicts on the parts of a response, each on its own."""
    if not parts:
        return []
    guarding = asked.guarding
    requests = [
        CheckRequest(question=case.question, answer=part["text"], evidence=case.evidence)
        for part in parts
    ]
    answers = await guarding.guard.acheck_batch(
        requests, policy=guarding.policy.settled(), record=record
    )
    return [case.with_problems(answer) for answer in answers]


def _is_answer(part: JSON, asked: GuardedRequest) -> bool:
    """Whether a part has text to judge; requested JSON is data."""
    if part["type"] != "output_text" or not part["text"].strip():
        return False
    return not (asked.data and is_json_document(part["text"]))


def _answers_in(body: JSON, asked: GuardedRequest) -> list[JSON]:
    return [
        part
        for item in clean_output(body)
        if item.get("type") == "message"
        for part in item["content"]
        if _is_answer(part, asked)
    ]


async def _judge_data(asked: GuardedRequest, case: Case, response: JSON) -> Verdicts:
    """Judge JSON and calls of tools where the policy asks for it; withhold what fails.

    Returns:
        The verdicts; the response's field ``guardrail`` has them as ``structured``, with the names
        of what has none as ``unjudged``.
    """
    held: dict[str, list[JSON]] = {}  # ids may be equal, and are the model's
    documents = []
    for place, item in enumerate(response["output"]):
        if is_call(item):
            of = str(item.get("call_id") or item.get("id") or f"output {place}")
            held.setdefault(of, []).append(item)
            passed = {
                key: Document.read(of, key, value).value for key, value in handed_over(item).items()
            }
            name = str(item.get("name") or item.get("type"))
            documents.append(Document(of, name, passed, called(item)))
        for number, part in enumerate(item["content"] if item.get("type") == "message" else ()):
            if asked.data and part.get("type") == "output_text" and is_json_document(part["text"]):
                of = f"output {place}, content {number}"
                held.setdefault(of, []).append(part)
                documents.append(Document.read(of, "answer", part["text"]))
    guarding = asked.guarding
    verdicts = await judge_documents(guarding.guard, guarding.policy, case, documents)
    if report := verdicts.report():
        response["guardrail"] = report
    for failed in (one for of in verdicts.withheld for one in held[of]):
        if failed.get("type") == "output_text":
            failed.clear()
            failed |= {"type": "refusal", "refusal": guarding.policy.refusal}
        else:
            response["output"] = [item for item in response["output"] if item is not failed]
    return verdicts


def called(item: JSON) -> str:
    """The name of a call in reports of what is unjudged."""
    return call_name(item.get("name") or item.get("type"))


def searched(item: object, asked: GuardedRequest) -> Found:
    """Results of a requested file search, if ``reply_searches`` makes them evidence."""
    tools = asked.body.get("tools") if asked.reads_searches else None
    wanted = any(
        isinstance(tool, dict) and tool.get("type") == "file_search"
        for tool in (tools if isinstance(tools, list) else [])
    )
    if wanted and isinstance(item, dict) and item.get("type") == "file_search_call":
        found = tuple(islice(search_results(item), MOST_CELLS))
        return Found.of(Source.TOOLS, found or None)
    return Found()


def clean_response(body: JSON, asked: GuardedRequest) -> JSON:
    """A response with only fields of the protocol and allowed calls; its texts are unjudged."""
    output = asked.tools.items_of(clean_output(body))
    if not asked.takes_calls:
        output = [item for item in output if not is_tool_item(item)]
    return of_response(body, asked.body) | {"output": output}


def clean_output(body: JSON) -> list[JSON]:
    """The items of a response that may leave.

    Raises:
        UnreadableReplyError: Its messages have more parts than ``MAX_PARTS``.
    """
    output = body.get("output")
    items = [clean_item(item) for item in output] if isinstance(output, list) else []
    found = [item for item in items if item is not None]
    few_enough_parts(sum(len(item["content"]) for item in found if item["type"] == "message"))
    return found


def few_enough_parts(parts: int) -> None:
    """Raise ``UnreadableReplyError`` if a response has more than ``MAX_PARTS`` parts."""
    if parts > MAX_PARTS:
        raise UnreadableReplyError(f"the model's server sends more than {MAX_PARTS} parts")


def few_enough_sentences(count: int, most: int) -> None:
    """Raise ``UnreadableReplyError`` if the parts have more sentences than ``limits.sentences``."""
    if count > most:
        raise UnreadableReplyError(
            f"the parts of one response have more than {most} sentences (limits.sentences)"
        )


def clean_item(item: object) -> JSON | None:
    """An item of the output with only what may be returned; None if nothing may."""
    if not isinstance(item, dict) or identifier(item.get("type")) is None:
        return None
    if item["type"] == "message":
        content = item.get("content")
        parts = [clean_part(part) for part in (content if isinstance(content, list) else [])]
        found = [part for part in parts if part is not None]
        return fitting(item, MESSAGE_ITEM) | {"content": found}
    if item["type"] == "reasoning":
        return fitting(item, REASONING_ITEM) | {"summary": []}
    return clean_tool_item(item) if is_tool_item(item) else None


def clean_part(part: object) -> JSON | None:
    """A part of a message; None unless it is a text or a refusal."""
    if not isinstance(part, dict):
        return None
    if part.get("type") == "output_text" and isinstance(part.get("text"), str):
        text = without_reasoning(part["text"])
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    if part.get("type") == "refusal" and isinstance(part.get("refusal"), str):
        return {"type": "refusal", "refusal": part["refusal"]}
    return None
