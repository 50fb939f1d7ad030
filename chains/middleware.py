"""A guardrail in a LangChain agent: judges final answers, and tool calls if the policy says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NotRequired, TypeAlias, Unpack, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langchain_core.runnables.config import RunnableConfig, ensure_config, set_config_context
from langgraph.types import Command

from chains.evidence.base import Case, case_of
from chains.evidence.langchain import EvidencePlace, chain_evidence, config_field
from chains.guarded_run import (
    NO_STREAM_TAG,
    GuardFields,
    GuardOptions,
    hidden,
    in_own_thread,
    run_guarded,
)
from chains.messages import documents_in, guarded_message, message_with
from chains.openai_wire import is_json_document
from chains.options import injected_prompt
from chains.payloads import question_of, with_retry, with_system_message
from chains.structured import Document, judge_documents
from guardrail import GuardedAnswer, Guardrail, Policy
from guardrail.candidates import Attempt
from guardrail.core.workers import run_sync

Request: TypeAlias = ModelRequest[Any]
Response: TypeAlias = ModelResponse[Any]
AsyncHandler = Callable[[Request], Awaitable[Response]]


class GuardrailState(AgentState[Any]):
    """The agent's state with the verdict on its last answer."""

    guardrail: NotRequired[dict[str, object]]


class GuardrailMiddleware(AgentMiddleware[GuardrailState, Any]):
    """Judges the answers of an agent; for ``create_agent(…, middleware=[…])``.

    The model runs hidden from streams; candidates are ranked and, if the policy says so,
    sampled again with the failed sentences named. The message that enters the state keeps the id
    of the chosen one. Text in a message that calls tools is judged, but not sampled again.
    Tool calls and structured responses pass unchanged and are listed in the message's
    ``response_metadata["guardrail"]["unjudged"]``; a policy with ``structured`` judges them, and
    withholds them together if it would remove any part.

    Args:
        guard: The guardrail.
        evidence: A key or path of the agent's state that holds documents the model saw, or
            a function of the state. A run may bring its own in
            ``config["metadata"]["guardrail"]["evidence"]``.
        options: ``policy``, ``style``, ``inject``, ``evidence_mode``, ``tool_results``, ``marks``
            and ``reasons``, as of ``GuardrailRunnable``. The policy's ``candidates`` is the number
            of calls per attempt; injected facts go into the system message.
    """

    state_schema = GuardrailState

    def __init__(
        self,
        guard: Guardrail,
        *,
        evidence: EvidencePlace | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        super().__init__()
        self._guard = guard
        self._evidence = evidence
        self._options = GuardFields(**options)  # type: ignore[arg-type]
        self._policy = guard.require(self._options.policy)

    def wrap_model_call(
        self, request: Request, handler: Callable[[Request], Response]
    ) -> Response | ExtendedModelResponse:
        """Call the model, judge its answer, and return the guarded one."""
        config = hidden(ensure_config())

        def call_handler(inner: Request) -> Response:
            with set_config_context(config) as context:
                return context.run(handler, inner)

        async def call(inner: Request) -> Response:
            # The handler blocks: it must not run on the loop that all sync callers share.
            return await in_own_thread(partial(call_handler, inner))

        return run_sync(self._run(request, call, config))

    async def awrap_model_call(
        self, request: Request, handler: AsyncHandler
    ) -> Response | ExtendedModelResponse:
        """``wrap_model_call`` as a coroutine."""
        config = hidden(ensure_config())

        async def call(inner: Request) -> Response:
            with set_config_context(config) as context:
                loop = asyncio.get_running_loop()
                reply = loop.create_task(cast(Any, handler(inner)), context=context)
                return cast(Response, await reply)

        return await self._run(request, call, config)

    async def _run(
        self, request: Request, call: AsyncHandler, config: RunnableConfig
    ) -> Response | ExtendedModelResponse:
        # The caller's own config: the model is called under ``config``.
        field, places = config_field(ensure_config()), self._options.places
        policy = field.chosen_policy(self._policy)
        # The messages come from the request: other middleware may have changed them.
        state = {**request.state, "messages": request.messages}
        found = chain_evidence(self._evidence, state, None, field, places)
        question = question_of(request.messages, None, places)
        case = await case_of(self._guard, question, found, places.mode)
        request = request.override(model=_without_streaming(request.model))
        inject = self._options.inject
        if text := await injected_prompt(self._guard, case.question, case.evidence, inject):
            system = [request.system_message] if request.system_message else []
            first = cast(SystemMessage, with_system_message(system, text)[0])
            request = request.override(system_message=first)

        async def once(attempt: Attempt, samples: int) -> list[Response]:
            # The rejected answer is a message of its own: it must not enter the state.
            messages = cast("list[AnyMessage]", with_retry(request.messages, attempt))
            return [await call(request.override(messages=messages))]

        async def same_case(responses: Sequence[Response]) -> Case:
            return case

        response, answer, _ = await run_guarded(
            self._guard, once, _answer, same_case, policy, config
        )
        return await self._judge(case, policy, response, answer)

    async def _judge(
        self, case: Case, policy: Policy, response: Response, answer: GuardedAnswer | None
    ) -> Response | ExtendedModelResponse:
        """The response with its guarded text; calls and data judged, or listed as unjudged."""
        if (place := _last_place(response)) is None:
            return response
        message, data = cast(AIMessage, response.result[place]), response.structured_response
        repeats = _repeats_data(response, message)
        if answer is not None:
            options = self._options
            message = guarded_message(message, answer, options.style, reasons=options.reasons)
        documents = documents_in(message, policy)
        documents += documents_in(data, policy, "structured response")
        if repeats:
            documents.append(Document.read("content", "answer", message.text))
        verdicts = await judge_documents(self._guard, policy, case, documents)
        message = message_with(message, verdicts, policy, text="" if repeats else None)
        rest = [] if verdicts.withheld else response.result[place + 1 :]
        judged = ModelResponse(
            result=[*response.result[:place], message, *rest],
            structured_response=None if verdicts.withheld else data,
        )
        if data is None and (answer is None or message.tool_calls):
            return judged
        verdict = message.response_metadata.get("guardrail", {})
        return ExtendedModelResponse(judged, Command(update={"guardrail": verdict}))


def _without_streaming(model: BaseChatModel) -> BaseChatModel:
    """A model whose tokens no stream shows.

    It needs both the tag and the field; tags of ``with_config`` are lost once tools are bound.
    """
    tags = [*(model.tags or []), NO_STREAM_TAG]
    return model.model_copy(update={"disable_streaming": True, "tags": tags})


def _last_place(response: Response) -> int | None:
    """The place of the model's last message."""
    places = [n for n, item in enumerate(response.result) if isinstance(item, AIMessage)]
    return places[-1] if places else None


def _repeats_data(response: Response, message: AIMessage) -> bool:
    """True if the text of a message is the structured response as JSON."""
    return response.structured_response is not None and is_json_document(message.text)


def _answer(response: Response) -> object:
    """The message with the text to judge; None if it only repeats the structured response."""
    if (place := _last_place(response)) is None:
        return None
    message = cast(AIMessage, response.result[place])
    return None if _repeats_data(response, message) else message
