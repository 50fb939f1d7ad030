"""Feeds token sequences to a PyTorch model in length-sorted batches, on GPU or CPU."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from judges.base import Pair
from judges.batching import token_batches

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["Prepared", "TorchRunner", "prepared_ahead"]

Model = TypeVar("Model", bound="Module")

BUCKETS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
"""Lengths that compiled batches are padded up to, so that few shapes are compiled."""

MAX_ROWS = 1024
"""Most sequences of a batch."""

IN_FLIGHT = 2
"""Batches handed to the device before the first is read back: it never waits for the host."""

CHUNK = 4_096
"""Pairs that are tokenised while the device computes earlier ones."""


@dataclass
class Prepared:
    """A chunk of pairs as token sequences.

    Attributes:
        count: Pairs in the chunk.
        sequences: Token ids of each window of each pair, special ones included.
        borders: Where the second text of each sequence begins; empty for models without
            segment ids.
        owners: Pair of the chunk, and part of its hypothesis, that each sequence is of.
    """

    count: int
    sequences: list[list[int]] = field(default_factory=list)
    borders: list[int] = field(default_factory=list)
    owners: list[tuple[int, int]] = field(default_factory=list)

    def add(self, sequence: list[int], owner: tuple[int, int], border: int | None = None) -> None:
        """Append a sequence."""
        self.sequences.append(sequence)
        self.owners.append(owner)
        if border is not None:
            self.borders.append(border)


def prepared_ahead(
    prepare: Callable[[Sequence[Pair]], Prepared], pairs: Sequence[Pair]
) -> Iterator[Prepared]:
    """Prepare pairs in chunks, always one chunk ahead of the one in use, in another thread."""
    chunks = [pairs[start : start + CHUNK] for start in range(0, len(pairs), CHUNK)]
    with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as pool:
        waiting: deque[Future[Prepared]] = deque()
        for chunk in chunks:
            waiting.append(pool.submit(prepare, chunk))
            if len(waiting) > 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class TorchRunner:
    """Runs token sequences through a model; one thread at a time.

    Args:
        model: In evaluation mode, on its device.
        pad_id: Token that fills up short sequences.
        token_budget: Most tokens of a batch, padding included.
        outputs: From model and batch (``input_ids``, ``attention_mask``, …, [n, l]) to what is
            wanted, [n, k].
        compiled: Run through ``torch.compile``, over few padded lengths.
        positions: Longest sequence the model can read, where its positions are a table.
    """

    def __init__(
        self,
        model: Model,
        *,
        pad_id: int,
        token_budget: int,
        outputs: Callable[[Model, dict[str, Tensor]], Tensor],
        compiled: bool = False,
        positions: int | None = None,
    ) -> None:
        import torch

        self._model = torch.compile(model, dynamic=False) if compiled else model
        self._device = next(model.parameters()).device
        self._pad = pad_id
        self._budget = token_budget
        self._outputs: Callable[[Any, dict[str, Tensor]], Tensor] = outputs
        self._buckets: Sequence[int] = ()
        if compiled:
            self._buckets = [b for b in BUCKETS if positions is None or b <= positions]
        self._lock = threading.Lock()

    def run(
        self, sequences: Sequence[Sequence[int]], *, borders: Sequence[int] = (), name: str
    ) -> NDArray[np.float32]:
        """Run n sequences; outputs in the order of the input, [n, k].

        Batches that do not fit into the device's memory are halved until they do.

        Args:
            sequences: Token ids, special ones included.
            borders: Where the second text of each sequence begins, for models that read
                segment ids; empty for others.
            name: Of the judge, for error messages.

        Raises:
            JudgeError: A single sequence does not fit into memory, the model failed, or it gave
                numbers that are not finite.
        """
        batches = list(
            token_batches(
                [len(ids) for ids in sequences],
                budget=self._budget,
                rows=MAX_ROWS,
                buckets=self._buckets,
            )
        )
        rows: dict[int, NDArray[np.float32]] = {}
        with self._lock:
            started: list[tuple[list[int], Tensor]] = []
            try:
                for batch in batches:
                    started.append((batch, self._start(batch, sequences, borders)))
                    if len(started) >= IN_FLIGHT:
                        self._finish(*started.pop(0), rows)
                for batch, result in started:
                    self._finish(batch, result, rows)
            except Exception as error:
                raise JudgeError(f"{name} failed: {error}") from error
        if not rows:
            return np.zeros((0, 0), np.float32)
        joined = np.stack([rows[i] for i in range(len(sequences))])
        if not np.isfinite(joined).all():
            raise JudgeError(f"{name} gave numbers that are not finite; try dtype='float32'")
        return joined

    def _finish(
        self, batch: Sequence[int], result: Tensor, rows: dict[int, NDArray[np.float32]]
    ) -> None:
        for index, row in zip(batch, result.float().cpu().numpy(), strict=True):
            rows[index] = row

    def _start(
        self, batch: list[int], sequences: Sequence[Sequence[int]], borders: Sequence[int]
    ) -> Tensor:
        """Hand a batch to the device, in halves where it does not fit into its memory."""
        import torch

        try:
            with torch.inference_mode():
                return self._outputs(self._model, self._inputs(batch, sequences, borders))
        except (torch.OutOfMemoryError, MemoryError):
            if len(batch) < 2:
                raise
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        middle = len(batch) // 2
        halves = (batch[:middle], batch[middle:])
        return torch.cat([self._start(half, sequences, borders) for half in halves])

    def _inputs(
        self, batch: Sequence[int], sequences: Sequence[Sequence[int]], borders: Sequence[int]
    ) -> dict[str, Tensor]:
        longest = max(len(sequences[i]) for i in batch)
        width = next((bucket for bucket in self._buckets if bucket >= longest), longest)
        ids = np.full((len(batch), width), self._pad, np.int64)
        mask = np.zeros_like(ids)
        types = np.zeros_like(ids)
        for row, i in enumerate(batch):
            ids[row, : len(sequences[i])] = sequences[i]
            mask[row, : len(sequences[i])] = 1
            if borders:
                types[row, borders[i] : len(sequences[i])] = 1
        arrays = {"input_ids": ids, "attention_mask": mask}
        if borders:
            arrays["token_type_ids"] = types
        return {name: self._to_device(array) for name, array in arrays.items()}

    def _to_device(self, array: NDArray[np.int64]) -> Tensor:
        import torch

        tensor = torch.from_numpy(array)
        if self._device.type != "cuda":
            return tensor.to(self._device)
        return tensor.pin_memory().to(self._device, non_blocking=True)
