"""Hugging Face models on PyTorch: loaded on first use, run in length-sorted batches."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from judges.batching import token_batches
from judges.letters import readable
from judges.pretrained import chosen_dtype

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


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


@dataclass(kw_only=True)
class TorchRunner:
    """Runs token sequences through a model; one thread at a time.

    Attributes:
        model: In evaluation mode, on its device.
        pad_id: Token that fills up short sequences.
        token_budget: Most tokens of a batch, padding included.
        outputs: From model and batch (``input_ids``, ``attention_mask``, …, [n, l]) to the wanted
            outputs, [n, k].
    """

    model: PreTrainedModel
    pad_id: int
    token_budget: int
    outputs: Callable[[PreTrainedModel, dict[str, Tensor]], Tensor]
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @cached_property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

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
        rows: dict[int, NDArray[np.float32]] = {}
        started: list[tuple[list[int], Tensor]] = []

        def finish() -> None:
            batch, result = started.pop(0)
            rows.update(zip(batch, result.float().cpu().numpy(), strict=True))

        lengths = [len(ids) for ids in sequences]
        with self._lock:
            try:
                for batch in token_batches(lengths, budget=self.token_budget, rows=1_024):
                    started.append((batch, self._start(batch, sequences, borders)))
                    if len(started) > 1:  # the device never waits for the host
                        finish()
                while started:
                    finish()
            except Exception as error:
                raise JudgeError(f"{name} failed: {error}") from error
        if not rows:
            return np.zeros((0, 0), np.float32)
        joined = np.stack([rows[i] for i in range(len(sequences))])
        if not np.isfinite(joined).all():
            raise JudgeError(f"{name} gave numbers that are not finite; try dtype='float32'")
        return joined

    def _start(
        self, batch: list[int], sequences: Sequence[Sequence[int]], borders: Sequence[int]
    ) -> Tensor:
        """Hand a batch to the device, in halves if it does not fit into its memory."""
        import torch

        try:
            with torch.inference_mode():
                return self.outputs(self.model, self._inputs(batch, sequences, borders))
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
        import torch

        width = max(len(sequences[i]) for i in batch)
        ids = np.full((len(batch), width), self.pad_id, np.int64)
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
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        on_gpu = self._device.type == "cuda"
        if on_gpu:
            tensors = {name: tensor.pin_memory() for name, tensor in tensors.items()}
        return {name: t.to(self._device, non_blocking=on_gpu) for name, t in tensors.items()}


class Options(TypedDict, total=False):
    """Options of every judge on PyTorch; see ``TorchModel``."""

    device: str | None
    dtype: str | None
    token_budget: int | None
    temperature: float


class TorchModel(ABC):
    """A Hugging Face model, loaded on first use.

    Args:
        model: Model id or folder.
        kind: The part of the judge's name before the colon.
        budget: Default of ``token_budget``.
        token_budget: Maximum tokens of a batch, padding included.
        device: ``cuda``, ``cpu``, …; the GPU if there is one by default.
        dtype: ``bfloat16``, ``float32``, …; bfloat16 on a GPU by default.
        temperature: Divides the logits before they become probabilities.
    """

    def __init__(
        self,
        model: str,
        *,
        kind: str,
        budget: int,
        token_budget: int | None = None,
        device: str | None = None,
        dtype: str | None = None,
        temperature: float = 1.0,
    ) -> None:
        self.name = f"{kind}:{model}"
        self._id = model
        self._device = device
        self._dtype = dtype
        self._budget = token_budget or budget
        self._temperature = temperature
        self._lock = threading.Lock()
        self._tokenizer: PreTrainedTokenizerBase
        self._runner: TorchRunner | None = None

    def warm_up(self) -> None:
        """Load the model; later calls do nothing.

        Raises:
            JudgeError: The model does not exist, or is not one that this judge can read.
            MissingExtraError: torch or transformers is missing.
        """
        with self._lock:
            if self._runner is not None:
                return
            device, dtype = chosen_dtype(self._device, self._dtype)
            model, self._tokenizer = self._load(device, dtype)
            pad = self._tokenizer.pad_token_id
            self._runner = TorchRunner(
                model=model,
                pad_id=model.config.eos_token_id if pad is None else pad,
                token_budget=self._budget,
                outputs=self._outputs,
            )

    @abstractmethod
    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """The model in evaluation mode on its device, and its tokenizer."""

    @abstractmethod
    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        """The outputs of a batch, [n, k]."""

    def _run(self, chunk: Prepared) -> NDArray[np.float32]:
        assert self._runner is not None
        return self._runner.run(chunk.sequences, borders=chunk.borders, name=self.name)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of n texts, without special tokens and without truncation."""
        if not texts:
            return []
        cleaned = [readable(text) for text in texts]
        encoded = self._tokenizer(cleaned, add_special_tokens=False, verbose=False)
        ids: list[list[int]] = encoded["input_ids"]
        return ids
