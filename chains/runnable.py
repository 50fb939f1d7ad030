"""A guardrail round any LangChain model, chain or Runnable that ends in a message or string."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple, Unpack, cast

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.utils import Input, Output, gather_with_concurrency
from pydantic import ConfigDict, Field, PrivateAttr

from chains.batch import Result, Row, check_rows, result_or_error
from chains.check_run import traced_stream
from chains.chunks import Chunks
from chains.evidence.base import Case, EvidenceSettings, case_of
from chains.evidence.langchain import EvidenceOf, chain_evidence, config_field
from chains.evidence.paths import value_at
from chains.evidence.steps import StepsSeen
from chains.hidden_runs import hidden
from chains.message_data import has_data, with_judged_data
from chains.messages import (
    ANSWER_KEYS,
    answer_at,
    answer_key,
    guarded_output,
    has_text,
    question_of,
    with_answer,
)
from chains.options import GuardingFields, RunnableOptions
from chains.streaming import SentenceGate, guard_stream, guard_stream_sync
from chains.styles import StreamMode
from guardrail import Guardrail, GuardrailConfig, run_sync

__all__ = ["GuardrailRunnable"]

_Run = CallbackManagerForChainRun | AsyncCallbackManagerForChainRun


class _Inner(NamedTuple):
    """A run of the guarded Runnable: its config, hidden from streams, and what sees it inside."""

    config: RunnableConfig
    steps: StepsSeen

    @property
    def watched(self) -> RunnableConfig:
        """The config to run with."""
        return self.steps.watching(self.config)


class GuardrailRunnable(RunnableSerializable[Input, Output], GuardingFields):
    """Guards what another Runnable answers; a drop-in for it in any chain.

    Text beside a tool call is judged as any other, and left out where it is refused. Tool calls
    and outputs that are neither messages nor strings pass as they are, and
    ``response_metadata["guardrail"]["unjudged"]`` names calls; under a policy that says
    ``structured`` both are judged, and withheld whole: a message has no calls then, and data are a
    ``WithheldError``. No unjudged answer leaves, neither in the output nor in events: handlers
    that stream a run's
    tokens to a consumer (``astream_events``, LangGraph's stream modes) are kept from the inner
    Runnable, while all other callbacks (tracers, loggers) still see it, and the check beside it as
    a run ``guardrail_check`` with question, answer, evidence and verdict.

    Args:
        guard: The guardrail.
        bound: What to guard.
        policy: A policy or its name; ``STRICT`` unless told.
        style: How markers look in the text: ``kalma``, ``footnotes`` or ``none``.
        stream_mode: ``sentence`` releases each sentence once it is judged, ``buffer`` waits for
            the whole answer.
        question_key: Where the question stands in a mapping input; found when None.
        answer_key: Where the answer stands in a mapping output; found when None and ``evidence``
            is named, else mappings pass as data.
        evidence: Where the documents stand that the model was shown: a key or path of the chain's
            input or output or of what its steps hand on, or a function of its input. When None,
            what the chain's own retrievers found. A run may hand over its own in
            ``config["metadata"]["guardrail"]["evidence"]``.
        evidence_mode: ``given`` takes what was handed over in place of the graph, ``both`` beside
            it, ``graph`` the graph alone.
        tool_results: Whether tool messages in the input count as evidence.
        marks: Delimiters of a marked stretch in messages, ``("<context>", "</context>")``.
        reasons: Whether refused and filtered answers carry their reasons.
        max_reply_bytes: Most bytes of a stream that are read, with what stands beside the answer;
            more is an ``UnreadableReplyError``, as of ``guard_openai``.

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
        inner = self._inner(config, run_manager)
        output = self.bound.invoke(value, inner.watched, **kwargs)
        return _returned(run_sync(self._guarded([value], [output], [inner]))[0])

    async def _ainvoke(
        self,
        value: Input,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: object,
    ) -> Output:
        inner = self._inner(config, run_manager)
        output = await self.bound.ainvoke(value, inner.watched, **kwargs)
        return _returned((await self._guarded([value], [output], [inner]))[0])

    def _batch(
        self,
        values: list[Input],
        run_manager: list[CallbackManagerForChainRun],
        config: list[RunnableConfig],
        **kwargs: object,
    ) -> list[Exception | Output]:
        runs = list(map(self._inner, config, run_manager))
        watched = [run.watched for run in runs]
        outputs = self.bound.batch(values, watched, return_exceptions=True, **kwargs)
        return run_sync(self._guarded(values, outputs, runs))

    async def _abatch(
        self,
        values: list[Input],
        run_manager: list[AsyncCallbackManagerForChainRun],
        config: list[RunnableConfig],
        **kwargs: object,
    ) -> list[Exception | Output]:
        runs = list(map(self._inner, config, run_manager))
        watched = [run.watched for run in runs]
        outputs = await self.bound.abatch(values, watched, return_exceptions=True, **kwargs)
        return await self._guarded(values, outputs, runs)

    def _inner(self, config: RunnableConfig, run: _Run) -> _Inner:
        path = self.evidence if isinstance(self.evidence, str) else None
        return _Inner(hidden(config, run.get_child()), StepsSeen(path))

    async def _guarded(
        self, values: Sequence[Input], outputs: Sequence[Output], runs: Sequence[_Inner]
    ) -> list[Exception | Output]:
        """Guard those outputs that have text, in one batch; the others stay as they are.

        The error of a row stands in the place of its output.
        """
        keys = [answer_key(output, self._answer_keys()) for output in outputs]
        answers = [answer_at(*found) for found in zip(outputs, keys, strict=True)]
        wanted = (has_text(answer) or has_data(answer, self.policy) for answer in answers)
        places = [place for place, judged in enumerate(wanted) if judged]
        found = await gather_with_concurrency(
            runs[0].config.get("max_concurrency") if runs else None,
            *(result_or_error(self._case(values[at], outputs[at], *runs[at])) for at in places),
        )
        result: list[object] = list(outputs)
        for place, case in zip(places, found, strict=True):
            result[place] = result[place] if isinstance(case, Case) else case
        cases = {at: case for at, case in zip(places, found, strict=True) if isinstance(case, Case)}
        rows = [
            Row(place, answers[place], case, runs[place].config)
            for place, case in cases.items()
            if has_text(answers[place])
        ]
        checked = await check_rows(self._guard, rows, self.policy)
        for (place, answer, _, _), verdict in zip(rows, checked, strict=True):
            if isinstance(verdict, Exception):
                result[place] = verdict
                continue
            guarded = guarded_output(answer, verdict, self.style, reasons=self.reasons)
            result[place] = with_answer(outputs[place], keys[place], guarded)
        ended = (
            result_or_error(self._with_data(output, keys[place], cases.get(place)))
            for place, output in enumerate(result)
        )
        return await asyncio.gather(*ended)

    async def _with_data(self, output: object, key: str | None, case: Case | None) -> Output:
        """An output whose text is judged, with what is told of its calls, or of it as data."""
        said = answer_at(output, key)
        judged = await with_judged_data(self._guard, self.policy, case, said)
        return cast("Output", with_answer(output, key, judged))

    async def _case(
        self, value: object, output: object, config: RunnableConfig, steps: StepsSeen
    ) -> Case:
        """What one run's answer is judged against."""
        places = EvidenceSettings(
            mode=self.evidence_mode, tools=self.tool_results, marks=self.marks
        )
        field = config_field(config)
        found = chain_evidence(self.evidence, value, output, field, places, steps)
        policy = field.chosen_policy(self.policy) if field.changes_policy else None
        question = question_of(value, self.question_key, places)
        return await case_of(self._guard, question, found, places.mode, policy)

    def _answer_keys(self) -> tuple[str, ...]:
        """Keys of a mapping output under which the answer may stand."""
        if self.answer_key is not None:
            return (self.answer_key,)
        return ANSWER_KEYS if self.evidence is not None else ()

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
        value = reduce(add, pieces)
        chunks = Chunks(self._answer_keys(), reasons=self.reasons, most_bytes=self.max_reply_bytes)
        inner = self._inner(config, run_manager)
        texts = (chunks.take(chunk) for chunk in self.bound.stream(value, inner.watched, **kwargs))
        for release in guard_stream_sync(self._gate(value, config, chunks, inner.steps), texts):
            if release.answer is not None:
                run_sync(traced_stream(inner.config, release.answer))
            if (piece := chunks.piece(release)) is not None:
                yield cast("Output", piece)
        run_sync(self._judge_rest(value, config, chunks, inner.steps))
        if (rest := chunks.rest()) is not None:
            yield cast("Output", rest)

    async def _atransform(
        self,
        pieces: AsyncIterator[Input],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: object,
    ) -> AsyncIterator[Output]:
        value = reduce(add, [piece async for piece in pieces])
        chunks = Chunks(self._answer_keys(), reasons=self.reasons, most_bytes=self.max_reply_bytes)
        inner = self._inner(config, run_manager)
        watched = self.bound.astream(value, inner.watched, **kwargs)
        texts = (chunks.take(chunk) async for chunk in watched)
        async for release in guard_stream(self._gate(value, config, chunks, inner.steps), texts):
            if release.answer is not None:
                await traced_stream(inner.config, release.answer)
            if (piece := chunks.piece(release)) is not None:
                yield cast("Output", piece)
        await self._judge_rest(value, config, chunks, inner.steps)
        if (rest := chunks.rest()) is not None:
            yield cast("Output", rest)

    async def _judge_rest(
        self, value: Input, config: RunnableConfig, chunks: Chunks, steps: StepsSeen
    ) -> None:
        """Judge the calls of tools, or the data, that leave at the end of a stream."""
        case = None
        if has_data(chunks.said, self.policy):
            case = await self._case(value, chunks.whole, config, steps)
        chunks.end(await with_judged_data(self._guard, self.policy, case, chunks.said))

    def _gate(
        self, value: Input, config: RunnableConfig, chunks: Chunks, steps: StepsSeen
    ) -> SentenceGate:
        def mode() -> StreamMode:
            # Evidence that comes with the output is there for sure only at its end.
            there = not isinstance(self.evidence, str) or value_at(value, self.evidence)[1]
            return self.stream_mode if there or steps.value[1] else StreamMode.BUFFER

        return SentenceGate(
            self._guard,
            lambda: self._case(value, chunks.whole, config, steps),
            policy=self.policy,
            mode=mode,
            style=self.style,
        )


def _returned(result: Exception | Result) -> Result:
    """The output of a single run.

    Raises:
        Exception: It has failed.
    """
    if isinstance(result, Exception):
        raise result
    return result


async def _once(value: Input) -> AsyncIterator[Input]:
    yield value
