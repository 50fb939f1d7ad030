"""A guardrail in a LangChain agent: its final answers are judged, its calls where asked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, NotRequired, TypeAlias, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables.config import RunnableConfig, ensure_config, set_config_context
from langgraph.types import Command

from chains.check_run import Asked, traced
from chains.evidence.base import Case, EvidenceMode, EvidenceSettings, case_of
from chains.evidence.langchain import EvidenceOf, chain_evidence, config_field
from chains.hidden_runs import NO_STREAM_TAG, hidden
from chains.message_data import documents_in, message_with
from chains.messages import guarded_message, has_text, is_answer, question_of
from chains.openai_wire import is_json_document
from chains.regeneration import retry_message
from chains.rendition import details
from chains.structured import Document, judge_documents
from chains.styles import MarkerStyle
from guardrail import STRICT, Action, GuardedAnswer, Guardrail, Policy, policy_named, run_sync

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
    so, asked for again with the failed sentences named. The message that enters the state keeps
    the id of the chosen one. Text beside a tool call is judged, but not asked for again. Tool
    calls and structured responses pass as they are, and the message's
    ``response_metadata["guardrail"]["unjudged"]`` names them; under a policy that says
    ``structured`` they are judged, and withheld together where the policy would take something out.

    Args:
        guard: The guardrail.
        policy: A policy or its name; ``candidates`` is the number of calls per attempt,
            ``attempts`` bounds the rounds.
        style: How markers look in the message's text.
        ground: Whether the facts retrieved for the question are put into the system prompt.
        evidence: A key or path of the agent's state that holds documents the model was shown, or
            a function of the state. A run may hand over its own in
            ``config["metadata"]["guardrail"]["evidence"]``.
        evidence_mode: ``given`` takes what was handed over in place of the graph, ``both`` beside
            it, ``graph`` the graph alone.
        tool_results: Whether what tools returned counts as evidence, beside the graph.
        marks: Delimiters of a marked stretch in messages, ``("<context>", "</context>")``.
        reasons: Whether refused and filtered answers carry their reasons.
    """

    state_schema = GuardrailState

    def __init__(
        self,
        guard: Guardrail,
        *,
        policy: Policy | str = STRICT,
        style: MarkerStyle | str = MarkerStyle.KALMA,
        ground: bool = False,
        evidence: EvidenceOf | None = None,
        evidence_mode: EvidenceMode | str = EvidenceMode.GIVEN,
        tool_results: bool = True,
        marks: tuple[str, str] | None = None,
        reasons: bool = True,
    ) -> None:
        super().__init__()
        self._guard = guard
        self._policy = policy_named(policy) if isinstance(policy, str) else policy
        self._style = MarkerStyle(style)
        self._ground = ground
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
            return await _in_own_thread(partial(_quietly, handler, hidden_request, config))

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
        if self._ground:
            request = await self._grounded(request, case.question)
        for attempt in range(policy.rounds):
            responses = [await call(request)]
            if not _final(responses[0]):
                return await self._beside_tools(case, responses[0], policy.settled())
            responses += await asyncio.gather(*(call(request) for _ in range(policy.samples - 1)))
            responses = [response for response in responses if _final(response)]
            best, answer = await self._best(case, responses, policy)
            if answer.action is not Action.REGENERATE or attempt + 1 == policy.rounds:
                break
            request = _with_feedback(request, best, answer)
        if answer.action is Action.REGENERATE:
            # No attempt is left: what the policy cannot have, it does without.
            answer = await self._checked(case, _last(best).text, policy.settled())
        return await self._replaced(case, best, answer, policy)

    async def _best(
        self, case: Case, responses: Sequence[Response], policy: Policy
    ) -> tuple[Response, GuardedAnswer]:
        texts = [_last(response).text for response in responses]
        if len(texts) == 1:
            return responses[0], await self._checked(case, texts[0], policy)
        ranked = await traced(_asked(case, texts), case.rank(self._guard, texts, policy))
        return responses[ranked[0].index], ranked[0]

    async def _checked(self, case: Case, text: str, policy: Policy) -> GuardedAnswer:
        """Check one answer, under a run of its own for tracers."""

        async def check() -> list[GuardedAnswer]:
            return [await case.check(self._guard, text, policy)]

        return (await traced(_asked(case, [text]), check()))[0]

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

    async def _grounded(self, request: Request, question: str) -> Request:
        known = await self._guard.aretrieve(question=question)
        facts = known.relevant_text(question)
        if not facts:
            return request
        given = request.system_message.text + "\n\n" if request.system_message else ""
        text = f"{given}Facts from the knowledge graph that bear on the question:\n{facts}"
        return request.override(system_message=SystemMessage(content=text))


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


def _asked(case: Case, texts: Sequence[str]) -> list[Asked]:
    """Answers to check, for the tracers of the run that is in work."""
    config = _hidden_from_streams(ensure_config())
    return [Asked(config, case.question, text, case.evidence) for text in texts]


def _quietly(handler: SyncHandler, request: Request, config: RunnableConfig) -> Response:
    with set_config_context(_hidden_from_streams(config)) as context:
        return context.run(handler, request)


async def _in_own_thread(call: Callable[[], Response]) -> Response:
    """Run a blocking model call in a thread that no other call waits for.

    The loop's own pool is small, and a handler may come back here through a guarded model: calls
    that hold its last threads would wait for each other for ever.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Response] = loop.create_future()

    def tell(response: Response | None, error: BaseException | None) -> None:
        if done.done():  # the caller gave up
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast("Response", response))

    def run() -> None:
        try:
            response = context.run(call)
        except BaseException as error:
            loop.call_soon_threadsafe(tell, None, error)
        else:
            loop.call_soon_threadsafe(tell, response, None)

    context = copy_context()
    threading.Thread(target=run, name="guarded-model-call", daemon=True).start()
    return await done


def _final(response: Response) -> bool:
    """Whether a response ends in an answer, rather than a tool call or structured data."""
    return (
        response.structured_response is None
        and bool(response.result)
        and is_answer(response.result[-1])
    )


def _last(response: Response) -> AIMessage:
    return cast(AIMessage, response.result[-1])


def _with_feedback(request: Request, response: Response, answer: GuardedAnswer) -> Request:
    conversation: list[AnyMessage] = [
        *request.messages,
        # A message of its own, since the failed one must not enter the state.
        AIMessage(content=_last(response).text),
        HumanMessage(content=retry_message(answer)),
    ]
    return request.override(messages=conversation)
