"""The evolver that prompts a chat model (KaLMA 2.2, Tables 8, 9)."""

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

_FIRST = (
    "I want to you act as a Question Generator. Your objective is to select relevant knowledge "
    "to label the sentence and generate a question"
)
"""Instruction of the first round, verbatim (Table 8)."""
_LATER = (
    "I want to you act as a Question Rewriter. Your objective is to extend the question and "
    "answer, so the they include the additional knowledge. There should be only one question "
    "when possible, if not, make sure the question is a few as possible."
)
"""Instruction of rounds two to six, verbatim (Table 9)."""
_FORM = (
    "Keep every value exactly as given. Never write ids or square brackets. Reply with two "
    "lines: 'Generated Answer: …' and 'Generated Question: …'."
)
"""Deviation from the paper, whose answers carry the citations: here they are known already."""
_EXAMPLE_FIRST = """\
sentence: Ellen Voss and Karl Voss
knowledge: {name: Ellen Voss, father: Karl Voss}
Generated Answer: Ellen Voss was a daughter of Karl Voss.
Generated Question: Who was the father of Ellen Voss?"""
_EXAMPLE_LATER = """\
answer: Ellen Voss was a daughter of Karl Voss.
question: Who was the father of Ellen Voss?
knowledge: {name: Ellen Voss, place of birth: Lund}
Generated Answer: Ellen Voss, who was born in Lund, was a daughter of Karl Voss.
Generated Question: Where was Ellen Voss born, and who was her father?"""
"""One invented example for each round, as the paper's prompts have one."""
_REPLY = re.compile(
    r"Answer:\s*(?P<answer>.+?)\s*\n\s*(?:Generated )?Question:\s*(?P<question>.+)", re.DOTALL
)


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
        knowledge = f"knowledge: {{name: {new.subject}, {new.property}: {new.value}}}"
        if before is None:
            instruction, example = _FIRST, _EXAMPLE_FIRST
            text = f"sentence: {pair.first.label} and {pair.second.label}\n{knowledge}"
        else:
            instruction, example = _LATER, _EXAMPLE_LATER
            text = f"answer: {before.answer}\nquestion: {before.question}\n{knowledge}"
        system = f"Instruction: {instruction} {_FORM}\n\n{example}"
        prompt = Prompt(
            messages=(
                Message(role="system", content=system),
                Message(role="user", content=text),
            ),
            text=f"{system}\n\n{text}\n",
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
