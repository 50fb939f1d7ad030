"""The chunks of a LangChain stream: their text, and everything else in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.runnables.utils import AddableDict

from chains.messages import annotation, judged_metadata
from chains.openai_wire import few_enough_bytes
from chains.payloads import Path, answer_at, answer_path, calls_tools, named_path, with_answer
from chains.rendering import details
from chains.streaming import Release
from guardrail import Action, GuardedAnswer

__all__ = ["Chunks", "as_chunk"]


class Chunks:
    """What has come through a stream: its text, and everything in it that is not text.

    Args:
        key: Key of the answer in a mapping, as the user named it.
        guess: Whether the usual keys are tried.
        reasons: Whether refused and filtered answers carry their reasons.
        most_bytes: Most bytes of the whole stream that are read.

    Attributes:
        whole: All chunks together; the last one where they cannot be added.
        spoken: Whether text has come.
    """

    def __init__(self, key: str | None, *, guess: bool, reasons: bool, most_bytes: int) -> None:
        self.whole: Any = None
        self.spoken = False
        self._named, self._guess = key, guess
        self._key: str | None = None
        self._reasons = reasons
        self._most_bytes, self._bytes = most_bytes, 0
        self._answer: GuardedAnswer | None = None
        self._judged: object = None
        self._citations: list[dict[str, object]] = []

    def take(self, chunk: object) -> str:
        """Keep a chunk and return its text.

        Raises:
            UnreadableReplyError: The stream has brought more bytes than are read.
        """
        try:
            self.whole = chunk if self.whole is None else self.whole + chunk
            self._bytes += _size(chunk)
        except TypeError:  # data that are read as they grow: each one holds those before
            self.whole = chunk
            self._bytes = _size(chunk)
        few_enough_bytes(self._bytes, self._most_bytes)
        self._key = self._key or self._found(chunk)
        if self._key is not None and isinstance(chunk, Mapping):
            chunk = chunk.get(self._key, "")
        text = chunk.text if isinstance(chunk, BaseMessage) else chunk
        text = text if isinstance(text, str) else ""
        self.spoken = self.spoken or bool(text.strip())
        return text

    def _found(self, chunk: object) -> str | None:
        """The key of the answer in a mapping whose answer can be streamed."""
        if not isinstance(chunk, Mapping):
            return None
        if self._named is not None:
            path = named_path(chunk, self._named) or ()
        else:
            path = answer_path(chunk, None, guess=self._guess)
        return str(path[0]) if len(path) == 1 else None

    @property
    def said(self) -> Any:
        """The answer as it has come: a message, a text, or data."""
        whole = self.whole
        return whole if self._key is None or whole is None else whole[self._key]

    def end(self, judged: object) -> None:
        """Take what ``said`` has become, once its calls or data are judged."""
        self._judged = judged

    def _placed(self, piece: object) -> Any:
        return piece if self._key is None else AddableDict({self._key: piece})

    def piece(self, release: Release) -> object:
        """A release in the type of the stream; None where it has no text."""
        self._answer = release.answer
        self._citations += [annotation(citation) for citation in release.citations]
        refused = release.answer is not None and release.answer.action is Action.REFUSE
        if not release.text or (refused and calls_tools(self.said)):
            return None
        if not isinstance(self.said, BaseMessage):
            return self._placed(release.text)
        return self._placed(AIMessageChunk(content=release.text, id=self.said.id))

    def rest(self) -> object:
        """All that is not text: tool calls, usage, metadata and the verdict."""
        others = None
        if self._key is not None:
            kept = {key: value for key, value in self.whole.items() if key != self._key}
            others = AddableDict(kept) if kept else None
        said = self.said
        judged = said if self._judged is None else self._judged
        if not isinstance(said, AIMessage) or not isinstance(judged, AIMessage):
            if self._key is not None or isinstance(said, str | BaseMessage):
                return others
            return said
        verdict = judged.response_metadata.get("guardrail", {}) if judged is not said else {}
        if self._answer is not None:
            verdict_details = details(self._answer, reasons=self._reasons)
            verdict = {**verdict_details, "citations": self._citations, **verdict}
        withheld = calls_tools(said) and not calls_tools(judged)
        last = AIMessageChunk(
            content=judged.text if withheld and self._answer is None else "",
            id=said.id,
            tool_call_chunks=[] if withheld else _tool_call_chunks(said),
            usage_metadata=said.usage_metadata,
            response_metadata={
                **judged_metadata(said),
                **({"guardrail": verdict} if verdict else {}),
            },
            chunk_position="last",
        )
        placed = self._placed(last)
        return placed if others is None else others + placed


def as_chunk(output: object, path: Path) -> object:
    """A whole output in the type of a stream's chunk."""
    said = answer_at(output, path)
    if not isinstance(said, AIMessage) or len(path) > 1:
        return AddableDict(output) if isinstance(output, Mapping) else output
    chunk = AIMessageChunk(
        content=said.content,
        id=said.id,
        name=said.name,
        additional_kwargs=said.additional_kwargs,
        tool_call_chunks=_tool_call_chunks(said),
        usage_metadata=said.usage_metadata,
        response_metadata=said.response_metadata,
        chunk_position="last",
    )
    placed = with_answer(output, path, chunk)
    return AddableDict(placed) if isinstance(placed, Mapping) else placed


def _tool_call_chunks(message: AIMessage) -> list[ToolCallChunk]:
    if isinstance(message, AIMessageChunk):
        return message.tool_call_chunks
    return [
        tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=n)
        for n, call in enumerate(message.tool_calls)
    ]


def _size(chunk: object) -> int:
    """Bytes of a chunk's texts; for a message all other fields count as well."""
    parts = chunk.values() if isinstance(chunk, Mapping) else [chunk]
    texts = [repr(part) if isinstance(part, BaseMessage) else part for part in parts]
    return sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))
