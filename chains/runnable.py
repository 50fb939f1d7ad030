"""A guardrail round any LangChain model, chain or Runnable that ends in a message or string."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    BaseCallbackHandler,
    CallbackManagerForChainRun,
)
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import patch_config
from langchain_core.tracers._streaming import (
    _StreamingCallbackHandler,
    _V2StreamingCallbackHandler,
)
from pydantic import ConfigDict, Field, PrivateAttr

from chains.messages import (
    annotation,
    calls_tools,
    guarded_output,
    has_text,
    judged_metadata,
    output_text,
    question_of,
)
from chains.rendition import MarkerStyle, details
from chains.streaming import (
    Release,
    SentenceGate,
    StreamMode,
    guard_stream,
    guard_stream_sync,
)
from guardrail import (
    STRICT,
    Action,
    CheckRequest,
    GuardedAnswer,
    Guardrail,
    GuardrailConfig,
    Policy,
    run_sync,
)

__all__ = ["GuardrailRunnable", "guard_runnable"]

NO_STREAM_TAG = "nostream"
"""LangGraph does not stream the tokens of a model that runs under this tag."""


class GuardrailRunnable(RunnableSerializable[Any, Any]):
    """Guards what another Runnable answers; a drop-in for it in any chain.

    Tool calls and outputs that are neither messages nor strings pass through untouched; text
    beside a tool call is judged as any other, and left out where it is refused. No unjudged text
    leaves, neither in the output nor in events: handlers that stream a run's
    tokens to a consumer (``astream_events``, LangGraph's stream modes) are kept from the inner
    Runnable, while all other callbacks (tracers, loggers) still see it.

    Args:
        guard: The guardrail.
        bound: What to guard.
        policy: A policy; ``STRICT`` unless told.
        style: How markers look in the text: ``kalma``, ``footnotes`` or ``none``.
        stream_mode: ``sentence`` releases each sentence once it is judged, ``buffer`` waits for
            the whole answer.
        question_key: Where the question stands in a mapping input; found when None.

    Example:
        >>> guarded = GuardrailRunnable(Guardrail(), prompt | model)    # doctest: +SKIP
        >>> guarded.invoke({"question": "Who was Ada Lovelace?"})       # doctest: +SKIP
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    bound: Runnable[Any, Any]
    settings: GuardrailConfig
    policy: Policy = STRICT
    style: MarkerStyle = MarkerStyle.KALMA
    stream_mode: StreamMode = StreamMode.SENTENCE
    question_key: str | None = Field(default=None)
    _guard: Guardrail = PrivateAttr()

    def __init__(
        self,
        guard: Guardrail | None = None,
        bound: Runnable[Any, Any] | None = None,
        **fields: Any,
    ) -> None:
        # A runnable that is loaded from JSON brings its settings instead of a guardrail.
        settings = fields.pop("settings", None)
        if guard is None:
            guard = Guardrail(GuardrailConfig.model_validate(settings or {}))
        super().__init__(bound=bound, settings=guard.config, **fields)  # type: ignore[call-arg]
        self._guard = guard

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Settings and the guarded Runnable can be written as JSON."""
        return True

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Where this class lives."""
        return ["chains", "runnable"]

    @property
    def lc_attributes(self) -> dict[str, Any]:
        """Nested settings as plain JSON."""
        return {
            "settings": self.settings.model_dump(mode="json"),
            "policy": self.policy.model_dump(mode="json"),
            "style": self.style.value,
            "stream_mode": self.stream_mode.value,
        }

    # --- single calls and batches --------------------------------------------------------

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the guarded Runnable and guard its answer."""
        return self._call_with_config(self._invoke, input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """``invoke`` as a coroutine."""
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    def batch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any | None,
    ) -> list[Any]:
        """Run all inputs, then judge all answers together."""
        return self._batch_with_config(
            self._batch, inputs, config, return_exceptions=return_exceptions, **kwargs
        )

    async def abatch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any | None,
    ) -> list[Any]:
        """``batch`` as a coroutine."""
        return await self._abatch_with_config(
            self._abatch, inputs, config, return_exceptions=return_exceptions, **kwargs
        )

    def _invoke(
        self,
        value: Any,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        output = self.bound.invoke(value, hidden(config, run_manager.get_child()), **kwargs)
        return run_sync(self._guarded([value], [output]))[0]

    async def _ainvoke(
        self,
        value: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        output = await self.bound.ainvoke(value, hidden(config, run_manager.get_child()), **kwargs)
        return (await self._guarded([value], [output]))[0]

    def _batch(
        self,
        values: list[Any],
        run_manager: list[CallbackManagerForChainRun],
        config: list[RunnableConfig],
        **kwargs: Any,
    ) -> list[Any]:
        inner = [hidden(one, run.get_child()) for one, run in zip(config, run_manager, strict=True)]
        outputs = self.bound.batch(values, inner, return_exceptions=True, **kwargs)
        return run_sync(self._guarded(values, outputs))

    async def _abatch(
        self,
        values: list[Any],
        run_manager: list[AsyncCallbackManagerForChainRun],
        config: list[RunnableConfig],
        **kwargs: Any,
    ) -> list[Any]:
        inner = [hidden(one, run.get_child()) for one, run in zip(config, run_manager, strict=True)]
        outputs = await self.bound.abatch(values, inner, return_exceptions=True, **kwargs)
        return await self._guarded(values, outputs)

    async def _guarded(self, values: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Guard those outputs that have text, in one batch; the others stay as they are."""
        places = [place for place, output in enumerate(outputs) if has_text(output)]
        requests = [
            CheckRequest(
                question=question_of(values[place], self.question_key),
                answer=output_text(outputs[place]),
            )
            for place in places
        ]
        policy = self.policy.settled()  # a Runnable's answer cannot be asked for again
        checked = await self._guard.acheck_batch(requests, policy=policy) if requests else []
        result = list(outputs)
        for place, answer in zip(places, checked, strict=True):
            result[place] = guarded_output(outputs[place], answer, self.style)
        return result

    # --- streams -------------------------------------------------------------------------

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any | None
    ) -> Iterator[Any]:
        """Stream the answer, each piece judged before it leaves."""
        yield from self.transform(iter([input]), config, **kwargs)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any | None
    ) -> AsyncIterator[Any]:
        """``stream`` as an asynchronous iterator."""
        async for piece in self.atransform(_once(input), config, **kwargs):
            yield piece

    def transform(
        self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any | None
    ) -> Iterator[Any]:
        """Gather a streamed input, then stream the guarded answer to it."""
        yield from self._transform_stream_with_config(input, self._transform, config, **kwargs)

    async def atransform(
        self,
        input: AsyncIterator[Any],
        config: RunnableConfig | None = None,
        **kwargs: Any | None,
    ) -> AsyncIterator[Any]:
        """``transform`` as an asynchronous iterator."""
        async for piece in self._atransform_stream_with_config(
            input, self._atransform, config, **kwargs
        ):
            yield piece

    def _transform(
        self,
        pieces: Iterator[Any],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Iterator[Any]:
        value = reduce(add, pieces)
        chunks = _Chunks()
        source = self.bound.stream(value, hidden(config, run_manager.get_child()), **kwargs)
        texts = (chunks.take(chunk) for chunk in source)
        for release in guard_stream_sync(self._gate(value), texts):
            if (piece := chunks.piece(release)) is not None:
                yield piece
        if (rest := chunks.rest()) is not None:
            yield rest

    async def _atransform(
        self,
        pieces: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        value = reduce(add, [piece async for piece in pieces])
        chunks = _Chunks()
        source = self.bound.astream(value, hidden(config, run_manager.get_child()), **kwargs)
        texts = (chunks.take(chunk) async for chunk in source)
        async for release in guard_stream(self._gate(value), texts):
            if (piece := chunks.piece(release)) is not None:
                yield piece
        if (rest := chunks.rest()) is not None:
            yield rest

    def _gate(self, value: Any) -> SentenceGate:
        return SentenceGate(
            self._guard,
            question_of(value, self.question_key),
            policy=self.policy,
            mode=self.stream_mode,
            style=self.style,
        )


def guard_runnable(
    guard: Guardrail, bound: Runnable[Any, Any], **options: Any
) -> GuardrailRunnable:
    """``GuardrailRunnable(guard, bound, …)``, for those who like a verb."""
    return GuardrailRunnable(guard, bound, **options)


def hidden(config: RunnableConfig, callbacks: BaseCallbackManager) -> RunnableConfig:
    """The config for the inner run: all callbacks but those that stream tokens to a consumer.

    The ``nostream`` tag asks the same of stream modes that look at tags.
    """
    quiet = callbacks.copy()
    for handler in [*quiet.handlers, *quiet.inheritable_handlers]:
        if streams_tokens(handler):
            quiet.remove_handler(handler)
    quiet.add_tags([NO_STREAM_TAG], inherit=True)
    return patch_config(config, callbacks=quiet)


def streams_tokens(handler: BaseCallbackHandler) -> bool:
    """Whether a handler hands what it sees to the consumer of a stream."""
    return isinstance(handler, _StreamingCallbackHandler | _V2StreamingCallbackHandler)


class _Chunks:
    """What has come through a stream: its text, and everything of it that is not text."""

    def __init__(self) -> None:
        self._whole: Any = None
        self._answer: GuardedAnswer | None = None
        self._citations: list[dict[str, Any]] = []

    def take(self, chunk: Any) -> str:
        """Remember a chunk and tell its text."""
        self._whole = chunk if self._whole is None else self._whole + chunk
        if isinstance(chunk, BaseMessage):
            return chunk.text
        return chunk if isinstance(chunk, str) else ""

    def piece(self, release: Release) -> Any:
        """A release in the type of the stream; None where it has no text."""
        self._answer = release.answer
        self._citations += [annotation(citation) for citation in release.citations]
        refused = release.answer is not None and release.answer.action is Action.REFUSE
        if not release.text or (refused and calls_tools(self._whole)):
            return None
        if not isinstance(self._whole, BaseMessage):
            return release.text
        return AIMessageChunk(content=release.text, id=self._whole.id)

    def rest(self) -> Any:
        """All that is not text: tool calls, usage, metadata and the verdict; or other data."""
        if not isinstance(self._whole, AIMessage):
            return None if isinstance(self._whole, str | BaseMessage) else self._whole
        message = self._whole
        verdict = {}
        if self._answer is not None:
            verdict = {"guardrail": details(self._answer) | {"citations": self._citations}}
        return AIMessageChunk(
            content="",
            id=message.id,
            tool_call_chunks=_tool_call_chunks(message),
            usage_metadata=message.usage_metadata,
            response_metadata={**judged_metadata(message), **verdict},
            chunk_position="last",
        )


def _tool_call_chunks(message: AIMessage) -> list[ToolCallChunk]:
    if isinstance(message, AIMessageChunk):
        return message.tool_call_chunks
    return [
        tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=n)
        for n, call in enumerate(message.tool_calls)
    ]


async def _once(value: Any) -> AsyncIterator[Any]:
    yield value
