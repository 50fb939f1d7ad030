"""How answers are sampled, and how much knowledge a prompt holds."""

from __future__ import annotations

from pydantic import Field, FiniteFloat

from guardrail.core.types.value import Seconds, Value

__all__ = ["GenerationSettings", "PromptBudget"]


class PromptBudget(Value):
    """How much of the retrieved knowledge a prompt may hold.

    Attributes:
        triples: Most facts shown.
        characters: Most characters of facts; about three make a token of names and dates.
    """

    triples: int = Field(default=40, ge=0)
    characters: int = Field(default=3_000, ge=0)


class GenerationSettings(Value):
    """How answers are sampled.

    Attributes:
        temperature: Sampling temperature; KaLMA uses 0.5.
        top_p: Nucleus sampling; CONNER samples knowledge with 0.9.
        max_tokens: Maximum tokens per answer.
        seed: Random seed, if the back end supports it.
        constrained: Restrict citations to retrieved triples; False only prompts.
        anchored: With a grammar, allow a citation only right after its value.
        budget: Limits of the knowledge in the prompt.
        timeout_s: Seconds per model call.
    """

    temperature: FiniteFloat = Field(default=0.5, ge=0.0)
    top_p: FiniteFloat = Field(default=0.95, gt=0.0, le=1.0)
    max_tokens: int = Field(default=200, ge=1)
    seed: int | None = None
    constrained: bool = True
    anchored: bool = True
    budget: PromptBudget = PromptBudget()
    timeout_s: Seconds | None = None
