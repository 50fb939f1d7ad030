"""Reads claims against windows with PyTorch, on a GPU: many evidence sets in one batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from guardrail.core.errors import JudgeError
from judges.window_reader import IDS, Claim, Reading, Task
from training.window_model import WindowModel, pack

__all__ = ["TorchReader"]

BATCH = 32_000
"""Most tokens of a batch, padding included."""

CLAIMS = 32
"""Most claims that share a row with their windows."""


class TorchReader:
    """Runs a ``WindowModel``; an ``EvidenceJudge`` takes it as its ``reader``.

    The attention of sentences to statements is not read, so that statements have no scores.

    Args:
        model: The network.
        device: Where it runs; the GPU where there is one by default.
        dtype: Kind of its numbers; bfloat16 on a GPU by default.
    """

    def __init__(
        self, model: WindowModel, *, device: str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        on_gpu = self._device.startswith("cuda")
        self._dtype = dtype or (torch.bfloat16 if on_gpu else torch.float32)
        self._model = model.to(self._device, self._dtype).eval()

    @torch.inference_mode()
    def read(self, tasks: Sequence[Task]) -> list[Reading]:
        """Read n claims; see ``Reader``."""
        groups: dict[tuple[IDS, ...], list[int]] = {}
        for number, (windows, _) in enumerate(tasks):
            groups.setdefault(windows, []).append(number)
        rows = [
            (windows, numbers[at : at + CLAIMS])
            for windows, numbers in groups.items()
            for at in range(0, len(numbers), CLAIMS)
        ]
        found: dict[int, Reading] = {}
        batch: list[tuple[tuple[IDS, ...], list[int]]] = []
        lengths = {id(row): _length(row, tasks) for row in rows}
        try:
            for row in sorted(rows, key=lambda one: lengths[id(one)]):
                if batch and (len(batch) + 1) * lengths[id(row)] > BATCH:
                    self._run(batch, tasks, found)
                    batch = []
                batch.append(row)
            if batch:
                self._run(batch, tasks, found)
        except RuntimeError as error:
            raise JudgeError(f"the judge failed on {self._device}: {error}") from error
        return [found[number] for number in range(len(tasks))]

    def _run(
        self,
        batch: Sequence[tuple[tuple[IDS, ...], list[int]]],
        tasks: Sequence[Task],
        found: dict[int, Reading],
    ) -> None:
        sets = [(windows, [tasks[number][1] for number in some]) for windows, some in batch]
        packed = pack(sets, device=self._device)
        states = self._model.states(packed)
        features = self._model.features(states, packed)
        labels = self._model.head(features).float().cpu().numpy()
        if not np.isfinite(labels).all():
            raise JudgeError(f"the judge gave numbers that are not finite on {self._device}")
        kept = features.float().cpu().numpy()
        numbers = [number for _, some in batch for number in some]
        for number, span, label, feature in zip(numbers, packed.spans, labels, kept, strict=True):
            first, _, end = span
            own = states[first:end].float().cpu().numpy()
            found[number] = Reading(label, feature, own, np.zeros((0, 0), np.float32))


def _length(row: tuple[tuple[IDS, ...], list[int]], tasks: Sequence[Task]) -> int:
    windows, numbers = row
    claims: list[Claim] = [tasks[number][1] for number in numbers]
    return sum(map(len, windows)) + sum(len(claim.ids) for claim in claims)
