"""Question and answer in the inputs and outputs of LangChain models and chains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    convert_to_messages,
)
from langchain_core.prompt_values import ChatPromptValue, PromptValue

from chains.conversation import Turn, standalone_question
from chains.evidence.base import EvidenceSettings
from chains.evidence.openai import text_of, visible_parts, without_marked
from guardrail.candidates import Attempt
from guardrail.core.errors import InputError
from guardrail.core.incoming import without_reasoning

Messages = list[BaseMessage]


def question_of(
    value: object, key: str | None = None, places: EvidenceSettings | None = None
) -> str:
    """The question in a chain's input: a text, messages, a prompt, or a mapping with one of these.

    It stands on its own if it ends a conversation, and is empty for messages without one.

    Raises:
        InputError: A mapping has several texts, and none under a usual key.
    """
    if isinstance(value, Mapping):
        return question_of(value[_question_key(value, key)], None, places)
    if isinstance(value, str):
        return value
    return standalone_question([_turn(item, places) for item in _messages_of(value)])


def with_system(value: object, text: str, key: str | None) -> object:
    """The input with a text for the model: in its system message, else before the question."""
    if not text:
        return value
    add = partial(with_system_message, text=text)
    return _change(value, key, add, lambda question: f"{text}\n\nQuestion: {question}")


def with_retry(value: object, attempt: Attempt, key: str | None = None) -> object:
    """The input of a further attempt, with the rejected answer and its faults."""
    if not attempt.feedback:
        return value
    rejected = [AIMessage(content=attempt.rejected), HumanMessage(content=attempt.feedback)]
    return _change(
        value,
        key,
        lambda messages: [*messages, *rejected],
        lambda question: f"{question}\n\nYou answered:\n{attempt.rejected}\n\n{attempt.feedback}",
    )


def with_system_message(messages: Sequence[BaseMessage], text: str) -> Messages:
    """The messages with a text at the end of the first system message, or as a new one."""
    if messages and isinstance(messages[0], SystemMessage):
        return [SystemMessage(content=f"{messages[0].text}\n\n{text}"), *messages[1:]]
    return [SystemMessage(content=text), *messages]


def _change(
    value: object,
    key: str | None,
    messages: Callable[[Messages], Messages],
    question: Callable[[str], str],
) -> object:
    if isinstance(value, Mapping):
        name = _question_key(value, key)
        return {**value, name: _change(value[name], None, messages, question)}
    if isinstance(value, str):
        return question(value)
    found = _messages_of(value)
    if isinstance(value, PromptValue):
        return ChatPromptValue(messages=messages(found))
    return messages(found) if found else value


def _messages_of(value: object) -> Messages:
    if isinstance(value, PromptValue):
        return value.to_messages()
    items = [value] if isinstance(value, BaseMessage) else value
    return convert_to_messages(items) if isinstance(items, Sequence) else []


def _turn(message: BaseMessage, places: EvidenceSettings | None) -> Turn:
    match message.type:
        case "human":
            text = text_of(visible_parts(message.content))
            return Turn("user", text if places is None else without_marked(text, places))
        case "ai":
            return Turn("assistant", str(message.text))
        case _:
            return Turn("system", str(message.text))


def _question_key(value: Mapping[str, object], key: str | None) -> str:
    keys = ("question", "input", "query", "messages") if key is None else (key,)
    found = next((name for name in keys if value.get(name)), None)
    if found is not None:
        return found
    texts = [name for name, text in value.items() if isinstance(text, str)]
    if key is None and len(texts) == 1:
        return texts[0]
    known = ", ".join(map(repr, value)) or "none"
    wanted = f"{key!r} is missing or empty" if key else "none of them is a usual key of a question"
    raise InputError(
        f"no question in the chain's input: its keys are {known}, and {wanted}; name the key of "
        "the question with the parameter 'question_key'"
    )


Path = tuple[str | int, ...]
"""Keys and indexes that lead from an output to its answer; empty for the output itself."""


def answer_path(output: object, key: str | None, *, guess: bool, data: bool = False) -> Path:
    """The position of the answer in an output; empty for an answer or data itself.

    In a list of messages, and in an agent's state, it is the last message of the assistant.
    ``guess`` tries the usual keys of a mapping; ``data`` allows data at the named key.

    Raises:
        InputError: There is nothing to judge at the named key.
    """
    if isinstance(output, str | BaseMessage):
        return ()
    if key is not None and not (isinstance(output, list) and _last_message(output)):
        path = named_path(output, key, data=data)
        if path is None:
            keys = ", ".join(map(repr, output)) if isinstance(output, Mapping) else "none"
            raise InputError(
                f"no text, message or list of messages at answer_key={key!r} of the chain's output "
                f"(a {type(output).__name__}); its keys: {keys}"
            )
        return path
    if guess and isinstance(output, Mapping):
        for name in ("answer", "output", "response", "result", "text"):
            if isinstance(output.get(name), str | AIMessage):
                return (name,)
    return _last_message(output) or ()


def named_path(output: object, key: str, *, data: bool = False) -> Path | None:
    """The path that a key names; None if there is no answer at it. See ``answer_path``."""
    path: Path = tuple(key.split("."))
    if isinstance(output, Mapping) and key in output:
        path = (key,)
    for name in path:
        if not isinstance(output, Mapping) or name not in output:
            return None
        output = output[name]
    if isinstance(output, str | AIMessage):
        return path
    if last := _last_message(output):
        return (*path, *last)
    return path if data and output is not None else None


def _last_message(output: object) -> Path | None:
    """The path to the assistant's last message in messages, an agent's state or an update of it."""
    if isinstance(output, list):
        for place in range(len(output) - 1, -1, -1):
            if isinstance(item := output[place], AIMessage):
                return (place,)
            if isinstance(item, Mapping) and item.get("role") in ("assistant", "ai"):
                return (place, "content") if isinstance(item.get("content"), str) else None
        return None
    if not isinstance(output, Mapping):
        return None
    names: list[str] = ["messages"] if isinstance(output.get("messages"), list) else []
    if not names and len(output) == 1:  # a graph's stream names the node that wrote the update
        names = [
            name for name, it in output.items() if isinstance(it, Mapping) and "messages" in it
        ]
    for name in names:
        if last := _last_message(output[name]):
            return (name, *last)
    return None


def answer_at(output: object, path: Path) -> object:
    """The value at a path of an output."""
    for step in path:
        output = cast("Mapping[object, object]", output)[step]
    return output


def with_answer(output: object, path: Path, answer: object) -> object:
    """A copy of the output with another answer."""
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
