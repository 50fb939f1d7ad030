"""A plan: what a training run reads, in which proportion, how long and how fast."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import Field, FiniteFloat, PositiveInt

from guardrail.types import Value

__all__ = ["PLANS", "Plan", "Stage", "read_plan"]

PLANS = Path(__file__).parent / "plans"
"""The plans that come with the project."""

Share = FiniteFloat


class Stage(Value):
    """A part of the training with its own mixture.

    Attributes:
        steps: Optimiser steps.
        shares: Per source, how often a round meets each of its rows (0.5: half of them); a source
            that is not named is left out.
        rate: Learning rate as a share of the plan's.
    """

    steps: PositiveInt
    shares: dict[str, Share]
    rate: FiniteFloat = Field(default=1.0, gt=0)


class Plan(Value):
    """A training run.

    Attributes:
        version: Version of the weights it makes.
        start: ``judge`` to go on from the shipped judge, ``encoder`` for the published encoder.
        longest: Most word pieces of a sequence.
        tokens: Padded word pieces a replica reads in a step.
        rate: Peak learning rate of the encoder.
        warm_up: Steps of rising rate.
        decay: Steps of falling rate at the end.
        averaging: Share of the averaged weights kept at each averaging.
        average_every: Steps between averagings.
        keep: Share of the starting weights in the final ones.
        dropout: Share of units dropped.
        soft: Share of the teacher's probabilities in the loss, where rows have them; the labels
            have the rest.
        checkpoint_every: Steps between checkpoints.
        seed: Seed of order, constructions and new heads.
        weights: Weight of a source's rows in the loss where it is not 1.
        stages: In order.
    """

    version: str
    start: Literal["judge", "encoder"] = "judge"
    longest: int = Field(default=384, ge=16)
    tokens: PositiveInt = 2048
    rate: FiniteFloat = Field(default=1e-4, gt=0)
    warm_up: PositiveInt = 100
    decay: PositiveInt = 300
    averaging: FiniteFloat = Field(default=0.98, ge=0, lt=1)
    average_every: PositiveInt = 5
    keep: FiniteFloat = Field(default=0.0, ge=0, lt=1)
    dropout: FiniteFloat = Field(default=0.1, ge=0, lt=1)
    soft: FiniteFloat = Field(default=0.0, ge=0, le=1)
    checkpoint_every: PositiveInt = 100
    seed: int = 13
    weights: dict[str, FiniteFloat] = Field(default_factory=dict)
    stages: tuple[Stage, ...] = Field(min_length=1)

    @property
    def steps(self) -> int:
        """Optimiser steps of all stages."""
        return sum(stage.steps for stage in self.stages)

    @property
    def sources(self) -> frozenset[str]:
        """Names of the sources that a stage reads."""
        return frozenset(
            source for stage in self.stages for source, share in stage.shares.items() if share
        )

    def stage(self, step: int) -> Stage:
        """The stage that a step belongs to."""
        end = 0
        for stage in self.stages:
            end += stage.steps
            if step < end:
                return stage
        return self.stages[-1]

    def rate_share(self, step: int, steps: int) -> float:
        """Share of the peak learning rate at a step: linear warm-up, then 1 - sqrt decay.

        Args:
            step: The step, from 0.
            steps: Steps of the whole run, fewer than planned where it was told to stop.
        """
        share = self.stage(step).rate
        if step < self.warm_up:
            return share * (step + 1) / self.warm_up
        left = steps - step
        if left < self.decay:
            return share * float(max(0.0, 1.0 - ((self.decay - left) / self.decay) ** 0.5))
        return share


def read_plan(path: Path) -> Plan:
    """Read a plan file in TOML.

    Raises:
        ValueError: It is no plan.
    """
    return Plan.model_validate(tomllib.loads(path.read_text("utf-8")))
