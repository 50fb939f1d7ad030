"""Any LangChain chat model, by its ``batch``; LangChain itself is not imported."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, cast

from guardrail.core.errors import ConfigError, ModelError
from guardrail.core.incoming import without_reasoning
from guardrail.models.base import Completion, SampleRequest, model_workers
from guardrail.models.constraints import CitationConstraint

__all__ = ["LangChainModel"]


class _ChatModel(Protocol):
    """What is used of LangChain's chat models."""

    def batch(self, inputs: Sequence[object], /) -> list[object]: ...

    def with_structured_output(
        self, schema: Mapping[str, object], *, include_raw: Literal[True]
    ) -> _Structured: ...


class _Structured(Protocol):
    def batch(self, inputs: Sequence[object], /) -> list[Mapping[str, object]]: ...


class LangChainModel:
    """A LangChain chat model, whose own settings of sampling stand.

    Args:
        model: A ``BaseChatModel`` or any runnable from messages to a message.
        structured: Hold citations to the retrieved triples through the model's
            ``with_structured_output``; otherwise plain prompting.
        name: Name for the score log; None asks the model.

    Raises:
        ConfigError: The object is no runnable, or structured output is asked of a model
            without it.
    """

    def __init__(
        self,
        model: object,
        *,
        structured: bool = False,
        name: str | None = None,
    ) -> None:
        if not callable(getattr(model, "batch", None)):
            raise ConfigError(f"{type(model).__name__} is no LangChain model: it has no batch()")
        if structured and not callable(getattr(model, "with_structured_output", None)):
            raise ConfigError(f"{type(model).__name__} has no with_structured_output()")
        self._model = cast("_ChatModel", model)
        self._structured = structured
        self._name = name
        self._workers = model_workers()

    @property
    def name(self) -> str:
        """The name given, else the model's own, else its class."""
        for attribute in ("model_name", "model", "name"):
            found = self._name or getattr(self._model, attribute, None)
            if isinstance(found, str) and found:
                return found
        return type(self._model).__name__

    def warm_up(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Release the threads; the model belongs to the caller and stays open."""
        workers, self._workers = self._workers, model_workers()
        workers.close()

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """Draw samples, as a batch of ``request.n`` equal inputs.

        Raises:
            ModelError: The model raised, or time ran out.
        """
        call = self._workers.run(self._call, request)
        try:
            return await asyncio.wait_for(call, request.timeout_s)
        except TimeoutError as error:
            raise ModelError(f"model {self.name!r} did not answer in time") from error

    def _call(self, request: SampleRequest) -> list[Completion]:
        messages = [(message.role, message.content) for message in request.prompt.messages]
        inputs = [messages] * request.n
        constraint = request.constraint if self._structured else None
        try:
            if constraint is not None:
                schema = {"title": "cited_answer", **constraint.json_schema()}
                structured = self._model.with_structured_output(schema, include_raw=True)
                replies = [reply["raw"] for reply in structured.batch(inputs)]
            else:
                replies = self._model.batch(inputs)
        except Exception as error:  # whatever the provider's package raises
            raise ModelError(f"model {self.name!r} failed: {error}") from error
        completions = []
        unreadable: ModelError | None = None
        for reply in replies:
            try:
                completions.append(_completion(reply, constraint))
            except ModelError as error:  # not of the schema: the others may do
                unreadable = error
        if unreadable is not None and not completions:
            raise unreadable
        return completions


def _completion(reply: object, constraint: CitationConstraint | None) -> Completion:
    text = without_reasoning(_text(reply))
    if constraint is not None:
        text = constraint.from_json(_structured_text(reply) or text)
    return Completion(
        text=text.strip(),
        finish_reason=_finish_reason(reply),
        constrained=constraint is not None,
    )


def _text(reply: object) -> str:
    """The text of a message, of content blocks, or of a plain string."""
    content = getattr(reply, "content", reply)
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        blocks = (block if isinstance(block, str) else block.get("text", "") for block in content)
        return "".join(blocks)
    return str(content)


def _structured_text(reply: object) -> str | None:
    """The arguments of the tool call, for models whose structured output is one."""
    calls = getattr(reply, "tool_calls", None)
    return json.dumps(calls[0]["args"]) if calls else None


def _finish_reason(reply: object) -> str | None:
    metadata = getattr(reply, "response_metadata", None) or {}
    reason = metadata.get("finish_reason") or metadata.get("stop_reason")
    return str(reason) if reason else None
