"""The evolver that asks a chat model, as the paper does (KaLMA Tables 8, 9)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from benchmarks.biokalma.pairs import PersonPair
from benchmarks.biokalma.rounds import Draft, problems_of
from guardrail.core.errors import ModelError
from guardrail.core.types import Triple
from guardrail.models.base import LanguageModel, Message, Prompt, SampleRequest

__all__ = ["CALL_TOKENS", "ChatEvolver"]

# Tokens of one call, prompt and reply together, for the estimate of cost: measured on prompts
# of the sixth round, where the answer has some 150 words.
CALL_TOKENS = 700

_SYSTEM = (
    "You write questions for a benchmark on biographies. First extend the answer so that it "
    "includes the new knowledge naturally and stays coherent, keeping every value exactly as "
    "given. Then write one single question that the whole answer answers. Never write ids or "
    "square brackets. Reply with two lines: 'Answer: …' and 'Question: …'."
)
_REPLY = re.compile(r"Answer:\s*(?P<answer>.+?)\s*\n\s*Question:\s*(?P<question>.+)", re.DOTALL)


class ChatEvolver:
    """Writes drafts with a chat model.

    Args:
        model: Any language model.
        attempts: Replies asked for until one passes validation.
        temperature: Of sampling.
    """

    def __init__(
        self, model: LanguageModel, *, attempts: int = 3, temperature: float = 0.7
    ) -> None:
        self._model = model
        self._attempts = attempts
        self._temperature = temperature

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    def evolve(
        self, pair: PersonPair, injected: Sequence[Triple], before: Draft | None, seed: int
    ) -> Draft:
        """Ask until a reply passes validation; the last reply otherwise. See ``Evolver``.

        Raises:
            ModelError: The model could not be reached, or no reply had the form asked for.
        """
        new = injected[-1]
        knowledge = f"{new.subject}, {new.property}: {new.value}"
        answer = before.answer if before else "(none yet)"
        question = before.question if before else "(none yet)"
        persons = f"{pair.first.label} and {pair.second.label}"
        text = (
            f"Persons: {persons}\nAnswer so far: {answer}\nQuestion so far: {question}\n"
            f"New knowledge: {knowledge}"
        )
        prompt = Prompt(
            messages=(
                Message(role="system", content=_SYSTEM),
                Message(role="user", content=text),
            ),
            text=f"{_SYSTEM}\n\n{text}\n",
        )
        draft: Draft | None = None
        for attempt in range(self._attempts):
            request = SampleRequest(
                prompt=prompt,
                temperature=self._temperature,
                max_tokens=600,
                seed=(seed + attempt) % 2**31,
            )
            (reply, *_) = asyncio.run(self._model.sample(request))
            match = _REPLY.search(reply.text)
            if match is None:
                continue
            draft = Draft(
                answer=" ".join(match["answer"].split()),
                question=" ".join(match["question"].split()),
            )
            if not problems_of(draft, pair, injected):
                return draft
        if draft is None:
            raise ModelError(
                f"model {self._model.name!r} did not reply with an answer and a question in "
                f"{self._attempts} attempts"
            )
        return draft
