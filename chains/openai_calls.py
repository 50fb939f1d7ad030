"""Calls of tools and JSON in the choices of a chat completion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chains.evidence.base import Case
from chains.openai_codes import (
    Table,
    anything,
    each,
    fitting,
    identifier,
    number,
    object_of,
    sealed,
    tree,
    unspaced,
    word,
)
from chains.openai_wire import JSON, is_json_document
from chains.structured import Document, Judged, judge_documents

if TYPE_CHECKING:
    from chains.openai_asked import Asked
    from chains.tools_asked import AskedTools

__all__ = ["CALLS", "called_as_asked", "calls_in", "judge_data", "stopped"]

CALLS = frozenset({"tool_calls", "function_call"})
"""Fields of a message that call tools, and what its ``finish_reason`` says then."""

FUNCTION: Table = {"name": identifier, "arguments": anything}
CALL: Table = {
    "index": number,
    "id": unspaced,
    "type": word("function", "custom"),
    "function": object_of(FUNCTION),
    "custom": object_of({"name": identifier, "input": anything}),
    "extra_content": tree(sealed),  # Gemini's signature of a thought, which it wants back
}
MESSAGE_CALLS: Table = {"tool_calls": each(object_of(CALL)), "function_call": object_of(FUNCTION)}


def calls_in(message: JSON) -> JSON:
    """The fields of a message, or of a piece of one, that call tools; what is no call is none."""
    return {name: held for name, held in fitting(message, MESSAGE_CALLS).items() if held}


def called_as_asked(tools: AskedTools, choice: JSON) -> JSON:
    """A choice without calls of tools that its request did not bring."""
    message = tools.calls_of(choice["message"])
    choice = choice | {"message": message}
    return choice if CALLS & message.keys() else stopped(choice)


def stopped(choice: JSON) -> JSON:
    """A choice whose calls of tools were taken out: it did not end for their sake."""
    return choice | {"finish_reason": "stop"} if choice.get("finish_reason") in CALLS else choice


async def judge_data(asked: Asked, case: Case, choice: JSON) -> list[Judged]:
    """Judge a choice's JSON and calls of tools where the policy asks for it; withhold what fails.

    Returns:
        The verdicts, which the message's field ``guardrail`` tells as ``structured``.
    """
    message = choice["message"]
    content = message.get("content")
    calls = [call for call in message.get("tool_calls") or () if call]
    documents = [part for call in calls for part in _documents(str(call.get("id")), call)]
    if isinstance(message.get("function_call"), dict):
        documents += _documents("function_call", {"function": message["function_call"]})
    if asked.data and isinstance(content, str) and is_json_document(content):
        documents.append(Document.read("content", "answer", content))
    judged = await judge_documents(asked.guarding, case, documents)
    withheld = {verdict.of for verdict in judged if verdict.withheld}
    if judged:
        said = [verdict.details() for verdict in judged]
        message["guardrail"] = message.get("guardrail", {}) | {"structured": said}
    if withheld:
        kept = [call for call in calls if str(call.get("id")) not in withheld]
        message["tool_calls"] = kept
        if not kept:
            del message["tool_calls"]
        if "function_call" in withheld:
            del message["function_call"]
        if "content" in withheld:
            message["content"] = choice["logprobs"] = None
        if not kept:
            choice["finish_reason"] = "stop"
            if not message.get("content"):
                message["refusal"] = asked.guarding.policy.refusal
    return judged


def _documents(of: str, call: JSON) -> list[Document]:
    """What a call of a tool hands to it, in each form in which it may."""
    told = [held for kind in ("function", "custom") if isinstance(held := call.get(kind), dict)]
    return [
        Document.read(of, str(held.get("name")), held[field])
        for held in told
        for field in ("arguments", "input")
        if field in held
    ]
