"""Find and replace the answer in what a Runnable returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from langchain_core.messages import AIMessage, BaseMessage

from guardrail.core.errors import InputError
from guardrail.core.reasoning import without_reasoning

__all__ = [
    "Path",
    "answer_at",
    "answer_path",
    "calls_tools",
    "has_text",
    "is_answer",
    "named_path",
    "output_text",
    "with_answer",
]

ANSWER_KEYS = ("answer", "output", "response", "result", "text")
"""Usual keys of the answer in a chain's output; the first one present counts."""

Path = tuple[str | int, ...]
"""Keys and indexes that lead from an output to its answer; empty for the output itself."""


def answer_path(output: object, key: str | None, *, guess: bool, data: bool = False) -> Path:
    """The position of the answer in an output.

    Args:
        output: A message, a text, messages, an agent's state, another mapping, or data.
        key: The key or dotted path that the user named; None to look for it.
        guess: Whether the usual keys of a mapping are tried.
        data: Whether data may stand at the key that was named, as where they are judged.

    Returns:
        The path; empty for an output that is an answer or data itself. In a list of messages, and
        in an agent's state, the answer is the last message of the assistant.

    Raises:
        InputError: Nothing that can be judged stands at the key that the user named.
    """
    if isinstance(output, str | BaseMessage):
        return ()
    if key is not None and not (isinstance(output, list) and _last_message(output)):
        path = named_path(output, key, data=data)
        if path is None:
            raise InputError(_missing(output, key))
        return path
    if guess and isinstance(output, Mapping):
        for name in ANSWER_KEYS:
            if isinstance(output.get(name), str | AIMessage):
                return (name,)
    return _last_message(output) or ()


def named_path(output: object, key: str, *, data: bool = False) -> Path | None:
    """The path that a user's key names; None where no answer stands there."""
    path: Path
    if isinstance(output, Mapping) and key in output:
        path, held = (key,), output[key]
    else:
        path, held = tuple(key.split(".")), output
        for name in path:
            if not isinstance(held, Mapping) or name not in held:
                return None
            held = held[name]
    if isinstance(held, str | AIMessage):
        return path
    last = _last_message(held)
    if last:
        return (*path, *last)
    return path if data and held is not None else None


def _last_message(held: object) -> Path | None:
    """The path to the assistant's last message in messages, an agent's state or an update of it."""
    if isinstance(held, list):
        places = [place for place, item in enumerate(held) if isinstance(item, AIMessage)]
        return (places[-1],) if places else None
    if not isinstance(held, Mapping):
        return None
    if isinstance(held.get("messages"), list):
        last = _last_message(held["messages"])
        return ("messages", *last) if last else None
    if len(held) == 1:  # a graph's stream names the node that wrote the update
        name, inner = next(iter(held.items()))
        if isinstance(inner, Mapping) and "messages" in inner:
            last = _last_message(inner)
            return (name, *last) if last else None
    return None


def _missing(output: object, key: str) -> str:
    if not isinstance(output, Mapping):
        return f"the chain returned a {type(output).__name__}, in which there is no {key!r}"
    known = ", ".join(map(repr, output)) or "none"
    return (
        f"no text, message or list of messages stands at answer_key={key!r} in the chain's output; "
        f"its keys are {known}"
    )


def answer_at(output: object, path: Path) -> object:
    """What stands at a path of an output."""
    for step in path:
        output = cast("Mapping[object, object]", output)[step]
    return output


def with_answer(output: object, path: Path, answer: object) -> object:
    """A copy of the output with another answer in place of its own."""
    if not path:
        return answer
    inner = with_answer(answer_at(output, path[:1]), path[1:], answer)
    if isinstance(output, list):
        return [inner if place == path[0] else item for place, item in enumerate(output)]
    return {**cast("Mapping[object, object]", output), path[0]: inner}


def calls_tools(output: object) -> bool:
    """True for a message that calls tools."""
    return isinstance(output, AIMessage) and bool(output.tool_calls or output.invalid_tool_calls)


def has_text(output: object) -> bool:
    """True if there is text to judge: an answer, or words in a message that calls tools."""
    if isinstance(output, AIMessage):
        return bool(output.text.strip() if calls_tools(output) else output.text)
    return isinstance(output, str)


def is_answer(output: object) -> bool:
    """True for an answer, as opposed to a tool call or data."""
    return has_text(output) and not calls_tools(output)


def output_text(output: object) -> str:
    """The text of an answer, without the reasoning that a model may have written into it."""
    return without_reasoning(output.text if isinstance(output, BaseMessage) else str(output))
