"""Calls of tools and JSON in replies: which calls a request allows, and verdicts on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from chains.evidence.base import Case
from chains.openai_fields import MESSAGE_CALLS, NAMED_EVENTS, NAMED_ITEMS, fitting
from chains.openai_wire import JSON, is_json_document
from chains.structured import Document, Verdicts, call_name, judge_documents

if TYPE_CHECKING:
    from chains.openai_request import GuardedRequest

__all__ = [
    "AllowedTools",
    "StreamedCalls",
    "allowed_choice",
    "calls_in",
    "documents_of_calls",
    "judge_data",
    "name_calls",
    "without_call_reason",
]

Item = TypeVar("Item")

CALLS = frozenset({"tool_calls", "function_call"})
"""Fields of a message that call tools, and its ``finish_reason`` then."""
NAMED = ("function", "custom")
"""Types of tools with a name of the caller's own, and where a chat has it."""
STORED = ("prompt", "previous_response_id", "conversation")
"""Fields of a request that name what its server stores, perhaps with tools."""


class AllowedTools:
    """The tools that a reply may call.

    Args:
        request: The body as the caller sent it.
        allowed: Whether its caller may have tools.

    Attributes:
        any: Whether the reply may call any: its caller may have them, named some, and did not ask
            for an answer without them.
    """

    def __init__(self, request: JSON, *, allowed: bool) -> None:
        listed = [tool for field in ("tools", "functions") for tool in _listed(request, field)]
        stored = any(request.get(field) for field in STORED)
        none = "none" in (request.get("tool_choice"), request.get("function_call"))
        self.any = allowed and bool(listed or stored) and not none
        names = frozenset(name for tool in listed if (name := _name(tool)) is not None)
        # Of tools that the server has, the names are not known.
        known = not stored and all(_name(tool) is not None for tool in listed)
        self._names = names if known else None

    def has(self, name: object) -> bool:
        """Whether a tool of a name may be called."""
        return self.any and (self._names is None or (isinstance(name, str) and name in self._names))

    def begins(self, name: str) -> bool:
        """Whether a name is that of a tool, or the beginning of one."""
        names = self._names
        return self.any and (names is None or any(one.startswith(name) for one in names))

    def calls_of(self, message: JSON) -> JSON:
        """A message without calls of other tools."""
        calls = message.get("tool_calls")
        allowed = [call for call in calls if self.has(_called(call))] if calls else []
        left = {field: held for field, held in message.items() if field != "tool_calls"}
        if "function_call" in left and not self.has(_called(message)):
            del left["function_call"]
        return left | ({"tool_calls": allowed} if allowed else {})

    def items_of(self, output: Iterable[Item]) -> list[Item]:
        """The items of a response without calls of other tools."""
        return [item for item in output if not self.is_other(item)]

    def is_other(self, item: object) -> bool:
        """Whether an item calls a tool that may not be called."""
        if not isinstance(item, dict) or item.get("type") not in NAMED_ITEMS:
            return False
        return not self.has(item.get("name"))


class StreamedCalls:
    """Calls in a stream: the name of a tool first, then its arguments piece by piece."""

    def __init__(self, tools: AllowedTools) -> None:
        self._tools = tools
        self._names: dict[object, str] = {}
        self._others: set[object] = set()

    def of(self, delta: JSON) -> JSON:
        """A piece of a message without those of calls of other tools."""
        calls = delta.get("tool_calls") or ()
        allowed = [call for call in calls if self._allows(call.get("index"), _called(call))]
        left = {field: held for field, held in delta.items() if field != "tool_calls"}
        if "function_call" in left and not self._allows("function_call", _called(delta)):
            del left["function_call"]
        return left | ({"tool_calls": allowed} if allowed else {})

    def holds(self, event: JSON) -> bool:
        """Whether an event of a response is one of a call of another tool."""
        kind, index = str(event.get("type")), str(event.get("output_index"))
        if self._tools.is_other(event.get("item")):
            self._others.add(index)
            return True
        return index in self._others and kind.startswith(NAMED_EVENTS)

    def _allows(self, index: object, piece: object) -> bool:
        """Whether a piece of an allowed call; some servers send the name in pieces as well."""
        name = self._names.get(index, "")
        if isinstance(piece, str) and piece != name:  # others send the whole name each time
            name = self._names[index] = name + piece
        return bool(name) and self._tools.begins(name)


def _listed(request: JSON, field: str) -> Iterator[object]:
    held = request.get(field)
    yield from held if isinstance(held, list) else [held] if held else []


def _name(tool: object) -> str | None:
    """The name of a tool that its caller brings; None for one that the server has."""
    if not isinstance(tool, dict) or tool.get("type", NAMED[0]) not in NAMED:
        return None
    inner = next((tool[kind] for kind in NAMED if isinstance(tool.get(kind), dict)), tool)
    name = inner.get("name")
    return name if isinstance(name, str) else None


def _called(call: object) -> object:
    """The name that a call, or a message with the older form of one, gives of its tool.

    None where it has none, or another in each form.
    """
    if not isinstance(call, dict):
        return None
    held = [call.get(kind) for kind in (*NAMED, "function_call")]
    names = [one.get("name") for one in held if isinstance(one, dict)]
    return names[0] if names and all(name == names[0] for name in names) else None


def calls_in(message: JSON) -> JSON:
    """The fields of a message, or of a piece of one, that call tools."""
    return {name: held for name, held in fitting(message, MESSAGE_CALLS).items() if held}


def allowed_choice(tools: AllowedTools, choice: JSON) -> JSON:
    """A choice without calls of tools that its request does not allow."""
    message = tools.calls_of(choice["message"])
    choice = choice | {"message": message}
    return choice if CALLS & message.keys() else without_call_reason(choice)


def without_call_reason(choice: JSON) -> JSON:
    """A choice without calls, which did not end because of one."""
    return choice | {"finish_reason": "stop"} if choice.get("finish_reason") in CALLS else choice


async def judge_data(asked: GuardedRequest, case: Case, choice: JSON) -> Verdicts:
    """Judge a choice's JSON and calls of tools where the policy asks for it; withhold what fails.

    Returns:
        The verdicts; the message's field ``guardrail`` has them as ``structured``, with the names
        of what has none as ``unjudged``.
    """
    message = choice["message"]
    content = message.get("content")
    documents = documents_of_calls(message)
    if asked.data and isinstance(content, str) and is_json_document(content):
        documents.append(Document.read("content", "answer", content))
    guarding = asked.guarding
    verdicts = await judge_documents(guarding.guard, guarding.policy, case, documents)
    if report := verdicts.report():
        message["guardrail"] = message.get("guardrail", {}) | report
    if withheld := verdicts.withheld:
        calls = [call for call in message.get("tool_calls") or () if call]
        left = [call for call in calls if str(call.get("id")) not in withheld]
        message["tool_calls"] = left
        if not left:
            del message["tool_calls"]
        if "function_call" in withheld:
            message.pop("function_call", None)
        if "content" in withheld:
            message["content"] = choice["logprobs"] = None
        if not left:
            choice["finish_reason"] = "stop"
            if not message.get("content"):
                message["refusal"] = guarding.policy.refusal
    return verdicts


def documents_of_calls(message: JSON) -> list[Document]:
    """What the calls of a message, as from ``calls_in``, pass to tools."""
    calls = [call for call in message.get("tool_calls") or () if call]
    documents = [part for call in calls for part in _documents(str(call.get("id")), call)]
    if isinstance(message.get("function_call"), dict):
        documents += _documents("function_call", {"function": message["function_call"]})
    return documents


def name_calls(piece: JSON, known: dict[object, str]) -> None:
    """Add the names of the calls in a piece of a message, by their place in it."""
    calls = [call for call in piece.get("tool_calls") or () if call]
    if isinstance(piece.get("function_call"), dict):
        calls.append({"index": "function_call", "function": piece["function_call"]})
    for call in calls:
        place = call.get("index")
        held = [one for kind in NAMED if isinstance(one := call.get(kind), dict)]
        names = [one["name"] for one in held if one.get("name")]
        if names:  # a later piece has none
            known[place] = call_name(names[0])
        else:
            known.setdefault(place, call_name(call.get("id")))


def _documents(of: str, call: JSON) -> list[Document]:
    """What a call passes to its tool, in each form."""
    passed = [held for kind in NAMED if isinstance(held := call.get(kind), dict)]
    return [
        Document.read(of, str(held.get("name")), held.get(field), call_name(held.get("name") or of))
        for held in passed
        for field in ("arguments", "input")
        if field in held
    ]
