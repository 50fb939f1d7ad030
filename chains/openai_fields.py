"""Fields of OpenAI replies that are returned unjudged, and the kind of value that each may hold.

The lists are derived from the models in ``openai.types``. No such field may hold prose: numbers,
booleans and the words that the protocol knows are returned, strings only as identifiers in the
fields named here. Every other field and value is dropped. What echoes the request is taken from
the request.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated, Literal, get_args, get_origin

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion import Choice
from openai.types.chat.chat_completion_chunk import Choice as ChunkChoice
from openai.types.responses import (
    Response,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseReasoningItem,
    ResponseStreamEvent,
)
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from pydantic import BaseModel

from chains.evidence.openai import text_of
from chains.openai_wire import JSON, clean_error

Kind = Callable[[object], object]
"""Gives what may be returned of a value; None if nothing may."""
Table = Mapping[str, Kind]


def _matching(pattern: str) -> Callable[[object], str | None]:
    full = re.compile(pattern).fullmatch
    return lambda value: value if isinstance(value, str) and full(value) else None


identifier = _matching(r"\S{1,1000}")
"""A name or an id."""
unspaced = _matching(r"\S+")
"""An id of any length: some servers put a signature into those of calls."""
sealed = _matching(r"[A-Za-z0-9_+/=.-]+")
"""Encrypted or signed text of any length, as base64 writes it."""


def _of_type(*types: type) -> Kind:
    return lambda value: value if type(value) in types else None


number = _of_type(int, float)
truth = _of_type(bool)


def text(value: object) -> str | None:
    """A text of any length, which is judged or passed to a tool."""
    return value if isinstance(value, str) else None


def scalar(value: object) -> object:
    """An identifier, a number or a boolean."""
    return value if isinstance(value, int | float) else identifier(value)


def word(known: Iterable[object]) -> Kind:
    """One of the words that a field knows."""
    words = frozenset(known)
    return lambda value: value if isinstance(value, str) and value in words else None


def tree(leaf: Kind, depth: int = 4) -> Kind:
    """An object whose leaves, in nested objects and lists, are of one kind."""

    def clean(value: object, depth: int) -> object:
        if not isinstance(value, dict | list):
            return leaf(value)
        if not depth:
            return None
        if isinstance(value, list):
            return [held for item in value if (held := clean(item, depth - 1)) is not None]
        found = {name: clean(held, depth - 1) for name, held in value.items() if identifier(name)}
        return {name: held for name, held in found.items() if held is not None}

    return lambda value: clean(value, depth) if isinstance(value, dict) else None


def each(kind: Kind) -> Kind:
    """A list of values of one kind."""
    return lambda value: (
        [held for held in map(kind, value) if held is not None] if isinstance(value, list) else None
    )


def object_of(table: Table) -> Kind:
    """An object with known fields."""
    return lambda value: fitting(value, table) if isinstance(value, dict) else None


def fitting(body: JSON, table: Table) -> JSON:
    """The fields of an object that are listed and whose values are of their kinds, or null."""
    found = {name: table[name](value) for name, value in body.items() if name in table}
    return {name: value for name, value in found.items() if value is not None or body[name] is None}


def kinds_of(*models: object, nested: str = "") -> dict[str, Kind]:
    """The kinds of the fields of models; fields that may hold prose or lists of it have none.

    ``nested`` names the fields whose objects are returned, ``*`` all.
    """
    identifiers = {
        "container_id", "id", "model", "name", "namespace", "object", "previous_response_id",
        "server_label", "size", "system_fingerprint", "type",
    }  # fmt: skip
    words_of_other_servers = {
        "finish_reason": {"model_length", "insufficient_system_resource", "abort", "error"},
        "prompt_cache_retention": {"in-memory"},
        "service_tier": {"on_demand", "standard", "performance"},  # Groq
    }
    fields: dict[str, list[object]] = defaultdict(list)
    for model in _models(*models):
        for name, field in model.model_fields.items():
            fields[name] += _leaves(field.annotation)
    found: dict[str, Kind] = {}
    for name, leaves in fields.items():
        words = {one for leaf in leaves if get_origin(leaf) is Literal for one in get_args(leaf)}
        inner = _models(*leaves)
        kinds: list[Kind] = []
        if name in identifiers:
            kinds.append(identifier)
        elif words:
            kinds.append(word(words | words_of_other_servers.get(name, set())))
        if int in leaves or float in leaves:
            kinds.append(number)
        if bool in leaves:
            kinds.append(truth)
        if inner and (nested == "*" or name in nested.split()):
            kinds.append(object_of(kinds_of(*inner, nested="*")))
        if kinds:
            found[name] = _any_of(kinds)
    return found


def _models(*unions: object) -> list[type[BaseModel]]:
    leaves = (leaf for union in unions for leaf in _leaves(union))
    return [leaf for leaf in leaves if isinstance(leaf, type) and issubclass(leaf, BaseModel)]


def _leaves(annotation: object) -> Iterator[object]:
    """The types in unions and lists."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is None or origin is Literal:
        yield annotation
    elif origin is not dict:
        for part in parts[:1] if origin is Annotated else parts:
            yield from _leaves(part)


def _any_of(kinds: list[Kind]) -> Kind:
    return lambda value: next((held for kind in kinds if (held := kind(value)) is not None), None)


filter_results = tree(_any_of([word({"safe", "low", "medium", "high"}), truth]))
counts = tree(number)

# --- chat completions --------------------------------------------------------------------

clean_completion = partial(
    fitting,
    table=kinds_of(ChatCompletion, ChatCompletionChunk)
    | {
        "usage": counts,
        "prompt_filter_results": each(
            object_of({"prompt_index": number, "content_filter_results": filter_results})
        ),
    },
)
"""A chat completion or a chunk of one, without its choices."""
clean_choice = partial(
    fitting, table=kinds_of(Choice, ChunkChoice) | {"content_filter_results": filter_results}
)
"""A choice, without its message, its delta and its tokens."""
clean_message = partial(
    fitting,
    table={
        "role": word({"assistant", "developer", "function", "system", "tool", "user"}),
        "content": lambda value: value if isinstance(value, str) else text_of(value) or None,
        "refusal": text,
    },
)
"""A message; its texts are still to be judged."""


def _anything(value: object) -> object:
    return value


_function = object_of({"name": identifier, "arguments": _anything})
clean_calls = partial(
    fitting,
    table={
        "tool_calls": each(
            object_of(
                {
                    "index": number,
                    "id": unspaced,
                    "type": word({"function", "custom"}),
                    "function": _function,
                    "custom": object_of({"name": identifier, "input": _anything}),
                    "extra_content": tree(sealed),  # Gemini's signature of a thought
                }
            )
        ),
        "function_call": _function,
    },
)
"""The calls of tools in a message, or in a piece of one."""

# --- responses ---------------------------------------------------------------------------

clean_message_item = partial(fitting, table=kinds_of(ResponseOutputMessage))
"""A message of a response, without its content."""
clean_reasoning_item = partial(
    fitting, table=kinds_of(ResponseReasoningItem) | {"encrypted_content": sealed}
)

RESPONSE: Table = (
    kinds_of(Response, nested="conversation incomplete_details reasoning text")
    # Prose of the request, which no server may set.
    | dict.fromkeys(
        ("instructions", "metadata", "prompt", "prompt_cache_key", "safety_identifier", "user"),
        lambda value: None,
    )
    | {
        "error": lambda value: clean_error(value) if value else None,
        "store": truth,
        "tools": lambda value: [] if isinstance(value, list) else None,
        "usage": counts,
    }
)
"""A response, without its output."""


def clean_response(body: JSON, request: JSON) -> JSON:
    """A response without its output: its own fields, and those of the request that it echoes."""
    found = fitting(body, RESPONSE)
    if error := found.get("error"):
        failed = found.get("status") == "failed"
        found["error"] = {name: error[name] for name in ("code", "message")} if failed else None
    echoes = ResponseCreateParamsBase.__annotations__.keys() & RESPONSE.keys()
    echoes -= {"background", "conversation", "service_tier"}
    echoed = {name: request[name] for name in body if name in echoes and name in request}
    if isinstance(echoed.get("tools"), list):
        echoed["tools"] = [
            {name: held for name, held in tool.items() if name not in ("authorization", "headers")}
            for tool in echoed["tools"]
            if isinstance(tool, dict)
        ]
    return found | echoed


# --- tools of responses ------------------------------------------------------------------

HANDED: dict[str, str] = {
    kind: name
    for model in _models(ResponseOutputItem)
    for kind in get_args(model.model_fields["type"].annotation)
    for name in ("action", "arguments", "code", "input", "operation", "queries")
    if name in model.model_fields and kind != "image_generation_call"
}
"""The field in which an item of each type passes something to its tool; prose may stand there."""
TOOL_ITEM: Table = kinds_of(ResponseOutputItem, nested="environment") | {
    **dict.fromkeys(("id", "call_id", "approval_request_id"), unspaced),
    **dict.fromkeys(("encrypted_content", "result"), sealed),
    "pending_safety_checks": each(object_of({"id": unspaced, "code": identifier})),
    "tools": each(object_of({"name": identifier, "input_schema": tree(scalar, depth=12)})),
}
"""Fields of tools' items. Results of a server's own tools, a picture's prompt and explanations of
safety checks are prose, and not among them."""
TOOL_EVENT: Table = kinds_of(ResponseStreamEvent) | {
    **dict.fromkeys(("item_id", "call_id"), unspaced),
    "name": identifier,
    "partial_image_b64": sealed,
    **{name: TOOL_ITEM[name] for name in ("background", "output_format", "quality")},
}


def is_tool_item(item: JSON) -> bool:
    """True if an item of the output belongs to a tool."""
    endings = ("_call", "_call_output", "mcp_list_tools", "mcp_approval_request", "compaction")
    return str(item.get("type")).endswith(endings)


def is_tool_event(kind: str) -> bool:
    """True if events of a type belong to a tool."""
    tools = (
        r"response\.(?:function_call_arguments\.|custom_tool_call_input\.|mcp_|compaction\.|"
        r"(?:web_search|file_search|image_generation)_call\.|code_interpreter_call|shell_call_)"
    )
    return re.match(tools, kind) is not None


def is_call(item: JSON) -> bool:
    """True if an item passes something unjudged, to a tool or as a picture to the reader."""
    return item.get("type") in (*HANDED, "image_generation_call")


def handed_over(item: JSON) -> JSON:
    """What an item passes to its tool: its arguments, code, commands or queries."""
    name = HANDED.get(str(item.get("type")))
    return {name: item[name]} if name in item else {}


def clean_tool_item(item: JSON) -> JSON:
    """A tool's item with only the fields of the protocol."""
    kinds: Table = {"queries": each(text), "code": text}
    name = HANDED.get(str(item.get("type")))
    handed = {} if name is None else {name: kinds.get(name, _anything)}
    return fitting(item, {**TOOL_ITEM, **handed})


def clean_tool_event(data: JSON) -> tuple[JSON, bool]:
    """A tool's event with only the fields of the protocol; True if it is a piece of a call."""
    event = str(data.get("type"))
    pieces = (*HANDED.items(), ("shell_call", "command"))
    begun = (name for kind, name in pieces if event.startswith(f"response.{kind}_{name}."))
    name = next(begun, None)
    handed = {} if name is None else {"delta": text, name: text}
    return fitting(data, {**TOOL_EVENT, **handed}), name is not None
