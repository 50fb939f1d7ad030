"""A guardrail around any LangChain model, chain or Runnable that ends in a message or string."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, Unpack, cast

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.utils import Input, Output, gather_with_concurrency
from pydantic import ConfigDict, Field, PrivateAttr

from chains.check_run import traced_stream
from chains.chunks import Chunks, as_chunk
from chains.evidence.base import Case, Found, case_of
from chains.evidence.items import RequestField
from chains.evidence.langchain import EvidenceOf, chain_evidence, config_field
from chains.evidence.paths import value_at
from chains.evidence.steps import StepsSeen
from chains.guarded_run import GuardedRun, in_own_thread, result_or_error, sample_outputs
from chains.hidden_runs import hidden
from chains.injection import Inject, injected_prompt
from chains.inputs import question_of, with_retry, with_system
from chains.message_data import has_data, with_judged_data
from chains.messages import guarded_output
from chains.options import GuardFields, RunnableOptions
from chains.outputs import Path, answer_at, answer_path, with_answer
from chains.streaming import SentenceGate, guard_stream, guard_stream_sync
from chains.styles import StreamMode
from guardrail import Guardrail, GuardrailConfig, Policy
from guardrail.candidates import Attempt
from guardrail.engine.loop import run_sync

__all__ = ["GuardrailRunnable"]

_Manager = CallbackManagerForChainRun | AsyncCallbackManagerForChainRun
_Call = Callable[[object, int], Awaitable[list[Output]]]
"""Calls the Runnable with an input; it returns one output, or as many as are sampled."""


@dataclass(frozen=True)
class _Run:
    """One run of the guarded Runnable.

    Attributes:
        field: What the caller's config says of the guardrail.
        policy: What decides on its answers.
        config: To run with: hidden from streams.
        steps: Sees the steps inside.
    """

    field: RequestField
    policy: Policy
    config: RunnableConfig
    steps: StepsSeen

    @property
    def watched(self) -> RunnableConfig:
        """The config to run with, under which the steps are seen."""
        return self.steps.watching(self.config)


class GuardrailRunnable(RunnableSerializable[Input, Output], GuardFields):
    """Guards what another Runnable answers; a drop-in for it in any chain.

    The Runnable is run as often as the policy samples and retries, by ``n`` where it is a chat
    model that has it; the best answer comes back in the Runnable's own type. Text in a message
    that calls tools is judged as well, and left out where it is refused. Tool calls and outputs
    that are neither messages nor strings pass unchanged and are named in
    ``response_metadata["guardrail"]["unjudged"]``; a policy with ``structured`` judges both and
    withholds them whole: a message has no calls then, and data raise a ``WithheldError``.

    No unjudged answer leaves, neither in the output nor in events: handlers that stream a run's
    tokens to a consumer (``astream_events``, LangGraph's stream modes) are kept from the inner
    Runnable, while all other callbacks (tracers, loggers) see it, and each check as a run
    ``guardrail_check`` with question, answer, evidence and verdict.

    Args:
        guard: The guardrail.
        bound: What to guard.
        policy: A policy or its name; default ``STRICT``. A retry adds the rejected answer and what
            was wrong with it to the input's messages, or to its question.
        style: How markers look in the text: ``kalma``, ``footnotes`` or ``none``.
        stream_mode: ``sentence`` releases each sentence once it is judged, ``buffer`` waits for
            the whole answer; a policy that samples or retries always waits.
        inject: What the model is shown of the evidence that is known before it runs: ``off``,
            ``facts``, or ``prompt`` with KaLMA's instruction and demonstration. It goes into the
            system message, or before the question of an input without messages.
        question_key: Key of the question in a mapping input; found when None.
        answer_key: Key or dotted path of the answer in a mapping output. When None, the last
            message of the assistant in an agent's state is judged; of other mappings the usual
            keys are tried if ``evidence`` is named, else they pass as data.
        evidence: Where the documents are that the model was shown: a key or path in the chain's
            input or output or in what its steps pass on, or a function of its input. When None,
            what the chain's own retrievers found. A run may bring its own in
            ``config["metadata"]["guardrail"]["evidence"]``.
        evidence_mode: ``given`` takes that evidence in place of the graph, ``both`` adds the
            graph, ``graph`` takes the graph alone.
        tool_results: Whether tool messages in the input count as evidence.
        marks: Delimiters of marked evidence in messages, ``("<context>", "</context>")``.
        reasons: Whether refused and filtered answers carry their reasons.
        max_reply_bytes: Most bytes of a stream that are read, everything in it counted; more is an
            ``UnreadableReplyError``, as of ``guard_openai``.

    Raises:
        InputError: No answer stands at the ``answer_key`` that was named.

    Example:
        >>> guarded = GuardrailRunnable(Guardrail(), prompt | model)    # doctest: +SKIP
        >>> guarded.invoke({"question": "Who was Ada Lovelace?"})       # doctest: +SKIP
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    bound: Runnable[Input, Output]
    settings: GuardrailConfig
    question_key: str | None = Field(default=None)
    answer_key: str | None = None
    evidence: EvidenceOf | None = None
    _guard: Guardrail = PrivateAttr()

    def __init__(
        self,
        guard: Guardrail | None = None,
        bound: Runnable[Input, Output] | None = None,
        **fields: Unpack[RunnableOptions],
    ) -> None:
        # A runnable that is loaded from JSON brings its settings instead of a guardrail.
        settings = fields.pop("settings", None)
        if guard is None:
            guard = Guardrail(GuardrailConfig.model_validate(settings or {}))
        super().__init__(bound=bound, settings=guard.config, **fields)  # type: ignore[call-arg, misc]
        self._guard = guard
        guard.require(self.policy)

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Settings and the guarded Runnable can be written as JSON."""
        return True

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Where this class lives."""
        return ["chains", "runnable"]

    @property
    def lc_attributes(self) -> dict[str, object]:
        """Nested settings as plain JSON."""
        return {
            "settings": self.settings.model_dump(mode="json"),
            "policy": self.policy.model_dump(mode="json"),
            "style": self.style.value,
            "stream_mode": self.stream_mode.value,
            "evidence_mode": self.evidence_mode.value,
        }

    # --- single calls and batches --------------------------------------------------------

    def invoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Run the guarded Runnable and guard its answer."""
        return self._call_with_config(self._invoke, input, config, **kwargs)

    async def ainvoke(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """``invoke`` as a coroutine."""
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    def batch(
        self,
        inputs: list[Input],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any | None,
    ) -> list[Output]:
        """Run all inputs, then judge all answers together; a row that fails fails alone."""
        return self._batch_with_config(
            self._batch, inputs, config, return_exceptions=return_exceptions, **kwargs
        )

    async def abatch(
        self,
        inputs: list[Input],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any | None,
    ) -> list[Output]:
        """``batch`` as a coroutine."""
        return await self._abatch_with_config(
            self._abatch, inputs, config, return_exceptions=return_exceptions, **kwargs
        )

    def _invoke(
        self,
        value: Input,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: object,
    ) -> Output:
        run = self._run(config, run_manager)
        value = run_sync(self._prepared(value, run))
        # The first call stays in the caller's thread, which its resources may be bound to.
        outputs = self._outputs(value, run, run.policy.samples, kwargs)
        return run_sync(self._guarded(value, run, self._in_thread(run, kwargs), outputs))

    async def _ainvoke(
        self,
        value: Input,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: object,
    ) -> Output:
        run = self._run(config, run_manager)
        value = await self._prepared(value, run)
        return await self._guarded(value, run, partial(self._aoutputs, run, kwargs))

    def _batch(
        self,
        values: list[Input],
        run_manager: list[CallbackManagerForChainRun],
        config: list[RunnableConfig],
        **kwargs: object,
    ) -> list[Exception | Output]:
        runs = list(map(self._run, config, run_manager))
        watched = [run.watched for run in runs]
        values = [run_sync(self._prepared(*pair)) for pair in zip(values, runs, strict=True)]
        outputs = self.bound.batch(values, watched, return_exceptions=True, **kwargs)
        calls = [self._in_thread(run, kwargs) for run in runs]
        return run_sync(self._guarded_rows(values, runs, calls, outputs))

    async def _abatch(
        self,
        values: list[Input],
        run_manager: list[AsyncCallbackManagerForChainRun],
        config: list[RunnableConfig],
        **kwargs: object,
    ) -> list[Exception | Output]:
        runs = list(map(self._run, config, run_manager))
        watched = [run.watched for run in runs]
        values = [await self._prepared(*pair) for pair in zip(values, runs, strict=True)]
        outputs = await self.bound.abatch(values, watched, return_exceptions=True, **kwargs)
        calls: list[_Call[Output]] = [partial(self._aoutputs, run, kwargs) for run in runs]
        return await self._guarded_rows(values, runs, calls, outputs)

    def _run(self, config: RunnableConfig, run: _Manager) -> _Run:
        field = config_field(config)
        policy = field.chosen_policy(self.policy) if field.changes_policy else self.policy
        path = self.evidence if isinstance(self.evidence, str) else None
        return _Run(field, policy, hidden(config, run.get_child()), StepsSeen(path))

    async def _prepared(self, value: Input, run: _Run) -> Input:
        """The input with the facts for the model; messages where the model wants them."""
        changed = run.policy.resamples or self.inject is not Inject.OFF
        if changed and isinstance(value, str) and isinstance(self.bound, BaseChatModel):
            value = cast("Input", [HumanMessage(value)])
        if self.inject is Inject.OFF:
            return value
        there = not isinstance(self.evidence, str) or value_at(value, self.evidence)[1]
        place = self.evidence if there else None
        found = chain_evidence(place, value, None, run.field, self.places)
        case = await self._settled(value, found)
        text = await injected_prompt(self._guard, case.question, case.evidence, self.inject)
        return cast("Input", with_system(value, text, self.question_key))

    def _outputs(
        self, value: object, run: _Run, samples: int, kwargs: dict[str, object]
    ) -> list[Output]:
        """Outputs of one call: as many as are sampled where the model has ``n``, else one."""
        if samples > 1 and (model := _with_n(self.bound)) is not None:
            options = _model_options(run.watched, samples, kwargs)
            return cast(
                "list[Output]", _messages(model.generate_prompt([_prompt(value)], **options))
            )
        return [self.bound.invoke(cast("Input", value), run.watched, **kwargs)]

    async def _aoutputs(
        self, run: _Run, kwargs: dict[str, object], value: object, samples: int
    ) -> list[Output]:
        if samples > 1 and (model := _with_n(self.bound)) is not None:
            options = _model_options(run.watched, samples, kwargs)
            result = await model.agenerate_prompt([_prompt(value)], **options)
            return cast("list[Output]", _messages(result))
        return [await self.bound.ainvoke(cast("Input", value), run.watched, **kwargs)]

    def _in_thread(self, run: _Run, kwargs: dict[str, object]) -> _Call[Output]:
        async def call(value: object, samples: int) -> list[Output]:
            return await in_own_thread(partial(self._outputs, value, run, samples, kwargs))

        return call

    async def _guarded_rows(
        self,
        values: Sequence[Input],
        runs: Sequence[_Run],
        calls: Sequence[_Call[Output]],
        outputs: Sequence[Output | Exception],
    ) -> list[Exception | Output]:
        """Guard the outputs of a batch at the same time; a row that fails has its own error."""

        async def row(place: int) -> Exception | Output:
            output = outputs[place]
            if isinstance(output, Exception):
                return output
            return await result_or_error(
                self._guarded(values[place], runs[place], calls[place], [output])
            )

        most = runs[0].config.get("max_concurrency") if runs else None
        return await gather_with_concurrency(most, *map(row, range(len(values))))

    async def _guarded(
        self,
        value: Input,
        run: _Run,
        call: _Call[Output],
        outputs: Sequence[Output] = (),
    ) -> Output:
        """Run the candidate loop; ``outputs`` are there already."""
        first = list(outputs)

        async def sample(attempt: Attempt) -> Sequence[Output]:
            given = with_retry(value, attempt, self.question_key)
            there, first[:] = list(first), []
            return await sample_outputs(
                partial(call, given), self._said(run), attempt.samples, there
            )

        best = await GuardedRun.best(
            self._guard,
            sample,
            self._said(run),
            lambda outputs: self._case(value, run, outputs),
            run.policy,
            run.config,
        )
        output = best.output
        path = self._path(output, run)
        said = answer_at(output, path)
        case = best.case
        if best.answer is not None:
            said = guarded_output(said, best.answer, self.style, reasons=self.reasons)
        if case is None and has_data(said, run.policy):
            case = await self._case(value, run, [output])
        said = await with_judged_data(self._guard, run.policy, case, said)
        return cast("Output", with_answer(output, path, said))

    def _path(self, output: object, run: _Run) -> Path:
        guess = self.evidence is not None
        return answer_path(output, self.answer_key, guess=guess, data=run.policy.structured)

    def _said(self, run: _Run) -> Callable[[object], object]:
        return lambda output: answer_at(output, self._path(output, run))

    async def _case(self, value: object, run: _Run, outputs: Sequence[object]) -> Case:
        """What the answers of one run are judged against."""
        found = Found()
        for output in outputs:
            found |= chain_evidence(self.evidence, value, output, run.field, self.places, run.steps)
        return await self._settled(value, found)

    async def _settled(self, value: object, found: Found) -> Case:
        question = question_of(value, self.question_key, self.places)
        return await case_of(self._guard, question, found, self.evidence_mode)

    # --- streams -------------------------------------------------------------------------

    def stream(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: object
    ) -> Iterator[Output]:
        """Stream the answer, each piece judged before it leaves."""
        yield from self.transform(iter([input]), config, **kwargs)

    async def astream(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: object
    ) -> AsyncIterator[Output]:
        """``stream`` as an asynchronous iterator."""
        async for piece in self.atransform(_once(input), config, **kwargs):
            yield piece

    def transform(
        self, input: Iterator[Input], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Output]:
        """Gather a streamed input, then stream the guarded answer to it."""
        yield from self._transform_stream_with_config(input, self._transform, config, **kwargs)

    async def atransform(
        self,
        input: AsyncIterator[Input],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Output]:
        """``transform`` as an asynchronous iterator."""
        async for piece in self._atransform_stream_with_config(
            input, self._atransform, config, **kwargs
        ):
            yield piece

    def _transform(
        self,
        pieces: Iterator[Input],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: object,
    ) -> Iterator[Output]:
        run = self._run(config, run_manager)
        value = run_sync(self._prepared(reduce(add, pieces), run))
        call = self._in_thread(run, kwargs)
        if run.policy.resamples:
            outputs = self._outputs(value, run, run.policy.samples, kwargs)
            yield self._chunk(run_sync(self._guarded(value, run, call, outputs)), run)
            return
        chunks = self._chunks()
        texts = map(chunks.take, self.bound.stream(value, run.watched, **kwargs))
        for release in guard_stream_sync(self._gate(value, run, chunks), texts):
            if release.answer is not None:
                run_sync(traced_stream(run.config, release.answer))
            if (piece := chunks.piece(release)) is not None:
                yield cast("Output", piece)
        if (rest := run_sync(self._rest(value, run, chunks, call))) is not None:
            yield rest

    async def _atransform(
        self,
        pieces: AsyncIterator[Input],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: object,
    ) -> AsyncIterator[Output]:
        run = self._run(config, run_manager)
        value = await self._prepared(reduce(add, [piece async for piece in pieces]), run)
        call = partial(self._aoutputs, run, kwargs)
        if run.policy.resamples:
            yield self._chunk(await self._guarded(value, run, call), run)
            return
        chunks = self._chunks()
        watched = self.bound.astream(value, run.watched, **kwargs)
        texts = (chunks.take(chunk) async for chunk in watched)
        async for release in guard_stream(self._gate(value, run, chunks), texts):
            if release.answer is not None:
                await traced_stream(run.config, release.answer)
            if (piece := chunks.piece(release)) is not None:
                yield cast("Output", piece)
        if (rest := await self._rest(value, run, chunks, call)) is not None:
            yield rest

    async def _rest(
        self, value: Input, run: _Run, chunks: Chunks, call: _Call[Output]
    ) -> Output | None:
        """What leaves at the end of a stream: verdict and tool calls, or data."""
        if chunks.whole is None:
            return None
        if not chunks.spoken:  # nothing of it has left: it is judged like a whole output
            output = await self._guarded(value, run, call, [cast("Output", chunks.whole)])
            return self._chunk(output, run)
        case = None
        if has_data(chunks.said, run.policy):
            case = await self._case(value, run, [chunks.whole])
        chunks.end(await with_judged_data(self._guard, run.policy, case, chunks.said))
        return cast("Output", chunks.rest())

    def _chunks(self) -> Chunks:
        guess = self.evidence is not None
        return Chunks(
            self.answer_key, guess=guess, reasons=self.reasons, most_bytes=self.max_reply_bytes
        )

    def _chunk(self, output: object, run: _Run) -> Output:
        return cast("Output", as_chunk(output, self._path(output, run)))

    def _gate(self, value: Input, run: _Run, chunks: Chunks) -> SentenceGate:
        def mode() -> StreamMode:
            # Evidence that comes with the output is there for sure only at its end.
            there = not isinstance(self.evidence, str) or value_at(value, self.evidence)[1]
            return self.stream_mode if there or run.steps.value[1] else StreamMode.BUFFER

        return SentenceGate(
            self._guard,
            lambda: self._case(value, run, [chunks.whole]),
            policy=run.policy,
            mode=mode,
            style=self.style,
        )


def _with_n(bound: object) -> BaseChatModel | None:
    """The chat model that samples several answers in one call; None for any other Runnable."""
    known = isinstance(bound, BaseChatModel) and "n" in type(bound).model_fields
    return cast("BaseChatModel", bound) if known else None


def _model_options(
    config: RunnableConfig, samples: int, kwargs: dict[str, object]
) -> dict[str, Any]:
    names = ("callbacks", "tags", "metadata", "run_name")
    return {name: config.get(name) for name in names} | {"n": samples} | kwargs


def _prompt(value: object) -> PromptValue:
    if isinstance(value, PromptValue):
        return value
    messages = [value] if isinstance(value, BaseMessage) else cast("Sequence[Any]", value)
    return ChatPromptValue(messages=convert_to_messages(messages))


def _messages(result: LLMResult) -> list[BaseMessage]:
    return [cast("ChatGeneration", item).message for item in result.generations[0]]


async def _once(value: Input) -> AsyncIterator[Input]:
    yield value
