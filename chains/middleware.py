"""A guardrail in a LangChain agent: it judges final answers, and tool calls where asked for."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NotRequired, TypeAlias, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langchain_core.runnables.config import RunnableConfig, ensure_config, set_config_context
from langgraph.types import Command

from chains.check_run import CheckInput, traced
from chains.evidence.base import Case, EvidenceMode, EvidenceSettings, case_of
from chains.evidence.langchain import EvidenceOf, chain_evidence, config_field
from chains.guarded_run import GuardedRun, in_own_thread, sample_outputs
from chains.hidden_runs import NO_STREAM_TAG, hidden
from chains.injection import Inject, injected_prompt
from chains.inputs import question_of, with_retry, with_system_message
from chains.message_data import documents_in, message_with
from chains.messages import guarded_message
from chains.openai_wire import is_json_document
from chains.outputs import has_text, is_answer
from chains.rendering import details
from chains.structured import Document, judge_documents
from chains.styles import MarkerStyle
from guardrail import STRICT, GuardedAnswer, Guardrail, Policy
from guardrail.candidates import Attempt
from guardrail.engine.loop import run_sync
from guardrail.policy import policy_named

__all__ = ["GuardrailMiddleware", "GuardrailState"]

Request: TypeAlias = ModelRequest[Any]
Response: TypeAlias = ModelResponse[Any]
SyncHandler = Callable[[Request], Response]
AsyncHandler = Callable[[Request], Awaitable[Response]]


class GuardrailState(AgentState[Any]):
    """The agent's state with the verdict on its last answer."""

    guardrail: NotRequired[dict[str, object]]


class GuardrailMiddleware(AgentMiddleware[GuardrailState, Any]):
    """Judges what an agent is about to say; for ``create_agent(…, middleware=[…])``.

    The model is called hidden from streams; candidates are ranked and, where the policy says
    so, sampled again with the failed sentences named. The message that enters the state keeps
    the id of the chosen one. Text in a message that calls tools is judged, but not sampled again.
    Tool calls and structured responses pass unchanged, and the message's
    ``response_metadata["guardrail"]["unjudged"]`` names them; a policy with ``structured`` judges
    them, and withholds them together where it would take something out.

    Args:
        guard: The guardrail.
        policy: A policy or its name; ``candidates`` is the number of calls per attempt,
            ``attempts`` bounds the rounds.
        style: How markers look in the message's text.
        inject: What the model is shown of the evidence, in the system message: ``off``,
            ``facts``, or ``prompt`` with KaLMA's instruction and demonstration.
        evidence: A key or path of the agent's state that holds documents the model was shown, or
            a function of the state. A run may bring its own in
            ``config["metadata"]["guardrail"]["evidence"]``.
        evidence_mode: ``given`` takes that evidence in place of the graph, ``both`` adds the
            graph, ``graph`` takes the graph alone.
        tool_results: Whether what tools returned counts as evidence, in addition to the graph.
        marks: Delimiters of marked evidence in messages, ``("<context>", "</context>")``.
        reasons: Whether refused and filtered answers carry their reasons.
        ground: Deprecated; use ``inject="facts"``.
    """

    state_schema = GuardrailState

    def __init__(
        self,
        guard: Guardrail,
        *,
        policy: Policy | str = STRICT,
        style: MarkerStyle | str = MarkerStyle.KALMA,
        inject: Inject | str = Inject.OFF,
        evidence: EvidenceOf | None = None,
        evidence_mode: EvidenceMode | str = EvidenceMode.GIVEN,
        tool_results: bool = True,
        marks: tuple[str, str] | None = None,
        reasons: bool = True,
        ground: bool = False,
    ) -> None:
        super().__init__()
        if ground:
            warnings.warn("ground is now inject='facts'", DeprecationWarning, stacklevel=2)
            inject = Inject.FACTS
        self._guard = guard
        self._policy = guard.require(policy_named(policy) if isinstance(policy, str) else policy)
        self._style = MarkerStyle(style)
        self._inject = Inject(inject)
        self._evidence = evidence
        self._places = EvidenceSettings(
            mode=EvidenceMode(evidence_mode), tools=tool_results, marks=marks
        )
        self._reasons = reasons

    def wrap_model_call(
        self, request: Request, handler: SyncHandler
    ) -> Response | ExtendedModelResponse:
        """Call the model, judge its answer, and put the guarded one in its place."""

        async def call(hidden_request: Request) -> Response:
            # The handler blocks: it must not run on the loop that all sync callers share.
            return await in_own_thread(partial(_quietly, handler, hidden_request, config))

        config = ensure_config()
        return run_sync(self._call(request, call))

    async def awrap_model_call(
        self, request: Request, handler: AsyncHandler
    ) -> Response | ExtendedModelResponse:
        """``wrap_model_call`` as a coroutine."""
        config = ensure_config()

        async def call(hidden_request: Request) -> Response:
            with set_config_context(_hidden_from_streams(config)) as context:
                task = asyncio.get_running_loop().create_task(
                    cast(Any, handler(hidden_request)), context=context
                )
                return cast(Response, await task)

        return await self._call(request, call)

    async def _call(self, request: Request, call: AsyncHandler) -> Response | ExtendedModelResponse:
        case = await self._case(request)
        policy = case.policy or self._policy
        request = _without_streaming(request)
        text = await injected_prompt(self._guard, case.question, case.evidence, self._inject)
        if text:
            system = [request.system_message] if request.system_message else []
            first = cast(SystemMessage, with_system_message(system, text)[0])
            request = request.override(system_message=first)

        async def sample(attempt: Attempt) -> list[Response]:
            # The rejected answer is a message of its own: it must not enter the state.
            messages = cast("list[AnyMessage]", with_retry(request.messages, attempt))
            again = request.override(messages=messages)

            async def once(samples: int) -> list[Response]:
                return [await call(again)]

            return await sample_outputs(once, _said, attempt.samples)

        async def judged_by(responses: Sequence[Response]) -> Case:
            return case

        best = await GuardedRun.best(self._guard, sample, _final, judged_by, policy, _config())
        if best.answer is None:
            return await self._beside_tools(case, best.output, policy.settled())
        return await self._replaced(case, best.output, best.answer, policy)

    async def _checked(self, case: Case, text: str, policy: Policy) -> GuardedAnswer:
        """Check one answer, under a run of its own for tracers."""

        async def check() -> list[GuardedAnswer]:
            return [await case.check(self._guard, text, policy)]

        asked = [CheckInput(_config(), case.question, text, case.evidence)]
        return (await traced(asked, check()))[0]

    async def _beside_tools(
        self, case: Case, response: Response, policy: Policy
    ) -> Response | ExtendedModelResponse:
        """Judge the words beside calls and data; these stay as they are, or are withheld."""
        places = [n for n, item in enumerate(response.result) if isinstance(item, AIMessage)]
        if not places:
            return response
        data, message = response.structured_response, cast(AIMessage, response.result[places[-1]])
        written = data is not None and is_json_document(message.text)
        if has_text(message) and not written:
            answer = await self._checked(case, message.text, policy)
            message = guarded_message(message, answer, self._style, reasons=self._reasons)
        documents = documents_in(message, policy)
        documents += documents_in(data, policy, "structured response")
        if written:
            documents.append(Document.read("content", "answer", message.text))
        verdicts = await judge_documents(self._guard, policy, case, documents)
        left = "" if written else None
        message = message_with(message, verdicts, policy, text=left)
        result = [*response.result[: places[-1]], message]
        if verdicts.withheld:
            data = None
        else:
            result += response.result[places[-1] + 1 :]
        judged = ModelResponse(result=result, structured_response=data)
        if response.structured_response is None:
            return judged
        told = {"guardrail": message.response_metadata["guardrail"]}
        return ExtendedModelResponse(model_response=judged, command=Command(update=told))

    async def _replaced(
        self, case: Case, response: Response, answer: GuardedAnswer, policy: Policy
    ) -> ExtendedModelResponse:
        guarded = guarded_message(_last(response), answer, self._style, reasons=self._reasons)
        documents = documents_in(guarded, policy)  # of tools that the provider runs itself
        verdicts = await judge_documents(self._guard, policy, case, documents)
        messages = [*response.result[:-1], message_with(guarded, verdicts, policy)]
        told = details(answer, reasons=self._reasons) | verdicts.told()
        return ExtendedModelResponse(
            model_response=ModelResponse(result=messages),
            command=Command(update={"guardrail": told}),
        )

    async def _case(self, request: Request) -> Case:
        """What the agent's next answer is judged against."""
        field = config_field(ensure_config())
        # The messages come from the request: other middleware may have changed them.
        state = {**request.state, "messages": request.messages}
        found = chain_evidence(self._evidence, state, None, field, self._places)
        policy = field.chosen_policy(self._policy) if field.changes_policy else None
        question = question_of(request.messages, None, self._places)
        return await case_of(self._guard, question, found, self._places.mode, policy)


def _without_streaming(request: Request) -> Request:
    """The request with a model whose tokens no stream shows.

    Both the tag and the field are needed, and both must sit on the model itself: tags given
    by ``with_config`` are lost once tools are bound.
    """
    model = request.model
    tags = [*(model.tags or []), NO_STREAM_TAG]
    return request.override(
        model=model.model_copy(update={"disable_streaming": True, "tags": tags})
    )


def _hidden_from_streams(config: RunnableConfig) -> RunnableConfig:
    callbacks = config.get("callbacks")
    return hidden(config, callbacks) if isinstance(callbacks, BaseCallbackManager) else config


def _config() -> RunnableConfig:
    """The config for the tracers of the current run."""
    return _hidden_from_streams(ensure_config())


def _quietly(handler: SyncHandler, request: Request, config: RunnableConfig) -> Response:
    with set_config_context(_hidden_from_streams(config)) as context:
        return context.run(handler, request)


def _final(response: Response) -> object:
    """The message that ends a response with an answer; None for tool calls and structured data."""
    said = _said(response)
    return said if is_answer(said) else None


def _said(response: Response) -> object:
    if response.structured_response is not None or not response.result:
        return None
    return response.result[-1]


def _last(response: Response) -> AIMessage:
    return cast(AIMessage, response.result[-1])
