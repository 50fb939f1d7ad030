"""One guarded run of a LangChain model, chain or agent: the candidate loop over its outputs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import Generic, NamedTuple, TypeVar, cast

from langchain_core.runnables import RunnableConfig

from chains.check_run import CheckInput, traced
from chains.evidence.base import Case
from chains.outputs import has_text, is_answer, output_text
from guardrail import GuardedAnswer, Guardrail, Policy
from guardrail.candidates import Attempt, best_answers

__all__ = ["GuardedRun", "in_own_thread", "result_or_error", "sample_outputs"]

Output = TypeVar("Output")


class GuardedRun(NamedTuple, Generic[Output]):
    """What came of a run.

    Attributes:
        output: The output of the best candidate as the model gave it; the first output of all
            where none has text.
        answer: The verdict on its text; None where it has none.
        case: What it was judged against; None where nothing was judged.
    """

    output: Output
    answer: GuardedAnswer | None = None
    case: Case | None = None

    @classmethod
    async def best(
        cls,
        guard: Guardrail,
        sample: Callable[[Attempt], Awaitable[Sequence[Output]]],
        said: Callable[[Output], object],
        case_of: Callable[[Sequence[Output]], Awaitable[Case]],
        policy: Policy,
        config: RunnableConfig,
    ) -> GuardedRun[Output]:
        """Sample outputs, judge their texts, and take the best as the policy leaves it.

        Args:
            guard: The guardrail.
            sample: Calls the model or chain for one attempt.
            said: The message, text or data in an output.
            case_of: What all outputs so far are judged against.
            policy: Bounds candidates, attempts and time.
            config: Its callbacks see each check as a run.

        Raises:
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        outputs: list[Output] = []
        spoken: list[Output] = []
        case: Case | None = None

        async def generate(attempt: Attempt) -> list[str]:
            sampled = await sample(attempt)
            outputs.extend(sampled)
            texts = [output for output in sampled if has_text(said(output))]
            spoken.extend(texts)
            return [output_text(said(output)) for output in texts]

        async def check(texts: Sequence[str], policy: Policy) -> Sequence[GuardedAnswer]:
            nonlocal case
            case = await case_of(outputs)
            inputs = [CheckInput(config, case.question, text, case.evidence) for text in texts]
            return await traced(inputs, case.judged(guard, texts, policy))

        answers = await best_answers(generate, check, policy)
        if not answers or case is None:
            return cls(outputs[0])
        recorded = await guard.arecord(answers)
        return cls(spoken[answers[0].index], recorded[0], case)


async def sample_outputs(
    call: Callable[[int], Awaitable[list[Output]]],
    said: Callable[[Output], object],
    samples: int,
    first: Sequence[Output] = (),
) -> list[Output]:
    """Call a model until there are enough outputs; no more where its first output is no answer.

    A model that calls tools, or gives data, is in the middle of its work: there is nothing to rank.

    Args:
        call: Returns as many outputs as are asked for, or fewer.
        said: The message, text or data in an output.
        samples: Number of outputs wanted.
        first: Outputs that are there already.
    """
    found = list(first or await call(samples))
    missing = samples - len(found) if is_answer(said(found[0])) else 0
    for more in await asyncio.gather(*(call(1) for _ in range(missing))):
        found += more
    return found


async def result_or_error(result: Awaitable[Output]) -> Output | Exception:
    """Await a row's result; the error in its place where there is one."""
    try:
        return await result
    except Exception as error:  # retrievers and callbacks may raise anything
        return error


async def in_own_thread(call: Callable[[], Output]) -> Output:
    """Run a blocking model call in a thread of its own.

    The pool of the event loop is small, and a call may come back here through another guarded
    model: calls that hold its last threads would wait for each other for ever.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Output] = loop.create_future()
    context = copy_context()

    def finish(output: Output | None, error: BaseException | None) -> None:
        if done.done():  # the caller gave up
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast("Output", output))

    def run() -> None:
        try:
            output = context.run(call)
        except BaseException as error:
            loop.call_soon_threadsafe(finish, None, error)
        else:
            loop.call_soon_threadsafe(finish, output, None)

    threading.Thread(target=run, name="guarded-model-call", daemon=True).start()
    return await done
