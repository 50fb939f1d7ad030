"""Evidence in a LangChain chain's input, output, messages, config and steps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config

from chains.evidence.base import FIELD, EvidenceSettings, Found, RequestField, Source, request_field
from chains.evidence.openai import marked_evidence, parts_of_messages
from chains.evidence.tools import ToolResult, evidence_of_tools
from guardrail.core.errors import InputError
from guardrail.core.types import Evidence
from guardrail.sources.items import evidence_items, evidence_of_item

EvidencePlace = str | Callable[[Any], object]
"""Where to find a chain's evidence: a key or path (``context``, ``retrieved.documents``) of its
input, output or steps, or a function of its input."""


def config_field(config: RunnableConfig | None) -> RequestField:
    """Read ``config["metadata"]["guardrail"]`` of a run; see ``request_field``."""
    return request_field(((config or {}).get("metadata") or {}).get(FIELD))


def value_at(value: object, path: str) -> tuple[object, bool]:
    """The value at a path of keys (``retrieved.documents``), and whether there is one."""
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None, False
        value = value[key]
    return value, True


class StepsSeen(BaseCallbackHandler):
    """Watches one run: its retrievers' documents, and the value at a path in its last step.

    In ``{"context": retriever, "question": …} | prompt | model`` the context is neither in the
    chain's input nor in its output. ``documents`` is None if no retriever was called; ``value``
    says as well whether there was one.
    """

    run_inline = True  # the output of a step is seen before the next one begins

    def __init__(self, path: str | None) -> None:
        self.documents: tuple[Document, ...] | None = None
        self.value: tuple[object, bool] = (None, False)
        self._path = path
        self._lock = threading.Lock()

    def watching(self, config: RunnableConfig) -> RunnableConfig:
        """The config of a run that has begun, with this handler added."""
        seeing = cast("BaseCallbackManager", config["callbacks"]).copy()
        seeing.add_handler(self, inherit=True)
        return patch_config(config, callbacks=seeing)

    def on_retriever_end(self, documents: Sequence[Document], **kwargs: object) -> None:
        """Keep the documents of a retriever."""
        with self._lock:
            self.documents = (*(self.documents or ()), *documents)

    def on_chain_end(self, outputs: object, **kwargs: object) -> None:
        """Keep the value at the path in the output of a step."""
        if self._path is not None and (found := value_at(outputs, self._path))[1]:
            self.value = found


def chain_evidence(
    place: EvidencePlace | None,
    value: object,
    output: object,
    field: RequestField,
    settings: EvidenceSettings,
    steps: StepsSeen | None = None,
) -> Found:
    """The evidence of one run of a chain, the most trusted first.

    Documents of the chain's retrievers count if nothing else was given or named.

    Raises:
        InputError: There is nothing at the named place, or something that is not evidence.
    """
    given = Found.of(Source.CALLER, field.evidence)
    if place is not None:
        given |= Found.of(Source.CALLER, _evidence_at(place, value, output, steps))
    elif steps is not None and steps.documents is not None and not given.sources:
        given = Found.of(Source.RETRIEVERS, _items(steps.documents, "a retriever's result"))
    # The state that an agent returns holds the messages of its input, and its tools' results.
    messages = [] if isinstance(output, BaseMessage) else _messages_of(output)
    return given | message_evidence(messages or _messages_of(value), settings)


def message_evidence(messages: Sequence[BaseMessage], settings: EvidenceSettings) -> Found:
    """The evidence in messages: content parts, tool results, marked text."""
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


def _messages_of(value: object) -> list[BaseMessage]:
    if isinstance(value, PromptValue):
        return value.to_messages()
    if isinstance(value, Mapping):
        keys = ("messages", "chat_history", "history")
        found = (_messages_of(value[key]) for key in keys if key in value)
        return [message for messages in found for message in messages]
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, BaseMessage)]


def _evidence_at(
    place: EvidencePlace, value: object, output: object, steps: StepsSeen | None
) -> tuple[Evidence, ...]:
    if callable(place):
        return _items(place(value), "the result of the function 'evidence'")
    inside = (None, False) if steps is None else steps.value
    for found, there in (value_at(value, place), value_at(output, place), inside):
        if there:
            return _items(found, f"evidence at {place!r}")
    known = [sorted(map(str, item)) for item in (value, output) if isinstance(item, Mapping)]
    raise InputError(
        f"there is no {place!r} in the chain's input or output (keys: {known or 'none'}) or in the "
        "output of its steps; name the place of the evidence with the parameter "
        "'evidence', in a chain such as RunnablePassthrough.assign(context=…)"
        ".assign(answer=prompt | model) with evidence='context' and answer_key='answer'"
    )


def _items(found: object, where: str) -> tuple[Evidence, ...]:
    """Evidence as chains keep it: one or several documents, texts or triples."""
    if found is None or (isinstance(found, str) and not found.strip()):
        return ()
    if isinstance(found, str | Document):
        return evidence_of_item(found, where)
    return evidence_items(found, where)


def _documents(artifact: object) -> tuple[Evidence, ...]:
    """The documents in a tool's artifact, alone or with their scores."""
    items = artifact if isinstance(artifact, list | tuple) else [artifact]
    pairs = (item[0] if isinstance(item, tuple) and item else item for item in items)
    return evidence_items([item for item in pairs if isinstance(item, Document)])
