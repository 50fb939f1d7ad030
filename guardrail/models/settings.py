"""How answers are sampled, and how much knowledge a prompt holds."""

from __future__ import annotations

from pydantic import Field, FiniteFloat

from guardrail.core.types.value import Value

__all__ = ["TOP_P", "GenerationSettings"]

TOP_P = 0.95
"""Nucleus of the distribution that answers are sampled from."""


class GenerationSettings(Value):
    """How answers are sampled.

    Attributes:
        temperature: Sampling temperature; KaLMA uses 0.5.
        max_tokens: Maximum tokens per answer.
        seed: Random seed, if the back end supports it.
        constrained: Restrict citations to retrieved triples; False only prompts.
        facts: Maximum facts in the prompt.
    """

    temperature: FiniteFloat = Field(default=0.5, ge=0.0)
    max_tokens: int = Field(default=200, ge=1)
    seed: int | None = None
    constrained: bool = True
    facts: int = Field(default=40, ge=0)
