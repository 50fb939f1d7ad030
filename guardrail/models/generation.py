"""Answers and rewritten sentences from a language model; citations are of retrieved triples."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from guardrail.config import GenerationSettings
from guardrail.core.errors import GuardrailError, ModelError
from guardrail.core.text.sentences import split_sentences
from guardrail.core.types import FailedSentence, Subgraph
from guardrail.core.workers import time_left
from guardrail.markers.grammar import ParsedText, keep, parse, strip
from guardrail.models.base import (
    CitationConstraint,
    Completion,
    LanguageModel,
    Message,
    Prompt,
    SampleRequest,
    sampled,
)
from guardrail.models.facts import relevant_triples
from guardrail.models.prompts import answer_prompt


async def generate(
    question: str,
    subgraphs: Sequence[Subgraph],
    model: LanguageModel,
    n: int = 1,
    *,
    settings: GenerationSettings | None = None,
    failed: Sequence[FailedSentence] = (),
    constrained: bool = True,
) -> list[str]:
    """Sample n answers with citations (KaLMA 3.3).

    Args:
        question: The user's question.
        subgraphs: The retrieved knowledge, best first.
        model: Any language model.
        n: Number of answers.
        settings: How to sample.
        failed: Failed sentences of an earlier answer, for regeneration.
        constrained: Restrict citations to the triples shown; False only prompts.

    Returns:
        n answers with markers in the order of sampling, including duplicates. Of an answer that
        reached the token limit, the unfinished last sentence is removed.

    Raises:
        ModelError: The model was unreachable, refused, or timed out.
    """
    settings = settings or GenerationSettings()
    shown = relevant_triples(question, subgraphs, settings.facts)
    constraint = CitationConstraint(triples=tuple(dict.fromkeys(shown)))
    request = SampleRequest(
        prompt=answer_prompt(question, shown, failed=failed),
        n=n,
        temperature=settings.temperature,
        top_p=0.95,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
        constraint=constraint if constrained else None,
    )
    texts = [_tidied(one, constraint) for one in await sampled(model, request)]
    return [constraint.enforce(text) for text in texts] if constrained else texts


def _tidied(completion: Completion, constraint: CitationConstraint) -> str:
    """Remove repeated sentences and an unfinished last one, which small models add."""
    truncated = completion.finish_reason in ("length", "max_tokens")
    text = completion.text
    if truncated:
        text = re.sub(r"(?<!\s)\s*+\[[^\[\]\n]*+$", "", text)
    parsed: ParsedText = parse(text, constraint.known)
    sentences = split_sentences(parsed.clean)
    ended = r"[.!?…][\"'”’)\]]*$"
    if truncated and len(sentences) > 1 and not re.search(ended, sentences[-1].text):
        sentences = sentences[:-1]
    firsts = {" ".join(s.text.casefold().split()): s for s in reversed(sentences)}
    kept = sorted((s.start, s.end) for s in firsts.values())
    if len(kept) == len(sentences) and not truncated:
        return parsed.marked
    return keep(parsed, kept).marked


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
