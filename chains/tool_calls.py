"""The tools that a request brings, and calls of others, which stay here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chains.openai_wire import JSON

__all__ = ["AskedTools", "CallsInPieces"]

NAMED = ("function", "custom")
"""Types of tools with a name of the caller's own, and where a chat keeps it."""
KEPT = ("prompt", "previous_response_id", "conversation")
"""Fields of a request that name what its server keeps, tools perhaps among it."""
NAMED_ITEMS = frozenset({"function_call", "custom_tool_call"})
"""Types of a response's items that call a named tool."""
NAMED_EVENTS = ("response.function_call_arguments.", "response.custom_tool_call_input.")
"""Beginnings of the types of events that call a named tool."""


class AskedTools:
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
        kept = any(request.get(field) for field in KEPT)
        none = "none" in (request.get("tool_choice"), request.get("function_call"))
        self.any = allowed and bool(listed or kept) and not none
        names = frozenset(name for tool in listed if (name := _name(tool)) is not None)
        # Of tools that the server has, the names are not known.
        known = not kept and all(_name(tool) is not None for tool in listed)
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
        kept = [call for call in calls if self.has(_called(call))] if calls else []
        named = _called(message)
        left = {field: held for field, held in message.items() if field != "tool_calls"}
        if "function_call" in left and not self.has(named):
            del left["function_call"]
        return left | ({"tool_calls": kept} if kept else {})

    def items_of(self, output: Iterable[object]) -> list[object]:
        """The items of a response without calls of other tools."""
        return [item for item in output if not self.is_other(item)]

    def is_other(self, item: object) -> bool:
        """Whether an item calls a tool that may not be called."""
        if not isinstance(item, dict) or item.get("type") not in NAMED_ITEMS:
            return False
        return not self.has(item.get("name"))


class CallsInPieces:
    """Calls of tools as a stream tells them: the name first, what is handed over piece by piece."""

    def __init__(self, tools: AskedTools) -> None:
        self._tools = tools
        self._names: dict[object, str] = {}
        self._others: set[object] = set()

    def of(self, delta: JSON) -> JSON:
        """A piece of a message without those of calls of other tools."""
        calls = delta.get("tool_calls") or ()
        kept = [call for call in calls if self._may_leave(call.get("index"), _called(call))]
        left = {field: held for field, held in delta.items() if field != "tool_calls"}
        if "function_call" in left and not self._may_leave("function_call", _called(delta)):
            del left["function_call"]
        return left | ({"tool_calls": kept} if kept else {})

    def holds(self, event: JSON) -> bool:
        """Whether an event of a response is one of a call of another tool."""
        kind, index = str(event.get("type")), str(event.get("output_index"))
        if self._tools.is_other(event.get("item")):
            self._others.add(index)
            return True
        return index in self._others and kind.startswith(NAMED_EVENTS)

    def _may_leave(self, index: object, piece: object) -> bool:
        """Whether a piece of a call may leave; some servers send its name in pieces, too."""
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
    names = [told.get("name") for told in held if isinstance(told, dict)]
    return names[0] if names and all(name == names[0] for name in names) else None
