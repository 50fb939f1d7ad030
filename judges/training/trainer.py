"""The training loop: warm-up, constant rate, decay; averaged weights; resumable."""

from __future__ import annotations

import itertools
import random
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from judges.training.batches import Batch, batches_by_length
from judges.training.encoded import EncodedRows
from judges.training.model import CrossEncoder
from judges.training.plan import Plan, Stage
from judges.training.replicas import Replicas

__all__ = ["Trainer", "interpolated"]


CPU_REPLICAS = 2
"""Threads that compute gradients on a CPU."""
HEAD_RATE = 2.0
"""Learning rate of the heads as a multiple of the encoder's."""
WEIGHT_DECAY = 0.01
"""Decay of matrices."""
PREFETCHED_BATCHES = 8
"""Micro-batches made before they are used."""
LOG_EVERY = 25
"""Steps between lines of the log."""


_Item = TypeVar("_Item")


class Trainer:
    """Trains a cross-encoder on a mixture of sources.

    Args:
        model: The model to train, in 32 bits.
        encoded: All training rows.
        plan: Stages, rates and weights.
        folder: Where the checkpoint ``last.pt`` lies; a file ``stop`` put there starts the decay.
        device: ``cpu`` or ``cuda``.
    """

    def __init__(
        self,
        model: CrossEncoder,
        encoded: EncodedRows,
        plan: Plan,
        folder: Path,
        *,
        device: str = "cpu",
    ) -> None:
        self.model = model
        self._encoded = encoded
        self._plan = plan
        self._folder = folder
        self._device = device
        self._steps = plan.steps
        self._step = 0
        self._round = 0
        self._met = 0
        self._row_weights = [plan.weights.get(row.source, 1.0) for row in encoded.rows]
        self._replicas = Replicas(
            model,
            count=1 if device == "cuda" else CPU_REPLICAS,
            device=device,
            soft=plan.soft,
        )
        self._average = {k: v.detach().clone() for k, v in model.named_parameters()}
        self._optimizer = torch.optim.AdamW(
            _groups(model, plan), betas=(0.9, 0.98), eps=1e-6, fused=True
        )

    @property
    def step(self) -> int:
        """Optimiser steps made so far, those before a resumption among them."""
        return self._step

    def resume(self, path: Path) -> None:
        """Continue from a checkpoint, with the batch after its last one.

        Args:
            path: A checkpoint written by ``run``, on this machine or another.
        """
        state = torch.load(path, map_location=self._device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self._average = state["average"]
        peaks = [group["peak"] for group in self._optimizer.param_groups]
        self._optimizer.load_state_dict(state["optimizer"])
        for group, peak in zip(self._optimizer.param_groups, peaks, strict=True):
            group["peak"] = peak  # the plan's, which may have changed
        self._step, self._round, self._met = state["step"], state["round"], state["met"]
        self._replicas.refresh()

    def run(self) -> Mapping[str, Tensor]:
        """Train to the end of the plan.

        Returns:
            The averaged weights.
        """
        plan = self._plan
        stage = plan.stage(self._step)
        stream = _prefetched(self._stream(stage, skip=self._met))
        started, tokens = time.monotonic(), 0
        while self._step < self._steps:
            self._look_for_stop()
            if plan.stage(self._step) is not stage:
                stage = plan.stage(self._step)
                self._round, self._met = self._round + 1, 0
                stream = _prefetched(self._stream(stage))
            batches = []
            for _ in range(self._replicas.count):
                self._round, self._met, batch = next(stream)
                batches.append(batch)
            share = plan.rate_share(self._step, self._steps)
            for group in self._optimizer.param_groups:
                group["lr"] = group["peak"] * share
            means = self._replicas.backward(batches)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            self._replicas.refresh()
            self._step += 1
            tokens += sum(batch.input_ids.numel() for batch in batches)
            if self._step % plan.average_every == 0:
                self._take_average()
            if self._step % LOG_EVERY == 0:
                speed = tokens / (time.monotonic() - started)
                heads = " ".join(f"{name} {float(mean):.3f}" for name, mean in means.items())
                print(
                    f"{time.strftime('%H:%M:%S')} step {self._step}/{self._steps} "
                    f"round {self._round} rate {share:.3f} {heads} tokens/s {speed:.0f}",
                    flush=True,
                )
            if self._step % plan.checkpoint_every == 0:
                self._save()
        self._save()
        return self._average

    def _look_for_stop(self) -> None:
        end = self._step + self._plan.decay
        if (self._folder / "stop").exists() and end < self._steps:
            self._steps = end

    def _stream(self, stage: Stage, *, skip: int = 0) -> Iterator[tuple[int, int, Batch]]:
        """Micro-batches without end: rounds over the mixture, each freshly shuffled.

        Args:
            stage: The mixture.
            skip: Micro-batches of the first round that were met already.

        Yields:
            The round, how many of its micro-batches were met, this one included, and the batch.
        """
        by_source: dict[str, list[int]] = {}
        for index, row in enumerate(self._encoded.rows):
            by_source.setdefault(row.source, []).append(index)
        for number in itertools.count(self._round):
            chooser = random.Random(f"{self._plan.seed}/{number}")
            order: list[int] = []
            for source, indices in by_source.items():
                order += _drawn(indices, stage.shares.get(source, 0.0), chooser)
            chooser.shuffle(order)
            batches = batches_by_length(
                self._encoded,
                order,
                tokens=self._plan.tokens,
                seed=chooser.randrange(2**31),
                weights=self._row_weights,
            )
            for met, batch in enumerate(itertools.islice(batches, skip, None), skip + 1):
                yield number, met, batch
            skip = 0

    @torch.no_grad()
    def _take_average(self) -> None:
        # A short memory at first, so that the average leaves the untrained weights quickly.
        kept = min(self._plan.averaging, self._step / (self._step + 50))
        for name, parameter in self.model.named_parameters():
            self._average[name].lerp_(parameter, 1.0 - kept)

    def _save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "average": self._average,
            "optimizer": self._optimizer.state_dict(),
            "step": self._step,
            "round": self._round,
            "met": self._met,
        }
        part = self._folder / "last.part"
        torch.save(state, part)
        part.replace(self._folder / "last.pt")


def interpolated(
    first: Mapping[str, Tensor], final: Mapping[str, Tensor], keep: float
) -> dict[str, Tensor]:
    """The final weights, drawn towards the starting ones by a share."""
    return {name: values.lerp(first[name].to(values), keep) for name, values in final.items()}


def _prefetched(stream: Iterator[_Item]) -> Iterator[_Item]:
    """The same, made by a thread of its own some steps ahead."""
    with ThreadPoolExecutor(1) as maker:
        made = deque(maker.submit(next, stream) for _ in range(PREFETCHED_BATCHES))
        while True:
            made.append(maker.submit(next, stream))
            yield made.popleft().result()


def _drawn(indices: Sequence[int], share: float, chooser: random.Random) -> list[int]:
    """Repeat whole lists and add a random part, so that each row is met ``share`` times."""
    whole = int(share)
    part = round((share - whole) * len(indices))
    return [*list(indices) * whole, *chooser.sample(list(indices), part)]


def _groups(model: CrossEncoder, plan: Plan) -> list[dict[str, object]]:
    """Parameter groups: heads learn faster, biases and norms do not decay."""
    groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        head = name.startswith(("heads.", "tokens."))
        groups.setdefault((head, parameter.ndim > 1), []).append(parameter)
    return [
        {
            "params": parameters,
            "peak": plan.rate * (HEAD_RATE if head else 1.0),
            "weight_decay": WEIGHT_DECAY if matrix else 0.0,
        }
        for (head, matrix), parameters in groups.items()
    ]
