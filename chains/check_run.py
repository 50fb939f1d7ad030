"""A LangChain run for each check, so that tracers show it next to the model's."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForChainRun,
    CallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.runnables import RunnableConfig

from guardrail.core.types import Evidence, GuardedAnswer

__all__ = ["CHECK", "CheckInput", "traced", "traced_stream"]

CHECK = "guardrail_check"
"""Name of the run."""

VERDICT = {
    "action", "errors", "evidence_from", "reasons", "scorecard", "sentences", "text", "timings_ms",
}  # fmt: skip
"""Fields of a guarded answer that the run's outputs hold."""


class CheckInput(NamedTuple):
    """One answer to check.

    Attributes:
        config: Its callbacks see the run. None of them may stream to a consumer, since the answer
            is not judged yet.
        question: The question.
        answer: The answer as the model gave it.
        evidence: What it is judged against; None for the graph.
    """

    config: RunnableConfig
    question: str
    answer: str
    evidence: Sequence[Evidence] | None = None


async def traced(
    asked: Sequence[CheckInput], checks: Awaitable[Sequence[GuardedAnswer]]
) -> Sequence[GuardedAnswer]:
    """Await the checks of n answers, each under a run of its own.

    Args:
        asked: The n answers.
        checks: Gives their verdicts, in the same order or each with its place as ``index``.

    Raises:
        GuardrailError: The checks raised it; the runs end with it.
    """
    runs = [await _begun(item) for item in asked]
    try:
        answers = await checks
    except BaseException as error:
        for run in runs:
            if run is not None:
                await _awaited(run.on_chain_error(error))
        raise
    for run, answer in zip(runs, sorted(answers, key=lambda item: item.index), strict=True):
        if run is not None:
            await _awaited(run.on_chain_end(answer.model_dump(mode="json", include=VERDICT)))
    return answers


async def traced_stream(config: RunnableConfig, answer: GuardedAnswer) -> None:
    """Show the check of a streamed answer, once all of it has been judged."""

    async def judged() -> list[GuardedAnswer]:
        return [answer]

    said = answer.text if answer.original is None else answer.original
    await traced([CheckInput(config, answer.question, said, answer.evidence)], judged())


async def _begun(
    asked: CheckInput,
) -> CallbackManagerForChainRun | AsyncCallbackManagerForChainRun | None:
    """The run of one check; None where nobody looks."""
    manager = asked.config.get("callbacks")
    if not isinstance(manager, CallbackManager | AsyncCallbackManager) or not manager.handlers:
        return None
    inputs: dict[str, object] = {"question": asked.question, "answer": asked.answer}
    if asked.evidence is not None:
        inputs["evidence"] = [item.model_dump(exclude_none=True) for item in asked.evidence]
    started = manager.on_chain_start(None, inputs, name=CHECK)
    return await started if inspect.isawaitable(started) else started


async def _awaited(event: Awaitable[None] | None) -> None:
    if event is not None:
        await event
