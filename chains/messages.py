"""Guarded answers as LangChain messages, whole and streamed, with their tool calls and data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.content import create_citation, create_text_block
from langchain_core.runnables.utils import AddableDict
from pydantic import BaseModel

from chains.openai_wire import few_enough_bytes
from chains.options import MarkerStyle
from chains.payloads import Path, answer_at, answer_path, calls_tools, named_path, with_answer
from chains.rendering import PlacedCitation, cited, details, render
from chains.streaming import Release
from chains.structured import Document, Verdicts, call_name
from guardrail import Policy
from guardrail.core.errors import GuardrailError
from guardrail.core.types import Action, GuardedAnswer


class WithheldError(GuardrailError):
    """A Runnable returned data that the policy withholds, or that cannot be judged."""


def guarded_message(
    message: AIMessage, answer: GuardedAnswer, style: MarkerStyle, *, reasons: bool
) -> AIMessage:
    """The message with the guarded text, and the verdict in ``response_metadata["guardrail"]``.

    The message keeps its id, so that it replaces the unguarded one in an agent's state, its usage
    and its metadata. String content stays a string; of content blocks, the text block carries the
    citations as annotations. Reasoning and token probabilities are left out: they are unjudged
    text as well. In a message that calls tools, only the text is replaced (or left out if it was
    refused): the provider needs the rest unchanged, together with the tools' results.
    """
    rendered = render(answer, style)
    annotations = [_annotation(citation) for citation in rendered.citations]
    verdict = details(answer, reasons=reasons) | {"citations": annotations}
    metadata = _metadata(message) | {"guardrail": verdict}
    if calls_tools(message):
        text = "" if answer.action is Action.REFUSE else rendered.text
        content = _with_text(message, text)
        return message.model_copy(update={"content": content, "response_metadata": metadata})
    changed: dict[str, object] = {
        "content": rendered.text,
        "response_metadata": metadata,
        # Providers keep the raw answer here (refusals, parsed output): it was not judged.
        "additional_kwargs": {},
    }
    if not isinstance(message.content, str):
        block = create_text_block(rendered.text, annotations=annotations or None)  # type: ignore[arg-type]
        # The judged text replaces all blocks with text of the model.
        texts = ("text", "reasoning", "non_standard")
        other = [item for item in message.content_blocks if item["type"] not in texts]
        changed["content"] = [*other, dict(block)]
        # The content is in the standard form; without this mark, the translator of the message's
        # provider would translate it a second time.
        changed["response_metadata"] = metadata | {"output_version": "v1"}
    return message.model_copy(update=changed)


def _with_text(message: AIMessage, text: str) -> object:
    """The content of a message with another text; all other parts stay."""
    if isinstance(message.content, str):
        return text
    parts: list[object] = []
    for part in message.content:
        if not isinstance(part, str) and part.get("type") != "text":
            parts.append(part)
        elif text:
            parts.append({"type": "text", "text": text})
            text = ""
    return parts


def _metadata(message: AIMessage) -> dict[str, object]:
    """A reply's metadata without the fields in which providers repeat the text or its tokens."""
    repeated = (
        "citation_metadata", "grounding_metadata", "logprobs", "logprobs_result", "message"
    )  # fmt: skip
    found = message.response_metadata.items()
    return {name: value for name, value in found if name not in repeated}


def _annotation(citation: PlacedCitation) -> dict[str, object]:
    """A citation as LangChain's standard annotation; offsets index the returned text."""
    return dict(
        create_citation(
            url=citation.url,
            title=citation.title,
            start_index=citation.start,
            end_index=citation.end,
            cited_text=citation.title,
            **cited(citation),  # type: ignore[arg-type]
        )
    )


# --- tool calls and data -----------------------------------------------------------------


def documents_in(output: object, policy: Policy, name: str = "output") -> list[Document]:
    """The arguments of an output's tool calls, or its data; else WithheldError."""
    if isinstance(output, AIMessage):
        return _calls(output)
    if output is None or isinstance(output, str | BaseMessage):
        return []
    return [Document(name, "answer", _plain(output) if policy.structured else None)]


def message_with(
    message: AIMessage, verdicts: Verdicts, policy: Policy, *, text: str | None = None
) -> AIMessage:
    """The message with the verdicts on its calls, or without its calls if one is withheld.

    Then ``text`` replaces its own text, and the policy's refusal a text that is empty.
    """
    if not (listed := verdicts.report()):
        return message
    verdict = {**message.response_metadata.get("guardrail", {}), **listed}
    if verdicts.withheld:
        left = message.text if text is None else text
        # A call may be repeated in several fields, so only known ones are copied.
        return AIMessage(
            content=left if left.strip() else policy.refusal,
            id=message.id,
            name=message.name,
            usage_metadata=message.usage_metadata,
            response_metadata={**_metadata(message), "guardrail": verdict},
        )
    metadata = {**message.response_metadata, "guardrail": verdict}
    # Providers repeat calls and data here.
    repeated = ("tool_calls", "function_call", "parsed") if policy.structured else ()
    other = {key: value for key, value in message.additional_kwargs.items() if key not in repeated}
    return message.model_copy(update={"response_metadata": metadata, "additional_kwargs": other})


def _calls(message: AIMessage) -> list[Document]:
    """The arguments of a message's tool calls, and results of tools that its provider runs."""
    called: list[tuple[object, object, object]] = [
        (call["id"], call["name"], call["args"])
        for call in (*message.tool_calls, *message.invalid_tool_calls)
    ]
    for block in () if isinstance(message.content, str) else message.content_blocks:
        if block["type"] in ("server_tool_call", "server_tool_result"):
            fields = dict(block)
            value = fields.get("args", fields.get("output"))
            called.append((fields.get("id"), fields.get("name") or fields["type"], value))
    return [
        Document.read(str(id or name), str(name), args, call_name(name or id))
        for id, name, args in called
    ]


def _plain(value: object) -> object:
    """Data as JSON values."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, AIMessage):
        return {"text": value.text, "calls": [call.value for call in _calls(value)]}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    raise WithheldError(f"the policy judges data, and a {type(value).__name__} cannot be judged")


# --- streams -----------------------------------------------------------------------------


class Chunks:
    """The chunks of a stream: their text, and everything else in them.

    ``whole`` is all of them together; the last one if they cannot be added.
    """

    def __init__(self, key: str | None, *, guess: bool, reasons: bool, most_bytes: int) -> None:
        self.whole: Any = None
        self.has_text = False
        self._named, self._guess = key, guess
        self._key: str | None = None
        self._reasons = reasons
        self._most_bytes, self._bytes = most_bytes, 0
        self._verdict: GuardedAnswer | None = None
        self._citations: list[dict[str, object]] = []

    def take(self, chunk: object) -> str:
        """Take a chunk and return its text; raises UnreadableReplyError after ``most_bytes``."""
        try:
            self.whole = chunk if self.whole is None else self.whole + chunk
            self._bytes += _size(chunk)
        except TypeError:  # growing data: each chunk holds those before
            self.whole = chunk
            self._bytes = _size(chunk)
        few_enough_bytes(self._bytes, self._most_bytes)
        if isinstance(chunk, Mapping):
            self._key = self._key or self._found(chunk)
            chunk = chunk if self._key is None else chunk.get(self._key, "")
        text = chunk.text if isinstance(chunk, BaseMessage) else chunk
        text = text if isinstance(text, str) else ""
        self.has_text = self.has_text or bool(text.strip())
        return text

    def _found(self, chunk: Mapping[Any, object]) -> str | None:
        """The key of the answer in a mapping whose answer can be streamed."""
        if self._named is not None:
            path = named_path(chunk, self._named) or ()
        else:
            path = answer_path(chunk, None, guess=self._guess)
        return str(path[0]) if len(path) == 1 else None

    @property
    def answer(self) -> Any:
        """The answer so far: a message, a text, or data."""
        whole = self.whole
        return whole if self._key is None or whole is None else whole[self._key]

    def _wrap(self, piece: object) -> Any:
        return piece if self._key is None else AddableDict({self._key: piece})

    def piece(self, release: Release) -> object:
        """A release in the type of the stream; None without text."""
        self._verdict = release.answer
        self._citations += [_annotation(citation) for citation in release.citations]
        refused = release.answer is not None and release.answer.action is Action.REFUSE
        if not release.text or (refused and calls_tools(self.answer)):
            return None
        if not isinstance(self.answer, BaseMessage):
            return self._wrap(release.text)
        return self._wrap(AIMessageChunk(content=release.text, id=self.answer.id))

    def rest(self, judged: object) -> object:
        """Everything but the text: tool calls, usage, metadata and the verdict."""
        others = None
        if self._key is not None:
            fields = {key: value for key, value in self.whole.items() if key != self._key}
            others = AddableDict(fields) if fields else None
        answer = self.answer
        if not isinstance(answer, AIMessage) or not isinstance(judged, AIMessage):
            data = self._key is None and not isinstance(answer, str | BaseMessage)
            return answer if data else others
        verdict = judged.response_metadata.get("guardrail", {}) if judged is not answer else {}
        if self._verdict is not None:
            found = details(self._verdict, reasons=self._reasons)
            verdict = {**found, "citations": self._citations, **verdict}
        withheld = calls_tools(answer) and not calls_tools(judged)
        changed = {
            "content": judged.text if withheld and self._verdict is None else "",
            "additional_kwargs": {},  # unjudged, as in ``guarded_message``
            "response_metadata": _metadata(answer) | ({"guardrail": verdict} if verdict else {}),
        }
        placed = self._wrap(as_chunk(judged.model_copy(update=changed), ()))
        return placed if others is None else others + placed


def as_chunk(output: object, path: Path) -> object:
    """A whole output in the type of a stream's chunk."""
    answer = answer_at(output, path)
    if not isinstance(answer, AIMessage) or len(path) > 1:
        return AddableDict(output) if isinstance(output, Mapping) else output
    names = (
        "content", "id", "name", "additional_kwargs", "usage_metadata", "response_metadata",
        "tool_calls", "invalid_tool_calls",
    )  # fmt: skip
    fields: dict[str, Any] = {name: getattr(answer, name) for name in names}
    placed = with_answer(output, path, AIMessageChunk(**fields, chunk_position="last"))
    return AddableDict(placed) if isinstance(placed, Mapping) else placed


def _size(chunk: object) -> int:
    """Bytes of a chunk's texts; for a message all other fields count as well."""
    parts = chunk.values() if isinstance(chunk, Mapping) else [chunk]
    texts = [repr(part) if isinstance(part, BaseMessage) else part for part in parts]
    return sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))
