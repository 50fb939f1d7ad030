"""The input of a LangChain model or chain: its question, and what the guardrail adds to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
from chains.evidence.parts import text_of, visible_parts, without_marked
from guardrail.candidates import Attempt
from guardrail.core.errors import InputError

__all__ = ["question_of", "with_retry", "with_system", "with_system_message"]

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
QUESTION_KEYS = ("question", "input", "query", "messages")
"""Usual keys of the question in a chain's input; the first one present counts."""

Messages = list[BaseMessage]


def question_of(
    value: object, key: str | None = None, places: EvidenceSettings | None = None
) -> str:
    """The question in a chain's input.

    Args:
        value: A string, a prompt value, messages, or a mapping that holds one of these.
        key: The question's key in the mapping; None to try the usual keys.
        places: Marks of evidence in messages, which is no part of the question.

    Returns:
        The question, made to stand on its own if it ends a conversation; empty for messages
        without one.

    Raises:
        InputError: A mapping has several texts, and none under a usual key.
    """
    if isinstance(value, Mapping):
        return question_of(value[_question_key(value, key)], None, places)
    if isinstance(value, str):
        return value
    return standalone_question([_turn(item, places) for item in _messages_of(value)])


def with_system(value: object, text: str, key: str | None = None) -> object:
    """The input with a text for the model: in its system message, else before the question.

    Args:
        value: See ``question_of``.
        text: The text to add; the input is unchanged if it is empty.
        key: See ``question_of``.
    """
    if not text:
        return value
    return _changed(
        value,
        key,
        lambda messages: with_system_message(messages, text),
        lambda question: f"{text}\n\nQuestion: {question}",
    )


def with_retry(value: object, attempt: Attempt, key: str | None = None) -> object:
    """The input of a further attempt, with the rejected answer and its faults."""
    if not attempt.feedback:
        return value
    rejected = [AIMessage(content=attempt.rejected), HumanMessage(content=attempt.feedback)]
    return _changed(
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


def _changed(
    value: object,
    key: str | None,
    messages: Callable[[Messages], Messages],
    question: Callable[[str], str],
) -> object:
    if isinstance(value, Mapping):
        name = _question_key(value, key)
        return {**value, name: _changed(value[name], None, messages, question)}
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
    role = ROLES.get(message.type, "tool")
    text = str(message.text)
    if role == "user":
        text = text_of(visible_parts(message.content))
        text = text if places is None else without_marked(text, places)
    return Turn(role, text)  # type: ignore[arg-type]


def _question_key(value: Mapping[str, object], key: str | None) -> str:
    keys = QUESTION_KEYS if key is None else (key,)
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
