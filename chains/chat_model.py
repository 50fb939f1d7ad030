"""A guarded chat model, for places that require a chat model rather than any Runnable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Unpack, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    BaseRunManager,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.runnables.utils import Output
from langchain_core.tools import BaseTool
from pydantic import ConfigDict, PrivateAttr

from chains.evidence.base import FIELD
from chains.guarded_run import GuardFields, ModelOptions
from chains.runnable import GuardrailRunnable
from guardrail import Guardrail


class GuardedChatModel(BaseChatModel, GuardFields):
    """A chat model whose answers are judged before they leave; see ``GuardrailRunnable``.

    Tool calls and structured outputs are the inner model's own, and are judged if the policy says
    ``structured``; text next to a tool call is judged.

    Args:
        guard: The guardrail.
        bound: The chat model to guard.
        fields: ``policy``, ``style``, ``stream_mode``, ``inject``, ``evidence_mode``,
            ``tool_results``, ``marks``, ``reasons`` and ``max_reply_bytes``, as of
            ``GuardrailRunnable``.
    """

    model_config = ConfigDict(extra="ignore")  # as all chat models: others have more parameters

    bound: BaseChatModel
    _guard: Guardrail = PrivateAttr()
    _guarded: GuardrailRunnable[LanguageModelInput, Any] = PrivateAttr()

    def __init__(
        self, guard: Guardrail, bound: BaseChatModel, **fields: Unpack[ModelOptions]
    ) -> None:
        super().__init__(bound=bound, **fields)  # type: ignore[call-arg, misc]
        self._guard = guard
        self._guarded = self._around(bound)

    @property
    def _llm_type(self) -> str:
        return f"guarded-{self.bound._llm_type}"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: object) -> LangSmithParams:
        return self.bound._get_ls_params(stop=stop, **kwargs)

    def bind_tools(
        self,
        tools: Sequence[dict[str, object] | type | Callable[..., object] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: object,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools to the inner model; its final answers are still judged."""
        bound = self.bound.bind_tools(tools, tool_choice=tool_choice, **kwargs)
        if isinstance(bound, RunnableBinding):
            return self.bind(**bound.kwargs)
        return self._around(bound)

    def with_structured_output(
        self, schema: dict[str, object] | type, *, include_raw: bool = False, **kwargs: object
    ) -> Runnable[LanguageModelInput, Any]:
        """The inner model's structured output: data, judged if the policy says so.

        Raises:
            ConfigError: The policy judges data, and samples or retries: data are not ranked.
        """
        if self.policy.structured:
            self.policy.checking_only("structured output")
        data = self.bound.with_structured_output(schema, include_raw=include_raw, **kwargs)
        return self._around(data) if self.policy.structured else data

    def _around(
        self, bound: Runnable[LanguageModelInput, Output]
    ) -> GuardrailRunnable[LanguageModelInput, Output]:
        fields = {name: getattr(self, name) for name in GuardFields.model_fields}
        return GuardrailRunnable(self._guard, bound, **cast("ModelOptions", fields))

    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[AIMessageChunk]:
        """Stream the answer, each piece judged before it leaves."""
        yield from super().stream(input, config, **kwargs, **_field(config))

    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """``stream`` as an asynchronous iterator."""
        async for piece in super().astream(input, config, **kwargs, **_field(config)):
            yield piece

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        config = _config(run_manager, kwargs)
        message = self._guarded.invoke(messages, config, stop=stop, **kwargs)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        config = _config(run_manager, kwargs)
        message = await self._guarded.ainvoke(messages, config, stop=stop, **kwargs)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> Iterator[ChatGenerationChunk]:
        config = _config(run_manager, kwargs)
        for chunk in self._guarded.stream(messages, config, stop=stop, **kwargs):
            yield ChatGenerationChunk(message=chunk)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> AsyncIterator[ChatGenerationChunk]:
        config = _config(run_manager, kwargs)
        async for chunk in self._guarded.astream(messages, config, stop=stop, **kwargs):
            yield ChatGenerationChunk(message=chunk)


def _field(config: RunnableConfig | None) -> dict[str, Any]:
    """The guardrail's part of a config, which LangChain does not pass from ``stream`` on."""
    metadata = (config or {}).get("metadata") or {}
    return {FIELD: metadata[FIELD]} if FIELD in metadata else {}


def _config(manager: BaseRunManager | None, kwargs: dict[str, object]) -> RunnableConfig:
    """The caller's metadata, which may hold evidence and policy of the run."""
    own = {FIELD: kwargs.pop(FIELD)} if FIELD in kwargs else {}
    return {"metadata": {**(manager.metadata if manager else {}), **own}}
