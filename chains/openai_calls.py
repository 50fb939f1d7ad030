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
from chains.structured import Document, Verdicts, call_name, judge_documents

if TYPE_CHECKING:
    from chains.openai_request import Asked
    from chains.tool_calls import AskedTools

__all__ = [
    "CALLS",
    "called_as_asked",
    "calls_in",
    "documents_of_calls",
    "judge_data",
    "name_calls",
    "stopped",
]

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


async def judge_data(asked: Asked, case: Case, choice: JSON) -> Verdicts:
    """Judge a choice's JSON and calls of tools where the policy asks for it; withhold what fails.

    Returns:
        The verdicts, which the message's field ``guardrail`` tells as ``structured``, beside the
        names of what has none (``unjudged``).
    """
    message = choice["message"]
    content = message.get("content")
    documents = documents_of_calls(message)
    if asked.data and isinstance(content, str) and is_json_document(content):
        documents.append(Document.read("content", "answer", content))
    guarding = asked.guarding
    verdicts = await judge_documents(guarding.guard, guarding.policy, case, documents)
    if told := verdicts.told():
        message["guardrail"] = message.get("guardrail", {}) | told
    if withheld := verdicts.withheld:
        calls = [call for call in message.get("tool_calls") or () if call]
        kept = [call for call in calls if str(call.get("id")) not in withheld]
        message["tool_calls"] = kept
        if not kept:
            del message["tool_calls"]
        if "function_call" in withheld:
            message.pop("function_call", None)
        if "content" in withheld:
            message["content"] = choice["logprobs"] = None
        if not kept:
            choice["finish_reason"] = "stop"
            if not message.get("content"):
                message["refusal"] = guarding.policy.refusal
    return verdicts


def documents_of_calls(message: JSON) -> list[Document]:
    """What the calls of a message hand to tools, as ``calls_in`` leaves them."""
    calls = [call for call in message.get("tool_calls") or () if call]
    documents = [part for call in calls for part in _documents(str(call.get("id")), call)]
    if isinstance(message.get("function_call"), dict):
        documents += _documents("function_call", {"function": message["function_call"]})
    return documents


def name_calls(piece: JSON, known: dict[object, str]) -> None:
    """Add what the calls in a piece of a message are called, each by its place in the message."""
    calls = [call for call in piece.get("tool_calls") or () if call]
    if isinstance(piece.get("function_call"), dict):
        calls.append({"index": "function_call", "function": piece["function_call"]})
    for call in calls:
        place = call.get("index")
        held = [told for kind in ("function", "custom") if isinstance(told := call.get(kind), dict)]
        names = [told["name"] for told in held if told.get("name")]
        if names:  # a later piece has none
            known[place] = call_name(names[0])
        else:
            known.setdefault(place, call_name(call.get("id")))


def _documents(of: str, call: JSON) -> list[Document]:
    """What a call of a tool hands to it, in each form in which it may."""
    told = [held for kind in ("function", "custom") if isinstance(held := call.get(kind), dict)]
    return [
        Document.read(of, str(held.get("name")), held.get(field), call_name(held.get("name") or of))
        for held in told
        for field in ("arguments", "input")
        if field in held
    ]
