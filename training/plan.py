"""A plan: what a training run reads, in which proportion, how long and how fast."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt

from guardrail.core.types import Value

__all__ = ["PLANS", "Plan", "read_plan"]

PLANS = Path(__file__).parent / "plans"
"""The plans that come with the project."""


class Plan(Value):
    """A training run.

    Attributes:
        version: Version of the weights it makes.
        start: ``judge`` to go on from the shipped judge, ``encoder`` for the published encoder.
        steps: Optimiser steps; 0 leaves the weights as they are.
        shares: Per source, how often a round meets each of its rows (0.5: half of them); a source
            that is not named is left out.
        tokens: Padded word pieces a micro-batch holds.
        rate: Peak learning rate of the encoder.
        warm_up: Steps of rising rate.
        decay: Steps of falling rate at the end.
        keep: Share of the starting weights in the final ones.
        dropout: Share of units dropped.
        checkpoint_seconds: Seconds between checkpoints.
        seed: Seed of order, constructions and new heads.
    """

    version: str
    start: Literal["judge", "encoder"] = "judge"
    steps: NonNegativeInt
    shares: dict[str, FiniteFloat]
    tokens: PositiveInt = 2048
    rate: FiniteFloat = Field(default=1e-4, gt=0)
    warm_up: PositiveInt = 100
    decay: PositiveInt = 300
    keep: FiniteFloat = Field(default=0.0, ge=0, lt=1)
    dropout: FiniteFloat = Field(default=0.1, ge=0, lt=1)
    checkpoint_seconds: FiniteFloat = Field(default=480.0, ge=0)
    seed: int = 13

    def rate_share(self, step: int, steps: int) -> float:
        """Share of the peak learning rate at a step: linear warm-up, then 1 - sqrt decay.

        Args:
            step: The step, from 0.
            steps: Steps of the whole run, fewer than planned where it was told to stop.
        """
        if step < self.warm_up:
            return (step + 1) / self.warm_up
        left = steps - step
        if left < self.decay:
            return max(0.0, 1.0 - math.sqrt((self.decay - left) / self.decay))
        return 1.0


def read_plan(path: Path) -> Plan:
    """Read a plan file in TOML.

    Raises:
        ValueError: It is no plan.
    """
    return Plan.model_validate(tomllib.loads(path.read_text("utf-8")))
