"""Sentences rewritten by a model so that they agree with the facts."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from guardrail.core.errors import GuardrailError, ModelError
from guardrail.core.workers import time_left
from guardrail.markers.grammar import strip
from guardrail.models.base import LanguageModel, Message, Prompt, SampleRequest, sampled


class Wrong(NamedTuple):
    """A sentence that conflicts with facts, and the question that its answer belongs to."""

    question: str
    text: str
    facts: tuple[str, ...]


async def rewritten(
    model: LanguageModel, wrong: Sequence[Wrong], *, at_once: int
) -> list[str | GuardrailError | None]:
    """Let a model rewrite n sentences, one call for each, ``at_once`` of them concurrently.

    Returns:
        In order, the new sentence, None if the model did not return a usable one, or the error.
    """
    gate = asyncio.Semaphore(at_once)
    # Half of the remaining time of an answer; the rest is for judging the new sentences
    until = time.monotonic() + 0.5 * time_left()

    async def one(item: Wrong) -> str | GuardrailError | None:
        async with gate:
            seconds = until - time.monotonic()
            try:
                return await _one(model, item, seconds)
            except TimeoutError:
                return ModelError(f"model {model.name!r} did not answer in time")
            except GuardrailError as error:
                return error

    return list(await asyncio.gather(*map(one, wrong)))


async def _one(model: LanguageModel, wrong: Wrong, seconds: float) -> str | None:
    if seconds <= 0.0:
        raise TimeoutError
    facts = "\n".join(f"Fact: {' '.join(fact.split())}" for fact in wrong.facts)
    question = f"Question: {' '.join(wrong.question.split())}\n" if wrong.question.strip() else ""
    task = f"{question}{facts}\nSentence: {' '.join(wrong.text.split())}"
    instruction = (
        "A sentence of an answer conflicts with a fact. Rewrite the sentence so that it agrees "
        "with the fact. Change nothing else, add nothing, and answer with the sentence alone, on "
        "one line."
    )
    messages = (Message(role="system", content=instruction), Message(role="user", content=task))
    prompt = Prompt(messages=messages, text=f"{instruction}\n\n{task}\nRewritten:")
    bound = None if math.isinf(seconds) else seconds
    request = SampleRequest(prompt=prompt, temperature=0.0, max_tokens=256, timeout_s=bound)
    async with asyncio.timeout(bound):
        samples = await sampled(model, request)
    lines = samples[0].text.strip().splitlines() if samples else []
    if not lines or (samples[0].finish_reason == "length"):
        return None
    text = strip(lines[0]).strip()
    quotation = re.compile(r'["“](?P<inner>[^"“”]*)["”]')
    quoted = quotation.fullmatch(text)
    text = quoted["inner"].strip() if quoted and not quotation.fullmatch(wrong.text) else text
    return text if text and len(text) <= 2 * len(wrong.text) + 120 else None
