"""The training loop: warm-up, constant rate, decay; averaged weights; resumable."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from judges.training.batches import Batch, EncodedRows, batches_by_length
from judges.training.model import CrossEncoder
from judges.training.replicas import Replicas

__all__ = ["Settings", "Stage", "Trainer", "rate_share"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to train.

    Attributes:
        steps: Optimiser steps.
        tokens: Padded word pieces a replica reads in a step.
        replicas: Threads that compute gradients; 1 on a GPU.
        rate: Peak learning rate of the encoder.
        head_rate: Peak learning rate of the heads.
        warm_up: Steps of rising rate.
        decay: Steps of falling rate at the end.
        weight_decay: Decay of matrices.
        smoothing: Label smoothing of the NLI head.
        head_weights: Weights of the losses of the NLI, attribution and complexity heads.
        averaging: Share of the averaged weights kept at each averaging.
        average_every: Steps between averagings.
        checkpoint_every: Steps between checkpoints.
        seed: Seed of order and initial heads.
        device: ``cpu`` or ``cuda``.
    """

    steps: int
    tokens: int = 3072
    replicas: int = 2
    rate: float = 2.5e-4
    head_rate: float = 5e-4
    warm_up: int = 150
    decay: int = 600
    weight_decay: float = 0.01
    smoothing: float = 0.03
    head_weights: tuple[float, float, float] = (1.0, 1.0, 0.1)
    averaging: float = 0.98
    average_every: int = 5
    checkpoint_every: int = 300
    seed: int = 13
    device: str = "cpu"


class Stage(NamedTuple):
    """A part of the training with its own mixture.

    Attributes:
        start: Step at which it begins.
        shares: Per source, how often a round meets each of its rows (0.5: half of them); a
            source that is not named is left out.
    """

    start: int
    shares: Mapping[str, float]


def rate_share(step: int, *, steps: int, warm_up: int, decay: int) -> float:
    """Share of the peak learning rate at a step: linear warm-up, constant, 1 - sqrt decay."""
    if step < warm_up:
        return (step + 1) / warm_up
    left = steps - step
    if left < decay:
        return float(max(0.0, 1.0 - ((decay - left) / decay) ** 0.5))
    return 1.0


class Trainer:
    """Trains a cross-encoder on a mixture of sources.

    Args:
        model: The model to train, in 32 bits.
        encoded: All training rows.
        curriculum: The mixtures, by rising start.
        settings: How to train.
        folder: Where the checkpoint ``last.pt`` lies; a file ``stop`` put there starts the decay.
        weights: Loss weight of each source; 1 where absent.
    """

    def __init__(
        self,
        model: CrossEncoder,
        encoded: EncodedRows,
        curriculum: Sequence[Stage],
        settings: Settings,
        folder: Path,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.model = model
        self._encoded = encoded
        self._curriculum = curriculum
        self._settings = settings
        self._folder = folder
        self._steps = settings.steps
        self._step = 0
        self._round = 0
        self._row_weights = [(weights or {}).get(row.source, 1.0) for row in encoded.rows]
        self._replicas = Replicas(
            model,
            count=settings.replicas,
            device=settings.device,
            smoothing=settings.smoothing,
            head_weights=settings.head_weights,
        )
        self._average = {k: v.detach().clone() for k, v in model.named_parameters()}
        self._optimizer = torch.optim.AdamW(
            _groups(model, settings), betas=(0.9, 0.98), eps=1e-6, fused=True
        )

    def resume(self, path: Path, *, steps_done: bool = True) -> None:
        """Continue from a checkpoint.

        Args:
            path: A checkpoint written by ``run``.
            steps_done: Keep its step count; False starts the schedule anew.
        """
        state = torch.load(path, map_location=self._settings.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self._average = state["average"]
        self._optimizer.load_state_dict(state["optimizer"])
        if steps_done:
            self._step = state["step"]
        self._round = state["round"]
        self._replicas.refresh()

    def run(self) -> Mapping[str, Tensor]:
        """Train to the end of the schedule.

        Returns:
            The averaged weights.
        """
        settings = self._settings
        stage = self._stage()
        stream = self._stream(stage)
        started, tokens = time.monotonic(), 0
        while self._step < self._steps:
            self._look_for_stop()
            if self._stage() is not stage:
                stage = self._stage()
                self._round += 1
                stream = self._stream(stage)
            batches = [next(stream) for _ in range(self._replicas.count)]
            share = rate_share(
                self._step, steps=self._steps, warm_up=settings.warm_up, decay=settings.decay
            )
            for group in self._optimizer.param_groups:
                group["lr"] = group["peak"] * share
            means = self._replicas.backward(batches)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            self._replicas.refresh()
            self._step += 1
            tokens += sum(batch.input_ids.numel() for batch in batches)
            if self._step % settings.average_every == 0:
                self._take_average()
            if self._step % 25 == 0:
                speed = tokens / (time.monotonic() - started)
                heads = " ".join(f"{float(mean):.4f}" for mean in means)
                print(
                    f"{time.strftime('%H:%M:%S')} step {self._step}/{self._steps} "
                    f"round {self._round} rate {share:.3f} loss {heads} tokens/s {speed:.0f}",
                    flush=True,
                )
            if self._step % settings.checkpoint_every == 0:
                self._save()
        self._save()
        return self._average

    def _look_for_stop(self) -> None:
        end = self._step + self._settings.decay
        if (self._folder / "stop").exists() and end < self._steps:
            self._steps = end

    def _stage(self) -> Stage:
        return [stage for stage in self._curriculum if stage.start <= self._step][-1]

    def _stream(self, stage: Stage) -> Iterator[Batch]:
        """Micro-batches without end: rounds over the mixture, each freshly shuffled."""
        by_source: dict[str, list[int]] = {}
        for index, row in enumerate(self._encoded.rows):
            by_source.setdefault(row.source, []).append(index)
        while True:
            chooser = random.Random(f"{self._settings.seed}/{self._round}")
            order: list[int] = []
            for source, indices in by_source.items():
                order += _drawn(indices, stage.shares.get(source, 0.0), chooser)
            chooser.shuffle(order)
            yield from batches_by_length(
                self._encoded,
                order,
                tokens=self._settings.tokens,
                seed=chooser.randrange(2**31),
                weights=self._row_weights,
            )
            self._round += 1

    @torch.no_grad()
    def _take_average(self) -> None:
        # A short memory at first, so that the average leaves the untrained weights quickly.
        kept = min(self._settings.averaging, self._step / (self._step + 50))
        for name, parameter in self.model.named_parameters():
            self._average[name].lerp_(parameter, 1.0 - kept)

    def _save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "average": self._average,
            "optimizer": self._optimizer.state_dict(),
            "step": self._step,
            "round": self._round,
        }
        part = self._folder / "last.part"
        torch.save(state, part)
        part.replace(self._folder / "last.pt")


def _drawn(indices: Sequence[int], share: float, chooser: random.Random) -> list[int]:
    """Repeat whole lists and add a random part, so that each row is met ``share`` times."""
    whole = int(share)
    part = round((share - whole) * len(indices))
    return [*list(indices) * whole, *chooser.sample(list(indices), part)]


def _groups(model: CrossEncoder, settings: Settings) -> list[dict[str, object]]:
    """Parameter groups: heads learn faster, biases and norms do not decay."""
    groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        groups.setdefault((name.startswith("heads."), parameter.ndim > 1), []).append(parameter)
    return [
        {
            "params": parameters,
            "peak": settings.head_rate if head else settings.rate,
            "weight_decay": settings.weight_decay if matrix else 0.0,
        }
        for (head, matrix), parameters in groups.items()
    ]
