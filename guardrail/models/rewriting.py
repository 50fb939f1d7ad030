"""One sentence asked for again, with the fact against it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from guardrail.markers.grammar import strip
from guardrail.models.base import LanguageModel, Message, Prompt, SampleRequest

__all__ = ["Wrong", "rewritten"]

INSTRUCTION = (
    "A sentence of an answer conflicts with a fact. Rewrite the sentence so that it agrees with "
    "the fact. Change nothing else, add nothing, and answer with the sentence alone, on one line."
)

MOST_TOKENS = 256

LONGER = 2
"""A rewritten sentence may be so many times as long as the one before it, and one line longer."""

LINE = 120

QUOTED = re.compile(r'["“](?P<inner>[^"“”]*)["”]')


class Wrong(NamedTuple):
    """A sentence that conflicts with facts.

    Attributes:
        question: What it is part of an answer to.
        text: The sentence.
        facts: What conflicts with it.
    """

    question: str
    text: str
    facts: tuple[str, ...]


async def rewritten(model: LanguageModel, wrong: Sequence[Wrong]) -> list[str | None]:
    """Ask a model for n sentences again, each by itself.

    Returns:
        The sentences in order; None for one that the model does not give in a usable form.

    Raises:
        ModelError: The model could not be reached or refused.
    """
    return [await _one(model, item) for item in wrong]


async def _one(model: LanguageModel, wrong: Wrong) -> str | None:
    facts = "\n".join(f"Fact: {' '.join(fact.split())}" for fact in wrong.facts)
    asked = f"Question: {' '.join(wrong.question.split())}\n" if wrong.question.strip() else ""
    task = f"{asked}{facts}\nSentence: {' '.join(wrong.text.split())}"
    prompt = Prompt(
        messages=(
            Message(role="system", content=INSTRUCTION),
            Message(role="user", content=task),
        ),
        text=f"{INSTRUCTION}\n\n{task}\nRewritten:",
    )
    samples = await model.sample(
        SampleRequest(prompt=prompt, temperature=0.0, max_tokens=MOST_TOKENS)
    )
    lines = samples[0].text.strip().splitlines() if samples else []
    if not lines or (samples[0].finish_reason == "length"):
        return None
    text = strip(lines[0]).strip()
    quoted = QUOTED.fullmatch(text)
    text = quoted["inner"].strip() if quoted and not QUOTED.fullmatch(wrong.text) else text
    if not text or len(text) > LONGER * len(wrong.text) + LINE:
        return None
    return text
