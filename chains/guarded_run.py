"""The core of the Runnable, the chat model and the agent middleware: options, loop and traces."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Literal, TypedDict, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForChainRun,
    BaseCallbackManager,
    CallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.tracers._streaming import _StreamingCallbackHandler, _V2StreamingCallbackHandler
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from chains.evidence.base import Case, EvidenceMode, EvidenceSettings, Marks
from chains.evidence.langchain import EvidencePlace
from chains.openai_wire import MOST_REPLY_BYTES
from chains.options import Inject, MarkerStyle, StreamMode
from chains.payloads import has_text, is_answer, output_text
from guardrail import STRICT, GuardedAnswer, Guardrail, Policy
from guardrail.candidates import Attempt, best_answers
from guardrail.core.workers import Workers
from guardrail.policy import policy_named

NO_STREAM_TAG = "nostream"
"""LangGraph does not stream the tokens of a model that runs under this tag."""

Output = TypeVar("Output")


# --- options -----------------------------------------------------------------------------


class GuardFields(BaseModel):
    """The options as fields; ``GuardrailRunnable`` documents them."""

    model_config = ConfigDict(extra="forbid")

    policy: Annotated[
        Policy, BeforeValidator(lambda it: policy_named(it) if isinstance(it, str) else it)
    ] = STRICT
    style: MarkerStyle = MarkerStyle.FOOTNOTES
    stream_mode: StreamMode = StreamMode.SENTENCE
    inject: Inject = Inject.OFF
    evidence_mode: EvidenceMode = EvidenceMode.GIVEN
    tool_results: bool = True
    marks: Marks | None = None
    reasons: bool = True
    max_reply_bytes: int = Field(default=MOST_REPLY_BYTES, ge=1)

    @property
    def places(self) -> EvidenceSettings:
        """Where to look for evidence in messages."""
        return EvidenceSettings(mode=self.evidence_mode, tools=self.tool_results, marks=self.marks)


class GuardOptions(TypedDict, total=False):
    """The options as keyword arguments of every wrapper."""

    policy: Policy | str
    style: MarkerStyle | str
    inject: Inject | Literal["off", "facts", "prompt"]
    evidence_mode: EvidenceMode | str
    tool_results: bool
    marks: tuple[str, str] | None
    reasons: bool


class ModelOptions(GuardOptions, total=False):
    """The keyword arguments of ``GuardedChatModel``."""

    name: str | None
    stream_mode: StreamMode | str
    max_reply_bytes: int


class RunnableOptions(ModelOptions, total=False):
    """The keyword arguments of ``GuardrailRunnable``."""

    question_key: str | None
    answer_key: str | None
    evidence: EvidencePlace | None


# --- runs --------------------------------------------------------------------------------


async def run_guarded(
    guard: Guardrail,
    call: Callable[[Attempt, int], Awaitable[Sequence[Output]]],
    answer_of: Callable[[Output], object],
    case_of: Callable[[Sequence[Output]], Awaitable[Case]],
    policy: Policy,
    config: RunnableConfig,
    first: Sequence[Output] = (),
) -> tuple[Output, GuardedAnswer | None, Case | None]:
    """Sample outputs, judge their texts, and return the best with its verdict and its evidence.

    A model that calls tools or returns data is in the middle of its work: it is not sampled again.
    Text next to a tool call is judged once. ``first`` are outputs of the first attempt that exist
    already. No callback of the config may stream to a consumer: the answers are not judged yet.
    Without an answer, the first output is returned alone.

    Raises:
        GuardrailError: A part cannot be used and the policy says ``raise``.
    """
    outputs: list[Output] = []
    answered: list[Output] = []
    case: Case | None = None

    async def generate(attempt: Attempt) -> list[str]:
        given = first if attempt.number == 1 else ()
        sampled = list(given or await call(attempt, attempt.samples))
        missing = attempt.samples - len(sampled) if is_answer(answer_of(sampled[0])) else 0
        for more in await asyncio.gather(*(call(attempt, 1) for _ in range(missing))):
            sampled += more
        outputs.extend(sampled)
        found = [output for output in sampled if is_answer(answer_of(output))]
        answered.extend(found)
        return [output_text(answer_of(output)) for output in found]

    async def check(texts: Sequence[str], policy: Policy) -> Sequence[GuardedAnswer]:
        nonlocal case
        case = await case_of(outputs)
        ranking = case.rank(guard, texts, policy, record=False)
        return await trace_checks(config, case, texts, ranking)

    answers = await best_answers(generate, check, policy)
    if not answers and has_text(answer_of(outputs[0])):
        answered = outputs
        answers = [*await check([output_text(answer_of(outputs[0]))], policy.settled())]
    if not answers:
        return outputs[0], None, None
    recorded = await guard.arecord(answers)
    return answered[answers[0].index], recorded[0], case


async def trace_checks(
    config: RunnableConfig,
    case: Case,
    texts: Sequence[str],
    checks: Awaitable[Sequence[GuardedAnswer]],
) -> Sequence[GuardedAnswer]:
    """Await the checks of n texts, each under a run ``guardrail_check`` in the config's callbacks.

    None of these may stream to a consumer. Each verdict names its text by ``index``.
    """
    manager = config.get("callbacks")
    runs: list[CallbackManagerForChainRun | AsyncCallbackManagerForChainRun] = []
    if isinstance(manager, CallbackManager | AsyncCallbackManager) and manager.handlers:
        inputs: dict[str, object] = {"question": case.question}
        if case.evidence is not None:
            inputs["evidence"] = [item.model_dump(exclude_none=True) for item in case.evidence]
        for text in texts:
            given = {**inputs, "answer": text}
            started = manager.on_chain_start(None, given, name="guardrail_check")
            runs.append(await started if inspect.isawaitable(started) else started)
    try:
        answers = await checks
    except BaseException as error:
        for run in runs:
            await _awaited(run.on_chain_error(error))
        raise
    shown = {
        "action", "errors", "evidence_from", "reasons", "scorecard", "sentences", "text",
        "timings_ms",
    }  # fmt: skip
    for run, answer in zip(runs, sorted(answers, key=lambda item: item.index), strict=False):
        await _awaited(run.on_chain_end(answer.model_dump(mode="json", include=shown)))
    return answers


async def _awaited(event: Awaitable[None] | None) -> None:
    if event is not None:
        await event


def hidden(config: RunnableConfig, callbacks: BaseCallbackManager | None = None) -> RunnableConfig:
    """The config without handlers that stream tokens to a consumer: they are not judged yet.

    All other callbacks stay. The ``nostream`` tag asks the same of stream modes that read tags.
    """
    found = callbacks or config.get("callbacks")
    if not isinstance(found, BaseCallbackManager):
        return config
    quiet = found.copy()
    for handler in [*quiet.handlers, *quiet.inheritable_handlers]:
        if isinstance(handler, _StreamingCallbackHandler | _V2StreamingCallbackHandler):
            quiet.remove_handler(handler)
    quiet.add_tags([NO_STREAM_TAG], inherit=True)
    return patch_config(config, callbacks=quiet)


async def in_own_thread(call: Callable[[], Output]) -> Output:
    """Run a blocking model call in a new thread.

    The event loop's pool is small, and a call may come back here through another guarded model:
    calls that hold the last threads of the pool would wait for each other forever.
    """
    workers = Workers(concurrency=1, stuck=1)  # daemons: a call that hangs lets the process end
    try:
        return await workers.run(call)
    finally:
        workers.close()
