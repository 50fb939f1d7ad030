"""Evidence in a LangChain chain's input, output, messages and config."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import RunnableConfig

from chains.evidence.base import EvidenceSettings, Found, Source
from chains.evidence.items import FIELD, RequestField, request_field
from chains.evidence.marks import marked_evidence
from chains.evidence.parts import parts_of_messages
from chains.evidence.paths import value_at
from chains.evidence.steps import StepsSeen
from chains.evidence.tools import ToolResult, evidence_of_tools
from guardrail.core.errors import InputError
from guardrail.core.types import Evidence
from guardrail.sources.items import evidence_items, evidence_of_item

__all__ = [
    "EvidenceOf",
    "chain_evidence",
    "config_field",
    "message_evidence",
    "messages_of",
]

EvidenceOf = str | Callable[[Any], object]
"""Where a chain's evidence stands: a key or path (``context``, ``retrieved.documents``) of its
input or output, or a function of its input."""

MESSAGE_KEYS = ("messages", "chat_history", "history")
"""Keys of a chain's input that hold messages."""


def config_field(config: RunnableConfig | None) -> RequestField:
    """What ``config["metadata"]["guardrail"]`` of a run says.

    Raises:
        InputError: It holds a key that is not known, or an item that is no evidence.
    """
    return request_field(((config or {}).get("metadata") or {}).get(FIELD))


def chain_evidence(
    place: EvidenceOf | None,
    value: object,
    output: object,
    field: RequestField,
    settings: EvidenceSettings,
    steps: StepsSeen | None = None,
) -> Found:
    """The evidence of one run of a chain, the most trusted first.

    Args:
        place: Where the caller says that it stands.
        value: The chain's input.
        output: The chain's output, where there is one already.
        field: What the run's config said.
        settings: Which places are looked at.
        steps: What was seen inside the chain. Its retrievers' documents count where nothing else
            was handed over or named.

    Raises:
        InputError: The place named holds nothing, or something that is no evidence.
    """
    handed = Found.of(Source.CALLER, field.evidence)
    if place is not None:
        handed |= Found.of(Source.CALLER, _handed_over(place, value, output, steps))
    elif steps is not None and steps.documents is not None and not handed.sources:
        handed = Found.of(Source.RETRIEVERS, _items(steps.documents, "what a retriever found"))
    # The state that an agent returns holds the messages of its input, and its tools' results.
    messages = messages_of(output) if not isinstance(output, BaseMessage) else []
    return handed | message_evidence(messages or messages_of(value), settings)


def message_evidence(messages: Sequence[BaseMessage], settings: EvidenceSettings) -> Found:
    """The evidence in messages: content parts, results of tools, marked stretches."""
    names = {
        call["id"]: call["name"]
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    results = [
        ToolResult(
            message.content,
            message.name or names.get(message.tool_call_id),
            _documents(message.artifact),
        )
        for message in messages
        if isinstance(message, ToolMessage) and message.status != "error"
    ]
    prompts = [message for message in messages if message.type in ("system", "human")]
    return (
        parts_of_messages([{"content": message.content} for message in prompts])
        | evidence_of_tools(results, settings)
        | marked_evidence((message.text for message in prompts), settings)
    )


def messages_of(value: object) -> list[BaseMessage]:
    """The messages in a chain's input; none where it holds no messages."""
    if isinstance(value, PromptValue):
        return value.to_messages()
    if isinstance(value, BaseMessage):
        return [value]
    if isinstance(value, Mapping):
        return [
            message for key in MESSAGE_KEYS if key in value for message in messages_of(value[key])
        ]
    if isinstance(value, list):
        return [item for item in value if isinstance(item, BaseMessage)]
    return []


def _handed_over(
    place: EvidenceOf, value: object, output: object, steps: StepsSeen | None
) -> tuple[Evidence, ...]:
    if callable(place):
        return _items(place(value), "what the function of 'evidence' returns")
    inside = (None, False) if steps is None else steps.value
    for found, there in (value_at(value, place), value_at(output, place), inside):
        if there:
            return _items(found, f"evidence at {place!r}")
    known = [sorted(map(str, item)) for item in (value, output) if isinstance(item, Mapping)]
    raise InputError(
        f"there is no {place!r} in the chain's input or output (their keys: {known or 'none'}), "
        "nor in what its steps hand on; name the place of the evidence with the parameter "
        "'evidence', in a chain such as RunnablePassthrough.assign(context=…)"
        ".assign(answer=prompt | model) with evidence='context' and answer_key='answer'"
    )


def _items(found: object, where: str) -> tuple[Evidence, ...]:
    """Evidence in any form that chains keep it in: documents, texts, triples, or one of these."""
    if found is None:
        return ()
    if isinstance(found, str | Document):
        empty = isinstance(found, str) and not found.strip()
        return () if empty else evidence_of_item(found, where)
    return evidence_items(found, where)


def _documents(artifact: object) -> tuple[Evidence, ...]:
    """The documents that a tool returned beside its text."""
    if isinstance(artifact, Document):
        return evidence_of_item(artifact)
    if isinstance(artifact, list | tuple):
        pairs = (item[0] if isinstance(item, tuple) and item else item for item in artifact)
        documents = [item for item in pairs if isinstance(item, Document)]
        return tuple(evidence for document in documents for evidence in evidence_of_item(document))
    return ()
