"""Any LangChain chat model, by its ``batch``; LangChain itself is not imported."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, cast

from guardrail.core.errors import ConfigError, ModelError
from guardrail.core.incoming import without_reasoning
from guardrail.models.base import Completion, SampleRequest, model_workers


class _ChatModel(Protocol):
    """What is used of LangChain's chat models."""

    def batch(self, inputs: Sequence[object], /) -> list[object]: ...


class LangChainModel:
    """A LangChain chat model, or any runnable from messages to a message.

    Its own sampling settings apply. Raises a ConfigError for any other object.
    """

    def __init__(self, model: object) -> None:
        if not callable(getattr(model, "batch", None)):
            raise ConfigError(f"{type(model).__name__} is no LangChain model: it has no batch()")
        self._model = cast("_ChatModel", model)
        self._workers = model_workers()

    @property
    def name(self) -> str:
        """The model's own name, else its class."""
        for attribute in ("model_name", "model", "name"):
            found = getattr(self._model, attribute, None)
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
        try:
            replies = self._model.batch([messages] * request.n)
        except Exception as error:  # whatever the provider's package raises
            raise ModelError(f"model {self.name!r} failed: {error}") from error
        completions = []
        for reply in replies:
            metadata = getattr(reply, "response_metadata", None) or {}
            reason = metadata.get("finish_reason") or metadata.get("stop_reason")
            text = without_reasoning(_text(reply)).strip()
            completions.append(Completion(text=text, finish_reason=str(reason) if reason else None))
        return completions


def _text(reply: object) -> str:
    """The text of a message, of content blocks, or of a plain string."""
    content = getattr(reply, "content", reply)
    if isinstance(content, list):
        blocks = (block if isinstance(block, str) else block.get("text", "") for block in content)
        return "".join(blocks)
    return str(content)
