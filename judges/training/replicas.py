"""Data parallelism over CPU threads: one single-threaded replica of the model per core.

On a CPU shared with other work, one replica per core beats one model over all cores: threads
meet once per step instead of at every operator. On a GPU there is one replica.

Weights live twice: the optimiser holds them in 32 bits, the replicas share one bfloat16 copy.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from judges.training.batches import Batch
from judges.training.model import CrossEncoder, MaskBank
from judges.training.rows import NO_LABEL

__all__ = ["Losses", "Replicas", "losses"]


class Losses(NamedTuple):
    """Summed losses of a batch and the weights they were summed over."""

    nli: Tensor
    attribution: Tensor
    complexity: Tensor


def losses(outputs: tuple[Tensor, Tensor, Tensor], batch: Batch, smoothing: float) -> Losses:
    """Weighted sums of the three heads' losses over a batch.

    Args:
        outputs: Logits of the heads, [n, 3], [n, 4], [n, 4].
        batch: The targets.
        smoothing: Label smoothing of the NLI head, in [0, 1).
    """
    nli, attribution, complexity = (logits.float() for logits in outputs)
    nli_loss = functional.cross_entropy(
        nli, batch.nli, ignore_index=NO_LABEL, reduction="none", label_smoothing=smoothing
    )
    inside = functional.log_softmax(attribution, -1).masked_fill(~batch.attribution, -torch.inf)
    taught = batch.attribution.any(-1)
    set_loss = -torch.logsumexp(torch.where(taught[:, None], inside, 0.0), -1)
    set_loss = torch.where(taught, set_loss, 0.0)
    complexity_loss = functional.cross_entropy(
        complexity, batch.complexity, ignore_index=NO_LABEL, reduction="none"
    )
    return Losses(*((loss * batch.weight).sum() for loss in (nli_loss, set_loss, complexity_loss)))


class Replicas:
    """A model trained by several threads at once.

    Args:
        model: The model in 32 bits; its parameters are the ones the optimiser changes.
        count: Number of replicas; each reads its own micro-batch of a step.
        device: ``cpu`` or ``cuda``.
        smoothing: Label smoothing of the NLI head.
        head_weights: Weights of the three heads' losses.
    """

    def __init__(
        self,
        model: CrossEncoder,
        *,
        count: int,
        device: str,
        smoothing: float,
        head_weights: tuple[float, float, float],
    ) -> None:
        self.model = model.to(device)
        self._device = device
        self._smoothing = smoothing
        self._head_weights = head_weights
        first = copy.deepcopy(model).bfloat16().train()
        self._replicas = [first, *(copy.deepcopy(first) for _ in range(count - 1))]
        for replica in self._replicas[1:]:
            for ours, shared in zip(replica.parameters(), first.parameters(), strict=True):
                ours.data = shared.data
        for number, replica in enumerate(self._replicas):
            for part in replica.modules():
                if isinstance(part, MaskBank):
                    part.seed(number)
        self._threads = ThreadPoolExecutor(count, initializer=_single_threaded)

    @property
    def count(self) -> int:
        """Number of micro-batches a step takes."""
        return len(self._replicas)

    def backward(self, batches: Sequence[Batch]) -> Losses:
        """Compute one step's gradients into the 32-bit model.

        Args:
            batches: At most one micro-batch per replica.

        Returns:
            Mean losses per weighted row, for the log.
        """
        total = float(sum(batch.weight.sum() for batch in batches))
        used = self._replicas[: len(batches)]
        sums = list(self._threads.map(lambda r, b: self._one(r, b, total), used, batches))
        masters = list(self.model.parameters())
        shared = zip(*(replica.parameters() for replica in self._replicas), strict=True)
        for master, copies in zip(masters, shared, strict=True):
            gradients = [p.grad for p in copies if p.grad is not None]
            if gradients:
                master.grad = gradients[0].float()
                for gradient in gradients[1:]:
                    master.grad.add_(gradient)
            for p in copies:
                p.grad = None
        return Losses(*(torch.stack(head).sum() / total for head in zip(*sums, strict=True)))

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the changed 32-bit weights to the replicas."""
        shared = self._replicas[0].parameters()
        for master, low in zip(self.model.parameters(), shared, strict=True):
            low.copy_(master)

    def _one(self, replica: CrossEncoder, batch: Batch, total: float) -> Losses:
        batch = Batch(*(tensor.to(self._device) for tensor in batch))
        outputs = replica(batch.input_ids, batch.attention_mask, batch.token_type_ids)
        parts = losses(outputs, batch, self._smoothing)
        weighted = sum(w * loss for w, loss in zip(self._head_weights, parts, strict=True))
        (weighted / total).backward()  # type: ignore[union-attr]
        return Losses(*(part.detach() for part in parts))


def _single_threaded() -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
