"""A guardrail around any LangChain model, chain or Runnable that returns a message or a string."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    BaseCallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.utils import Input, Output
from pydantic import ConfigDict, PrivateAttr

from chains.evidence.base import Case, Found, RequestField, case_of
from chains.evidence.langchain import (
    EvidencePlace,
    StepsSeen,
    chain_evidence,
    config_field,
    value_at,
)
from chains.guarded_run import (
    GuardFields,
    RunnableOptions,
    hidden,
    in_own_thread,
    run_guarded,
    trace_checks,
)
from chains.messages import (
    Chunks,
    WithheldError,
    as_chunk,
    documents_in,
    guarded_message,
    message_with,
)
from chains.options import Inject, StreamMode, injected_prompt
from chains.payloads import (
    Path,
    answer_at,
    answer_path,
    question_of,
    with_answer,
    with_retry,
    with_system,
)
from chains.rendering import render
from chains.streaming import Release, SentenceGate, guard_stream, guard_stream_sync
from chains.structured import judge_documents
from guardrail import GuardedAnswer, Guardrail, Policy
from guardrail.candidates import Attempt
from guardrail.core.workers import run_sync


@dataclass(frozen=True)
class _Run:
    """One run of the guarded Runnable."""

    field: RequestField  # the guardrail's part of the caller's config
    policy: Policy
    config: RunnableConfig  # of inner runs, hidden from streams
    steps: StepsSeen
    kwargs: dict[str, object]

    @property
    def watched(self) -> RunnableConfig:
        """The config under which the steps are seen."""
        return self.steps.watching(self.config)


_Call = Callable[[_Run, object, int], Awaitable[list[Output]]]
"""Calls the Runnable with an input; returns one output, or as many as are sampled."""


class GuardrailRunnable(RunnableSerializable[Input, Output], GuardFields):
    """Guards the answers of another Runnable; a drop-in for it in any chain.

    The Runnable runs as often as the policy samples and retries (with ``n``, where it is a chat
    model that supports it); the best answer comes back in the Runnable's own type. Text in a
    message that calls tools is judged as well, and left out if it is refused. Tool calls and
    outputs that are neither messages nor strings pass unchanged and are listed in
    ``response_metadata["guardrail"]["unjudged"]``; a policy with ``structured`` judges both and
    withholds them whole: the message then has no calls, and data raise a ``WithheldError``.

    No unjudged answer leaves, neither in the output nor in events: handlers that stream a run's
    tokens to a consumer (``astream_events``, LangGraph's stream modes) do not see the inner
    Runnable. All other callbacks (tracers, loggers) see it, and each check as a run
    ``guardrail_check`` with question, answer, evidence and verdict.

    Args:
        guard: The guardrail.
        bound: The Runnable to guard.
        policy: A policy or its name; default ``STRICT``. A retry adds the rejected answer and its
            faults to the input's messages, or to its question.
        style: How markers look in the text: ``footnotes``, ``kalma`` or ``none``.
        stream_mode: ``sentence`` releases each sentence once it is judged, ``buffer`` waits for
            the whole answer; a policy that samples or retries always waits.
        inject: Evidence to show the model before it runs: ``off``, ``facts``, or ``prompt`` with
            KaLMA's instruction and demonstration. It goes into the system message, or before the
            question of an input without messages.
        question_key: Key of the question in a mapping input; None to look for it.
        answer_key: Key or dotted path of the answer in a mapping output. If None, the assistant's
            last message in an agent's state is judged; the usual keys of other mappings are tried
            if ``evidence`` is given, else mappings pass as data.
        evidence: Where to find the documents that the model saw: a key or path in the chain's
            input, output or steps, or a function of its input. If None, the documents that the
            chain's own retrievers found. A run may bring its own in
            ``config["metadata"]["guardrail"]["evidence"]``.
        evidence_mode: ``given`` uses that evidence, ``graph`` what the guardrail's settings name
            (graph, retriever or files), ``both`` uses both.
        tool_results: Whether tool messages in the input count as evidence.
        marks: Delimiters of marked evidence in messages, ``("<context>", "</context>")``.
        reasons: Whether refused and filtered answers carry their reasons.
        max_reply_bytes: Maximum size of a stream, everything in it counted; a larger one raises an
            ``UnreadableReplyError``.

    Raises:
        InputError: There is no answer at the given ``answer_key``.

    Example:
        >>> guarded = GuardrailRunnable(Guardrail(), prompt | model)    # doctest: +SKIP
        >>> guarded.invoke({"question": "Who was Ada Lovelace?"})       # doctest: +SKIP
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    bound: Runnable[Input, Output]
    question_key: str | None = None
    answer_key: str | None = None
    evidence: EvidencePlace | None = None
    _guard: Guardrail = PrivateAttr()

    def __init__(
        self, guard: Guardrail, bound: Runnable[Input, Output], **fields: Unpack[RunnableOptions]
    ) -> None:
        super().__init__(bound=bound, **fields)  # type: ignore[call-arg, misc]
        self._guard = guard
        guard.require(self.policy)

    # --- single calls ----------------------------------------------------------------------

    def invoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Run the guarded Runnable and guard its answer."""
        return self._call_with_config(self._invoke, input, config, **kwargs)

    async def ainvoke(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """``invoke`` as a coroutine."""
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    def _invoke(
        self,
        value: Input,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: object,
    ) -> Output:
        run = self._run(config, run_manager.get_child(), kwargs)
        value = run_sync(self._prepare(value, run))
        return self._run_guarded_sync(value, run)

    async def _ainvoke(
        self,
        value: Input,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: object,
    ) -> Output:
        run = self._run(config, run_manager.get_child(), kwargs)
        value = await self._prepare(value, run)
        return await self._run_guarded(value, run, self._aoutputs)

    def _run(
        self, config: RunnableConfig, callbacks: BaseCallbackManager, kwargs: dict[str, object]
    ) -> _Run:
        field = config_field(config)
        path = self.evidence if isinstance(self.evidence, str) else None
        inner = hidden(config, callbacks)
        return _Run(field, field.chosen_policy(self.policy), inner, StepsSeen(path), kwargs)

    async def _prepare(self, value: Input, run: _Run) -> Input:
        """The input with the facts for the model; messages where a retry must be added."""
        changed = run.policy.resamples or self.inject is not Inject.OFF
        if changed and isinstance(value, str) and isinstance(self.bound, BaseChatModel):
            value = cast("Input", [HumanMessage(value)])
        if self.inject is Inject.OFF:
            return value
        place = self.evidence if self._known_before(value) else None
        found = chain_evidence(place, value, None, run.field, self.places)
        case = await self._case_of(value, found)
        text = await injected_prompt(self._guard, case.question, case.evidence, self.inject)
        return cast("Input", with_system(value, text, self.question_key))

    def _known_before(self, value: object) -> bool:
        """True if the place of the evidence is known before the chain has run."""
        return not isinstance(self.evidence, str) or value_at(value, self.evidence)[1]

    def _outputs(self, run: _Run, value: object, samples: int) -> list[Output]:
        """The outputs of one call: as many as are sampled if the model takes ``n``, else one."""
        if samples > 1 and (model := self._model_with_n()) is not None:
            prompt = model._convert_input(cast("Any", value))
            try:
                return _messages(model.generate_prompt([prompt], **_model_options(run, samples)))
            except Exception as error:
                if not _refuses_n(error):
                    raise
        return [self.bound.invoke(cast("Input", value), run.watched, **run.kwargs)]

    async def _aoutputs(self, run: _Run, value: object, samples: int) -> list[Output]:
        if samples > 1 and (model := self._model_with_n()) is not None:
            prompt = model._convert_input(cast("Any", value))
            options = _model_options(run, samples)
            try:
                return _messages(await model.agenerate_prompt([prompt], **options))
            except Exception as error:
                if not _refuses_n(error):
                    raise
        return [await self.bound.ainvoke(cast("Input", value), run.watched, **run.kwargs)]

    async def _in_thread(self, run: _Run, value: object, samples: int) -> list[Output]:
        return await in_own_thread(partial(self._outputs, run, value, samples))

    def _run_guarded_sync(self, value: Input, run: _Run) -> Output:
        # The caller's thread makes the first call: resources of the Runnable may be bound to it.
        first = self._outputs(run, value, run.policy.samples)
        return run_sync(self._run_guarded(value, run, self._in_thread, first))

    def _model_with_n(self) -> BaseChatModel | None:
        """The chat model that samples several answers in one call; None for any other Runnable."""
        bound: object = self.bound
        known = isinstance(bound, BaseChatModel) and "n" in type(bound).model_fields
        return cast("BaseChatModel", bound) if known else None

    async def _run_guarded(
        self, value: Input, run: _Run, call: _Call[Output], first: Sequence[object] = ()
    ) -> Output:
        """Run the candidate loop; ``first`` are outputs that exist already."""

        async def again(attempt: Attempt, samples: int) -> list[Output]:
            return await call(run, with_retry(value, attempt, self.question_key), samples)

        def answer(output: object) -> object:
            return answer_at(output, self._path(output, run))

        output, verdict, case = await run_guarded(
            self._guard,
            again,
            answer,
            lambda outputs: self._case(value, run, outputs),
            run.policy,
            run.config,
            cast("Sequence[Output]", first),
        )
        path = self._path(output, run)
        result = answer_at(output, path)
        if verdict is not None and isinstance(result, AIMessage):
            result = guarded_message(result, verdict, self.style, reasons=self.reasons)
        elif verdict is not None:
            result = render(verdict, self.style).text
        result = await self._judge_data(value, run, output, result, case)
        return cast("Output", with_answer(output, path, result))

    async def _judge_data(
        self, value: object, run: _Run, output: object, result: object, case: Case | None = None
    ) -> object:
        """The result with its tool calls or data judged, if the policy says ``structured``.

        A message's metadata hold the verdicts, and the names of everything without one.

        Raises:
            WithheldError: The output is data, and the policy withholds part of it.
        """
        documents = documents_in(result, run.policy)
        if case is None and documents and run.policy.structured:
            case = await self._case(value, run, [output])
        verdicts = await judge_documents(self._guard, run.policy, case, documents)
        if isinstance(result, AIMessage):
            return message_with(result, verdicts, run.policy)
        if verdicts.withheld:
            raise WithheldError(run.policy.refusal)
        return result

    def _path(self, output: object, run: _Run) -> Path:
        guess = self.evidence is not None
        return answer_path(output, self.answer_key, guess=guess, data=run.policy.structured)

    async def _case(self, value: object, run: _Run, outputs: Sequence[object]) -> Case:
        """Question and evidence for the answers of one run."""
        found = Found()
        for output in outputs:
            found |= chain_evidence(self.evidence, value, output, run.field, self.places, run.steps)
        return await self._case_of(value, found)

    async def _case_of(self, value: object, found: Found) -> Case:
        question = question_of(value, self.question_key, self.places)
        return await case_of(self._guard, question, found, self.evidence_mode)

    # --- streams ---------------------------------------------------------------------------

    def stream(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Output]:
        """Stream the answer, each piece judged before it leaves."""
        pieces = iter([input])
        yield from self._transform_stream_with_config(pieces, self._guard_stream, config, **kwargs)

    async def astream(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Output]:
        """``stream`` as an asynchronous iterator."""

        async def once() -> AsyncIterator[Input]:
            yield input

        async for piece in self._atransform_stream_with_config(
            once(), self._aguard_stream, config, **kwargs
        ):
            yield piece

    def _guard_stream(
        self,
        pieces: Iterator[Input],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: object,
    ) -> Iterator[Output]:
        run = self._run(config, run_manager.get_child(), kwargs)
        value = run_sync(self._prepare(next(pieces), run))
        if run.policy.resamples:
            output = self._run_guarded_sync(value, run)
            yield cast("Output", as_chunk(output, self._path(output, run)))
            return
        chunks = self._chunks()
        texts = map(chunks.take, self.bound.stream(value, run.watched, **kwargs))
        for release in guard_stream_sync(self._gate(value, run, chunks), texts):
            run_sync(_trace(run, release))
            if (piece := chunks.piece(release)) is not None:
                yield cast("Output", piece)
        if (rest := run_sync(self._rest(value, run, chunks, self._in_thread))) is not None:
            yield rest

    async def _aguard_stream(
        self,
        pieces: AsyncIterator[Input],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: object,
    ) -> AsyncIterator[Output]:
        run = self._run(config, run_manager.get_child(), kwargs)
        value = await self._prepare(await anext(pieces), run)
        if run.policy.resamples:
            output = await self._run_guarded(value, run, self._aoutputs)
            yield cast("Output", as_chunk(output, self._path(output, run)))
            return
        chunks = self._chunks()
        watched = self.bound.astream(value, run.watched, **kwargs)
        texts = (chunks.take(chunk) async for chunk in watched)
        async for release in guard_stream(self._gate(value, run, chunks), texts):
            await _trace(run, release)
            if (piece := chunks.piece(release)) is not None:
                yield cast("Output", piece)
        if (rest := await self._rest(value, run, chunks, self._aoutputs)) is not None:
            yield rest

    async def _rest(
        self, value: Input, run: _Run, chunks: Chunks, call: _Call[Output]
    ) -> Output | None:
        """The end of a stream: verdict and tool calls, or data."""
        if chunks.whole is None:
            return None
        if not chunks.has_text:  # nothing of it has left: it is judged like a whole output
            output = await self._run_guarded(value, run, call, [cast("Output", chunks.whole)])
            return cast("Output", as_chunk(output, self._path(output, run)))
        judged = await self._judge_data(value, run, chunks.whole, chunks.answer)
        return cast("Output", chunks.rest(judged))

    def _chunks(self) -> Chunks:
        guess = self.evidence is not None
        return Chunks(
            self.answer_key, guess=guess, reasons=self.reasons, most_bytes=self.max_reply_bytes
        )

    def _gate(self, value: Input, run: _Run, chunks: Chunks) -> SentenceGate:
        def mode() -> StreamMode:
            # Evidence that comes with the output is complete only at its end.
            known = self._known_before(value) or run.steps.value[1]
            return self.stream_mode if known and not run.policy.waits else StreamMode.BUFFER

        return SentenceGate(
            self._guard,
            lambda: self._case(value, run, [chunks.whole]),
            policy=run.policy,
            mode=mode,
            style=self.style,
        )


async def _trace(run: _Run, release: Release) -> None:
    """Show the check of a streamed answer to tracers, once all of it has been judged."""
    if (answer := release.answer) is None:
        return

    async def judged() -> Sequence[GuardedAnswer]:
        return [answer]

    text = answer.text if answer.original is None else answer.original
    await trace_checks(run.config, Case(answer.question, answer.evidence), [text], judged())


def _refuses_n(error: Exception) -> bool:
    """True for HTTP 400 of any client: llama.cpp takes no ``n`` above its number of slots."""
    return getattr(error, "status_code", None) == 400


def _model_options(run: _Run, samples: int) -> dict[str, Any]:
    config, names = run.watched, ("callbacks", "tags", "metadata", "run_name")
    return {name: config.get(name) for name in names} | {"n": samples} | run.kwargs


def _messages(result: LLMResult) -> list[Output]:
    return [cast("Output", cast("ChatGeneration", item).message) for item in result.generations[0]]
